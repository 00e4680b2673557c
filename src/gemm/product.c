/* Products of matrices in any layout. Operands that the kernel cannot read are copied: B into panels, and A, if its
 * columns are not contiguous, band by band into rows. */
#include "gemm/gemm.h"

enum {
    BAND = 1024, /* rows of A that are copied at a time, into scratch memory of one band */
    GAP = 16,    /* numbers between copied rows, so that they do not all map to the same set of a cache */
    TASK = 64    /* rows that one task copies */
};

typedef struct copy_job {
    const att_kernels *kernels;
    int64_t m, k;
    att_matrix a;
    float *y; /* [m, stride] */
    int64_t stride;
} copy_job;

static void copy_task(void *arg, int i, int thread)
{
    (void)thread;
    const copy_job *j = arg;
    const int64_t first = (int64_t)i * TASK, last = att_min(j->m, first + TASK);
    const att_matrix a = j->a;
    if (a.row == 1) {
        j->kernels->vector.transpose(j->k, last - first, a.x + first, a.column, j->y + first * j->stride, j->stride);
        return;
    }
    for (int64_t r = first; r < last; r++)
        for (int64_t c = 0; c < j->k; c++)
            j->y[r * j->stride + c] = a.x[r * a.row + c * a.column];
}

static bool is_copied(const att_matmul_args *x) { return x->a.column != 1 && x->k > 1; }

static size_t bf16_scratch(const att_ctx *ctx, const att_matmul_args *x)
{
    const size_t packed = att_bf16_packed_count(ctx, x->n, x->k), rows = att_bf16_scratch(ctx, x->m, x->k);
    return packed < SIZE_MAX - rows ? packed + rows : SIZE_MAX;
}

static void bf16_product(att_ctx *ctx, const att_matmul_args *x, float *scratch)
{
    att_bf16_pack(ctx, x->n, x->k, (att_matrix){x->b.x, x->b.column, x->b.row}, false, scratch);
    att_bf16_multiply(ctx,
                      &(const att_gemm_args){.m = x->m,
                                             .n = x->n,
                                             .k = x->k,
                                             .a = x->a.x,
                                             .lda = x->a.row,
                                             .packed = scratch,
                                             .c = x->c,
                                             .ldc = x->ldc,
                                             .epilogue = &(const att_epilogue){.add = x->add}},
                      x->a.column, scratch + att_bf16_packed_count(ctx, x->n, x->k));
}

size_t att_matmul_scratch(const att_ctx *ctx, const att_matmul_args *x)
{
    if (x->bf16)
        return bf16_scratch(ctx, x);
    const size_t packed = att_gemm_packed_count(ctx, x->n, x->k);
    const size_t rows = is_copied(x) ? att_size_mul((size_t)att_min(x->m, BAND), (size_t)x->k + GAP) : 0;
    return packed < SIZE_MAX - rows ? packed + rows : SIZE_MAX;
}

void att_matmul_strided(att_ctx *ctx, const att_matmul_args *x, float *scratch)
{
    if (x->bf16) {
        bf16_product(ctx, x, scratch);
        return;
    }
    float *const rows = scratch + att_gemm_packed_count(ctx, x->n, x->k);
    const int64_t band = is_copied(x) ? BAND : x->m, stride = x->k + GAP;
    att_gemm_pack(ctx, x->n, x->k, x->b.x, x->b.column, x->b.row, scratch);
    for (int64_t first = 0; first < x->m; first += band) {
        const att_matrix a = {x->a.x + first * x->a.row, x->a.row, x->a.column};
        copy_job j = {att_kernels_of(ctx->isa), att_min(x->m - first, band), x->k, a, rows, stride};
        if (is_copied(x))
            att_parallel(ctx, (int)att_ceil_div(j.m, TASK), copy_task, &j);
        att_gemm(ctx, &(const att_gemm_args){.m = j.m,
                                             .n = x->n,
                                             .k = x->k,
                                             .a = is_copied(x) ? rows : a.x,
                                             .lda = is_copied(x) ? stride : a.row,
                                             .packed = scratch,
                                             .c = x->c + first * x->ldc,
                                             .ldc = x->ldc,
                                             .epilogue = &(const att_epilogue){.add = x->add}});
    }
}
