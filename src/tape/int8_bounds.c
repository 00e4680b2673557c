#include "tape/int8_bounds.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

typedef struct int8_job {
    att_ctx *ctx;
    const att_kernels *kernels;
    int64_t n, k, words, panels, groups;
    void (*row)(const void *of, int64_t i, float *y);
    const void *of;
    float *out;
    char *scratch; /* [threads][scratch_bytes] */
    size_t scratch_bytes;
    atomic_bool stopped;             /* packing: the call was cancelled */
    const att_int8_product *product; /* the following fields are for bounds */
    float *bytes;                    /* [m][words] */
    att_int8_row *left;              /* [m] */
    float *upper;                    /* [m, n] */
    float *best;                     /* [groups][m] */
} int8_job;

static int8_job job_of(att_ctx *ctx, int64_t n, int64_t k)
{
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    int8_job j = {.ctx = ctx, .kernels = kernels, .n = n, .k = k, .words = att_ceil_div(k, 4)};
    j.panels = att_ceil_div(n, kernels->nr);
    j.groups = att_min(j.panels, 8 * att_threads(ctx));
    return j;
}

static int64_t panel_floats(const int8_job *j) { return (j->words + j->kernels->int8.extra_rows) * j->kernels->nr; }

size_t att_int8_count(const att_ctx *ctx, int64_t n, int64_t k)
{
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    return att_size_mul((size_t)(att_ceil_div(n, kernels->nr) * kernels->nr),
                        (size_t)(att_ceil_div(k, 4) + kernels->int8.extra_rows));
}

static int64_t first_of(const int8_job *j, int64_t group) { return j->panels * group / j->groups; }

static void pack_task(void *arg, int group, int thread)
{
    int8_job *j = arg;
    const int64_t panel = j->kernels->nr;
    att_int8_row *of = (att_int8_row *)(void *)(j->scratch + (size_t)thread * j->scratch_bytes);
    float *bytes = (float *)(of + panel), *row = bytes + panel * j->words;
    for (int64_t q = first_of(j, group); q < first_of(j, group + 1) && !j->stopped; q++) {
        if (att_cancelled(j->ctx))
            j->stopped = true;
        memset(bytes, 0, (size_t)(panel * j->words) * sizeof *bytes);
        for (int64_t i = 0; i < panel; i++) {
            of[i] = (att_int8_row){.rest = INFINITY}; /* a column that does not exist has no valid bound */
            if (q * panel + i >= j->n)
                continue;
            j->row(j->of, q * panel + i, row);
            of[i] = j->kernels->int8.quantize(ATT_INT8_RIGHT, 0, j->k, row, (int8_t *)(bytes + i * j->words));
        }
        j->kernels->int8.pack(j->words, bytes, of, j->out + q * panel_floats(j));
    }
}

bool att_int8_pack(att_ctx *ctx, int64_t n, int64_t k, void (*row)(const void *of, int64_t i, float *y), const void *of,
                   float *packed)
{
    int8_job j = job_of(ctx, n, k);
    j.row = row;
    j.of = of;
    j.out = packed;
    j.scratch_bytes = (size_t)j.kernels->nr * (sizeof(att_int8_row) + (size_t)j.words * 4) + (size_t)k * sizeof(float);
    j.scratch = att_alloc(ctx, (size_t)ctx->n_threads, j.scratch_bytes);
    if (!j.scratch)
        return false;
    att_parallel(ctx, (int)j.groups, pack_task, &j);
    att_free(ctx, j.scratch);
    if (j.stopped)
        att_fail(ctx, ATT_ERR_CANCELLED, "cancelled");
    return !j.stopped;
}

static void bounds_task(void *arg, int group, int thread)
{
    (void)thread;
    const int8_job *j = arg;
    const att_int8_product *p = j->product;
    const int64_t panel = j->kernels->nr;
    float *best = j->best + group * p->m;
    for (int64_t i = 0; i < p->m; i++)
        best[i] = -INFINITY;
    for (int64_t q = first_of(j, group); q < first_of(j, group + 1); q++) {
        att_prefetch next = {0};
        if (q + 1 < j->panels)
            att_prefetch_add(&next, p->packed + (q + 1) * panel_floats(j), panel_floats(j) * (int64_t)sizeof(float), 0,
                             1);
        j->kernels->int8.bounds(&(const att_int8_args){.m = p->m,
                                                       .words = j->words,
                                                       .x = j->bytes,
                                                       .of = j->left,
                                                       .columns = (int)att_min(panel, j->n - q * panel),
                                                       .panel = p->packed + q * panel_floats(j),
                                                       .bias = p->bias ? p->bias + q * panel : NULL,
                                                       .upper = j->upper + q * panel,
                                                       .stride = j->n,
                                                       .best = best,
                                                       .prefetch = &next});
    }
}

/* Quantizes row i of A to bytes of the left operand. */
static void left_task(void *arg, int i, int thread)
{
    (void)thread;
    const int8_job *j = arg;
    float *y = j->bytes + i * j->words;
    memset(y, 0, (size_t)j->words * sizeof *y);
    j->left[i] = j->kernels->int8.quantize(ATT_INT8_LEFT, ATT_INT8_SHIFT, j->k, j->product->a + i * j->k, (int8_t *)y);
}

bool att_int8_bounds(att_ctx *ctx, const att_int8_product *product, float *upper, float *best)
{
    const int64_t m = product->m;
    int8_job j = job_of(ctx, product->n, product->k);
    j.product = product;
    j.upper = upper;
    j.bytes = att_alloc(ctx, (size_t)(m * j.words), sizeof *j.bytes);
    j.left = att_alloc(ctx, (size_t)m, sizeof *j.left);
    j.best = att_alloc(ctx, (size_t)(j.groups * m), sizeof *j.best);
    const bool good = j.bytes && j.left && j.best;
    if (good) {
        att_parallel(ctx, (int)m, left_task, &j);
        att_parallel(ctx, (int)j.groups, bounds_task, &j);
        for (int64_t i = 0; i < m; i++) {
            best[i] = -INFINITY;
            for (int64_t g = 0; g < j.groups; g++)
                best[i] = j.best[g * m + i] > best[i] ? j.best[g * m + i] : best[i];
        }
    }
    att_free(ctx, j.bytes);
    att_free(ctx, j.left);
    att_free(ctx, j.best);
    return good;
}
