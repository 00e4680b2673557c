#include "gemm/gemm.h"

typedef struct job {
    const att_kernels *kernels;
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *packed;
    float *c;
    int64_t ldc;
    const att_epilogue *e;
    int64_t rows, row_tasks;  /* of one task, and how many such there are */
    int64_t n_panels, groups; /* of the weights, and tasks that they are dealt to */
    /* packing */
    const float *b;
    int64_t stride_n, stride_k;
    float *out;
} job;

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

size_t att_gemm_packed_count(const att_ctx *ctx, int64_t n, int64_t k)
{
    const int64_t panel = att_kernels_of(ctx->isa)->panel;
    return att_size_mul((size_t)(blocks(n, panel) * panel), (size_t)k);
}

static void pack_task(void *arg, int i, int thread)
{
    (void)thread;
    const job *j = arg;
    const int64_t first = j->n_panels * i / j->groups, last = j->n_panels * (i + 1) / j->groups;
    j->kernels->gemm_pack(j->n, j->k, j->b, j->stride_n, j->stride_k, first, last, j->out);
}

void att_gemm_pack(att_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k,
                   float *packed)
{
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    job j = {.kernels = kernels, .n = n, .k = k, .b = b, .stride_n = stride_n, .stride_k = stride_k, .out = packed};
    j.n_panels = blocks(n, kernels->panel);
    j.groups = min(j.n_panels, 4 * att_threads(ctx));
    att_parallel(ctx, (int)j.groups, pack_task, &j);
}

static void gemm_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const job *j = arg;
    const int64_t row = i % j->row_tasks * j->rows, group = i / j->row_tasks;
    const int64_t first = j->n_panels * group / j->groups, last = j->n_panels * (group + 1) / j->groups;
    att_epilogue e = {0};
    if (j->e) {
        e = *j->e;
        if (e.residual)
            e.residual += row * e.residual_stride;
    }
    j->kernels->gemm(min(j->rows, j->m - row), j->n, j->k, j->a + row * j->lda, j->lda, j->packed, first, last,
                     j->c + row * j->ldc, j->ldc, j->e ? &e : NULL);
}

/* Tasks are some rows by some panels, a few for each thread: fewer and a slow thread is waited for, more and the
 * same panels are read more often. */
void att_gemm(att_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *packed, float *c,
              int64_t ldc, const att_epilogue *e)
{
    enum { ROWS_PER_TASK = 96, TASKS_PER_THREAD = 32 };
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    const int threads = att_threads(ctx);
    job j = {.kernels = kernels,
             .m = m,
             .n = n,
             .k = k,
             .a = a,
             .lda = lda,
             .packed = packed,
             .c = c,
             .ldc = ldc,
             .e = e,
             .n_panels = blocks(n, kernels->panel)};
    if (m == 0 || n == 0)
        return;
    j.row_tasks = threads == 1 ? 1 : blocks(m, ROWS_PER_TASK);
    j.rows = blocks(blocks(m, j.row_tasks), kernels->rows) * kernels->rows; /* even, and whole tiles */
    j.row_tasks = blocks(m, j.rows);
    /* as many groups of panels as give each thread its tasks, and each thread as many of them */
    j.groups = threads == 1 ? 1 : blocks(blocks((int64_t)threads * TASKS_PER_THREAD, j.row_tasks), threads) * threads;
    j.groups = min(j.groups, j.n_panels);
    att_parallel_shares(ctx, j.row_tasks * j.groups, gemm_task, &j);
}
