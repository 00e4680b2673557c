/* Products of numbers that are rounded to bf16: B is packed into panels of pairs, and A into rows of pairs, at most
 * ATT_BF16_ROWS at a time. */
#include "gemm/gemm.h"

#include <stdatomic.h>

enum {
    GAP = 16,   /* words between rounded rows, so that they do not all map to the same set of a cache */
    ROWS = 16,  /* that one task rounds, or */
    ACROSS = 64 /* if they are next to each other: several cache lines */
};

/* Returns the pairs of a row of k numbers, those of the padding included. */
static int64_t pairs_of(const att_ctx *ctx, int64_t k)
{
    return att_round_up(att_ceil_div(k, 2), att_bf16_gemm_of(ctx)->pairs);
}

/* ---- B */

typedef struct pack_job {
    att_ctx *ctx;
    const att_kernels *kernels;
    att_round_args args;
    int64_t rows; /* of a task, which are columns of the product */
    bool may_cancel;
    atomic_bool stopped;
    float *packed;
} pack_job;

size_t att_bf16_packed_count(const att_ctx *ctx, int64_t n, int64_t k)
{
    const int64_t panel = att_kernels_of(ctx->isa)->nr;
    return att_size_mul((size_t)(att_ceil_div(n, panel) * panel), (size_t)pairs_of(ctx, k));
}

static void pack_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    pack_job *j = arg;
    const int64_t first = i * j->rows;
    att_round_args b = j->args;
    b.rows = att_min(j->rows, b.rows - first);
    b.x += first * b.row;
    if (j->may_cancel && att_cancelled(j->ctx))
        j->stopped = true;
    else
        j->kernels->round.panels(&b, j->packed + first * b.pairs);
}

bool att_bf16_pack(att_ctx *ctx, int64_t n, int64_t k, att_matrix b, bool may_cancel, float *packed)
{
    enum { PANELS = 4 }; /* of a task, which then reads several cache lines of a row of B^T */
    pack_job j = {.ctx = ctx,
                  .kernels = att_kernels_of(ctx->isa),
                  .args = {n, k, pairs_of(ctx, k), b.x, b.row, b.column},
                  .may_cancel = may_cancel,
                  .packed = packed};
    j.rows = PANELS * j.kernels->nr;
    att_parallel_partition(ctx, att_ceil_div(n, j.rows), pack_task, &j);
    return !j.stopped;
}

/* ---- A, and the product */

typedef struct round_job {
    const att_kernels *kernels;
    att_round_args args;
    float *words;
    int64_t stride, rows; /* of a task */
} round_job;

static void round_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const round_job *j = arg;
    att_round_args a = j->args;
    const int64_t first = i * j->rows;
    a.rows = att_min(j->rows, a.rows - first);
    a.x += first * a.row;
    j->kernels->round.rows(&a, j->words + first * j->stride, j->stride);
}

size_t att_bf16_scratch(const att_ctx *ctx, int64_t m, int64_t k)
{
    /* Whole tiles may read the rows after the last one, whose results are not used. */
    const int64_t rows = att_round_up(att_min(m, ATT_BF16_ROWS), att_bf16_gemm_of(ctx)->rows);
    return att_size_mul((size_t)rows, (size_t)(pairs_of(ctx, k) + GAP));
}

void att_bf16_round(att_ctx *ctx, int64_t m, int64_t k, att_matrix a, float *scratch, att_gemm_args *args)
{
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    const int64_t pairs = pairs_of(ctx, k), stride = pairs + GAP;
    round_job j = {kernels, {m, k, pairs, a.x, a.row, a.column}, scratch, stride, a.column == 1 ? ROWS : ACROSS};
    att_parallel_partition(ctx, att_ceil_div(m, j.rows), round_task, &j);
    args->m = m;
    args->k = pairs;
    args->a = scratch;
    args->lda = stride;
    args->finish = kernels->gemm.finish;
}

void att_bf16_multiply(att_ctx *ctx, const att_gemm_args *args, int64_t column, float *scratch)
{
    for (int64_t first = 0; first < args->m; first += ATT_BF16_ROWS) {
        att_gemm_args part = *args;
        att_epilogue e = args->epilogue ? *args->epilogue : (att_epilogue){0};
        const att_matrix a = {args->a + first * args->lda, args->lda, column};
        att_bf16_round(ctx, att_min(args->m - first, ATT_BF16_ROWS), args->k, a, scratch, &part);
        e.residual = e.residual ? e.residual + first * e.residual_stride : NULL;
        part.epilogue = &e;
        part.c += first * args->ldc;
        att_gemm(ctx, &part);
    }
}
