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
    int64_t unit, n_units;    /* panels that stay together */
    /* packing */
    const float *b;
    int64_t stride_n, stride_k;
    float *out;
} job;

size_t att_gemm_packed_count(const att_ctx *ctx, int64_t n, int64_t k)
{
    const int64_t panel = att_kernels_of(ctx->isa)->panel;
    return att_size_mul((size_t)(att_ceil_div(n, panel) * panel), (size_t)k);
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
    j.n_panels = att_ceil_div(n, kernels->panel);
    j.groups = att_min(j.n_panels, 4 * att_threads(ctx));
    att_parallel(ctx, (int)j.groups, pack_task, &j);
}

static void gemm_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const job *j = arg;
    const int64_t row = i % j->row_tasks * j->rows, group = i / j->row_tasks;
    const int64_t first = j->n_units * group / j->groups * j->unit;
    const int64_t last = att_min(j->n_units * (group + 1) / j->groups * j->unit, j->n_panels);
    att_epilogue e = {0};
    if (j->e) {
        e = *j->e;
        if (e.residual)
            e.residual += row * e.residual_stride;
    }
    j->kernels->gemm(att_min(j->rows, j->m - row), j->n, j->k, j->a + row * j->lda, j->lda, j->packed, first, last,
                     j->c + row * j->ldc, j->ldc, j->e ? &e : NULL);
}

/* Rows and panels of a task. One thread takes rows that stay in its cache beside what is written, and all panels.
 * Several take few rows by some panels each, a few tasks for each thread: fewer and a slow thread is waited for, more
 * and the same panels are read more often; and no more panels than stay in the cache while they meet all rows. */
static void deal(const att_ctx *ctx, job *j)
{
    enum { FEW_ROWS = 96, MANY_ROWS = 256, TASKS_PER_THREAD = 32 };
    const int64_t threads = att_threads(ctx), panel = j->kernels->panel;
    const int64_t fit = ctx->cached * 3 / 8 / (j->k < 1 ? 1 : att_min(j->k, ATT_GEMM_DEPTH));
    j->row_tasks = att_ceil_div(j->m, threads == 1 ? att_max(att_min(fit, MANY_ROWS), FEW_ROWS) : FEW_ROWS);
    j->rows =
        att_ceil_div(att_ceil_div(j->m, j->row_tasks), j->kernels->rows) * j->kernels->rows; /* even, and whole tiles */
    j->row_tasks = att_ceil_div(j->m, j->rows);
    j->n_panels = att_ceil_div(j->n, panel);
    j->unit = j->kernels->gemm_panels(att_min(j->rows, j->m));
    j->n_units = att_ceil_div(j->n_panels, j->unit);
    const int64_t tasks = threads == 1 ? 1 : att_ceil_div(threads * TASKS_PER_THREAD, j->row_tasks);
    const int64_t cached = att_ceil_div(j->n_panels * panel * j->k, ctx->cached * 3 / 4);
    j->groups =
        att_min(att_ceil_div(att_max(tasks, cached), threads) * threads, j->n_units); /* each thread as many of them */
}

void att_gemm(att_ctx *ctx, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *packed, float *c,
              int64_t ldc, const att_epilogue *e)
{
    job j = {.kernels = att_kernels_of(ctx->isa),
             .m = m,
             .n = n,
             .k = k,
             .a = a,
             .lda = lda,
             .packed = packed,
             .c = c,
             .ldc = ldc,
             .e = e};
    if (m == 0 || n == 0)
        return;
    deal(ctx, &j);
    att_parallel_partition(ctx, j.row_tasks * j.groups, gemm_task, &j);
}
