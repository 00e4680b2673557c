/* Matrix products, divided into tasks of rows and panels. */
#include "gemm/gemm.h"

#include <stdatomic.h>

typedef struct gemm_job {
    const att_kernels *kernels;
    void (*run)(const att_gemm_args *args);
    int (*panels_per_tile)(int64_t rows);
    int64_t tile_rows;
    att_gemm_args args;
    int64_t rows, row_tasks;  /* rows of a task, and tasks over rows */
    int64_t n_panels, groups; /* panels of B, and tasks over panels */
    int64_t unit, n_units;    /* panels of one register tile, and the number of such units */
} gemm_job;

typedef struct pack_job {
    const att_kernels *kernels;
    int64_t n, k;
    const float *b;
    const uint16_t *codes; /* instead of b, or NULL */
    int64_t stride_n, stride_k, n_panels, tasks;
    void *packed;
    att_ctx *ctx; /* context whose cancel flag stops the product, or NULL */
    atomic_bool stopped;
} pack_job;

size_t att_gemm_packed_count(const att_ctx *ctx, int64_t n, int64_t k)
{
    const int64_t panel = att_kernels_of(ctx->isa)->nr;
    return att_size_mul((size_t)(att_ceil_div(n, panel) * panel), (size_t)k);
}

static void pack_task(void *arg, int i, int thread)
{
    (void)thread;
    pack_job *j = arg;
    const int64_t first = j->n_panels * i / j->tasks, last = j->n_panels * (i + 1) / j->tasks;
    if (att_cancelled(j->ctx))
        j->stopped = true;
    else if (j->codes)
        j->kernels->gemm.pack_codes(j->n, j->k, j->codes, j->stride_n, j->stride_k, first, last, j->packed);
    else
        j->kernels->gemm.pack(j->n, j->k, j->b, j->stride_n, j->stride_k, first, last, j->packed);
}

static bool pack_all(att_ctx *ctx, pack_job *j)
{
    enum { TASK = 1 << 20 }; /* numbers; a call may stop after each task */
    j->kernels = att_kernels_of(ctx->isa);
    j->n_panels = att_ceil_div(j->n, j->kernels->nr);
    j->tasks = att_min(j->n_panels, att_max(4 * att_threads(ctx), att_ceil_div(j->n * j->k, TASK)));
    att_parallel(ctx, (int)j->tasks, pack_task, j);
    return !j->stopped;
}

void att_gemm_pack(att_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k,
                   float *packed)
{
    pack_all(ctx, &(pack_job){.n = n, .k = k, .b = b, .stride_n = stride_n, .stride_k = stride_k, .packed = packed});
}

bool att_gemm_pack_weights(att_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k,
                           float *packed)
{
    pack_job j = {.n = n, .k = k, .b = b, .stride_n = stride_n, .stride_k = stride_k, .packed = packed, .ctx = ctx};
    return pack_all(ctx, &j);
}

bool att_gemm_pack_codes(att_ctx *ctx, int64_t n, int64_t k, const uint16_t *b, int64_t stride_n, int64_t stride_k,
                         uint16_t *packed)
{
    pack_job j = {.n = n, .k = k, .codes = b, .stride_n = stride_n, .stride_k = stride_k, .packed = packed, .ctx = ctx};
    return pack_all(ctx, &j);
}

static void gemm_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const gemm_job *j = arg;
    const int64_t row = i % j->row_tasks * j->rows, group = i / j->row_tasks;
    att_gemm_args part = j->args;
    att_epilogue e;
    part.m = att_min(j->rows, part.m - row);
    part.a += row * part.lda;
    part.c += row * part.ldc;
    part.first = j->n_units * group / j->groups * j->unit;
    part.last = att_min(j->n_units * (group + 1) / j->groups * j->unit, j->n_panels);
    if (part.epilogue && part.epilogue->residual) {
        e = *part.epilogue;
        e.residual += row * e.residual_stride;
        part.epilogue = &e;
    }
    j->run(&part);
}

/* Partitions the product into tasks of some rows by some panels. A single thread has tasks of all panels by rows that
 * stay in its cache together with the results. Several threads have a few tasks each, of few rows by some panels, which
 * stay in the cache for all rows: with fewer tasks the slowest thread decides the time, with more the same panels are
 * read more often. */
static void partition(const att_ctx *ctx, gemm_job *j)
{
    enum { MIN_ROWS = 96, MANY_ROWS = 256, TASKS_PER_THREAD = 32 };
    const att_gemm_args *g = &j->args;
    const int64_t threads = att_threads(ctx), panel = j->kernels->nr;
    const int64_t fit = ctx->cached * 3 / 8 / att_max(1, att_min(g->k, ATT_GEMM_DEPTH));
    j->row_tasks = att_ceil_div(g->m, threads == 1 ? att_max(att_min(fit, MANY_ROWS), MIN_ROWS) : MIN_ROWS);
    j->rows = att_round_up(att_ceil_div(g->m, j->row_tasks), j->tile_rows); /* rows of even size, in whole tiles */
    j->row_tasks = att_ceil_div(g->m, j->rows);
    j->n_panels = att_ceil_div(g->n, panel);
    j->unit = j->panels_per_tile(att_min(j->rows, g->m));
    j->n_units = att_ceil_div(j->n_panels, j->unit);
    const int64_t tasks = threads == 1 ? 1 : att_ceil_div(threads * TASKS_PER_THREAD, j->row_tasks);
    const int64_t cached = att_ceil_div(j->n_panels * panel * g->k, ctx->cached * 3 / 4);
    j->groups = att_min(att_round_up(att_max(tasks, cached), threads), j->n_units); /* the same number for each
                                                                                     * thread */
}

const att_bf16_gemm_kernels *att_bf16_gemm_of(const att_ctx *ctx)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    if (k->bf16_gemm_tiles.run && att_os_allow_tiles())
        return &k->bf16_gemm_tiles;
    return k->bf16_gemm.run ? &k->bf16_gemm : NULL;
}

void att_gemm(att_ctx *ctx, const att_gemm_args *args)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    const att_bf16_gemm_kernels *pairs = args->finish ? att_bf16_gemm_of(ctx) : NULL;
    gemm_job j = {.kernels = k,
                  .run = pairs ? pairs->run : k->gemm.run,
                  .panels_per_tile = pairs ? pairs->panels_per_tile : k->gemm.panels_per_tile,
                  .tile_rows = pairs ? pairs->rows : k->mr,
                  .args = *args};
    if (args->m == 0 || args->n == 0)
        return;
    partition(ctx, &j);
    att_parallel_partition(ctx, j.row_tasks * j.groups, gemm_task, &j);
}
