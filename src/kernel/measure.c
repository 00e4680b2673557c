/* Measures the arithmetic peak and the read bandwidth of the machine, to which other speeds are compared. The best of
 * several runs counts: disturbances only make a run slower. */
#include "base/base.h"
#include "kernel/kernel.h"

#include <string.h>

enum { FEWEST_RUNS = 3, MAX_RUNS = 20, ITEMS_PER_THREAD = 16 };
static const double ENOUGH_SECONDS = 0.4; /* total time limit of the runs */

/* Returns the seconds of the fastest of several calls, each of n items in parallel. */
static double best_seconds(att_ctx *ctx, int n, void (*body)(void *arg, int i), void *arg)
{
    att_parallel_for(ctx, n, body, arg); /* warm-up: wakes the workers and raises the clock */
    double best = 1e30, end = att_os_seconds();
    const double stop = end + ENOUGH_SECONDS;
    for (int r = 0; (r < FEWEST_RUNS || (r < MAX_RUNS && end < stop)) && !att_cancelled(ctx); r++) {
        const double start = att_os_seconds();
        att_parallel_for(ctx, n, body, arg);
        end = att_os_seconds();
        best = end - start < best ? end - start : best;
    }
    return best;
}

/* ---- fused multiply-adds */

typedef struct peak_job {
    const att_kernels *kernels;
    int64_t repeats;
} peak_job;

static void run_peak(void *arg, int i)
{
    const peak_job *j = arg;
    double flops;
    (void)i;
    j->kernels->measure.peak(j->repeats, &flops);
}

/* Returns the number of kernel repetitions that take the given seconds. */
static int64_t repeats_for(const att_kernels *kernels, double seconds)
{
    enum { ENOUGH = 1 << 12 }; /* some hundred microseconds */
    double flops, best = 1e30;
    for (int i = 0; i < MAX_RUNS; i++) {
        const double start = att_os_seconds();
        kernels->measure.peak(ENOUGH, &flops);
        const double took = att_os_seconds() - start;
        best = took < best ? took : best;
    }
    return 1 + (int64_t)(seconds / best * ENOUGH);
}

att_status att_measure_peak(att_ctx *ctx, double seconds, double *flops_per_second)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"flops_per_second", flops_per_second})))
        return ATT_ERR_ARGUMENT;
    static const double min_seconds = 3e-3, max_seconds = 0.1; /* much longer than waking the workers */
    seconds = !(seconds > min_seconds) ? min_seconds : seconds < max_seconds ? seconds : max_seconds;
    const att_kernels *kernels = att_kernels_of(ctx->isa);
    peak_job j = {kernels, repeats_for(kernels, seconds / ITEMS_PER_THREAD)};
    double flops;
    *flops_per_second = 0;
    kernels->measure.peak(j.repeats, &flops);
    const int n = att_threads(ctx) * ITEMS_PER_THREAD;
    const double best = best_seconds(ctx, n, run_peak, &j);
    if (att_cancelled(ctx))
        return att_fail(ctx, ATT_ERR_CANCELLED, "att_measure_peak was cancelled");
    *flops_per_second = n * flops / best;
    return ATT_OK;
}

/* ---- read bandwidth */

enum { ITEM_FLOATS = 1 << 20 };

typedef struct read_job {
    const att_kernels *kernels;
    float *x; /* [items, ITEM_FLOATS] */
} read_job;

static void run_fill(void *arg, int i)
{
    const read_job *j = arg;
    memset(j->x + (size_t)i * ITEM_FLOATS, 0, ITEM_FLOATS * sizeof *j->x);
}

static void run_read(void *arg, int i)
{
    const read_job *j = arg;
    j->kernels->measure.read(ITEM_FLOATS, j->x + (size_t)i * ITEM_FLOATS);
}

att_status att_measure_bandwidth(att_ctx *ctx, double *bytes_per_second)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"bytes_per_second", bytes_per_second})))
        return ATT_ERR_ARGUMENT;
    /* Memory to read: much more than the caches hold, but at most a quarter of the free memory. */
    static const size_t item = ITEM_FLOATS * sizeof(float), usual = (size_t)256 << 20;
    const size_t second = att_os_cache(2), third = att_os_cache(3), caches = 8 * (second > third ? second : third);
    const size_t quarter = att_os_memory("") / 4;
    const size_t wanted = caches > usual ? caches : usual;
    const int n = (int)((quarter && quarter < wanted ? quarter : wanted) / item) + 1;
    *bytes_per_second = 0;
    read_job j = {att_kernels_of(ctx->isa), att_alloc(ctx, (size_t)n, item)};
    if (!j.x)
        return ATT_ERR_MEMORY;
    att_parallel_for(ctx, n, run_fill, &j); /* pages that were never written are not backed by memory */
    const double best = best_seconds(ctx, n, run_read, &j);
    att_free(ctx, j.x);
    if (att_cancelled(ctx))
        return att_fail(ctx, ATT_ERR_CANCELLED, "att_measure_bandwidth was cancelled");
    *bytes_per_second = (double)((size_t)n * item) / best;
    return ATT_OK;
}
