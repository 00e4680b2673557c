/* Measures the arithmetic peak and the read bandwidth of the machine, to which other speeds are compared. The best of
 * several runs counts: disturbances only make a run slower. */
#include "attend.h"
#include "base/base.h"
#include "kernel/kernel.h"
#include "simd/isa.h"

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

/* ---- multiply-adds */

static const char *const unit_names[] = {[ATT_UNIT_F32] = "f32",
                                         [ATT_UNIT_BF16] = "bf16",
                                         [ATT_UNIT_INT8] = "int8",
                                         [ATT_UNIT_BF16_TILES] = "bf16 tiles",
                                         [ATT_UNIT_INT8_TILES] = "int8 tiles"};
enum { UNITS = sizeof unit_names / sizeof unit_names[0] };

const char *att_unit_name(att_unit u) { return (unsigned)u < UNITS ? unit_names[u] : NULL; }

/* Chooses the kernel of a unit; *kernel is NULL if the context has no such unit. */
static att_status choose_kernel(att_ctx *ctx, att_unit unit, att_peak_kernel **kernel)
{
    const att_measure_kernels *m = &att_kernels_of(ctx->isa)->measure;
    att_peak_kernel *const of[UNITS] = {m->peak, m->peak_bf16, m->peak_int8, m->peak_bf16_tiles, m->peak_int8_tiles};
    *kernel = NULL;
    if (!att_unit_name(unit))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "unit is %d, expected an att_unit", (int)unit);
    if (!of[unit])
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "instruction set \"%s\" has no instructions for %s",
                        att_isa_name(ctx->isa), att_unit_name(unit));
    if (unit >= ATT_UNIT_BF16_TILES && !att_os_allow_tiles())
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "the system refuses AMX tiles to this process");
    *kernel = of[unit];
    return ATT_OK;
}

typedef struct peak_job {
    att_peak_kernel *kernel;
    int64_t repeats;
} peak_job;

static void run_peak(void *arg, int i)
{
    const peak_job *j = arg;
    double operations;
    (void)i;
    j->kernel(j->repeats, &operations);
}

/* Returns the number of kernel repetitions that take the given seconds. */
static int64_t repeats_for(att_peak_kernel *kernel, double seconds)
{
    enum { ENOUGH = 1 << 12 }; /* some hundred microseconds */
    double operations, best = 1e30;
    for (int i = 0; i < MAX_RUNS; i++) {
        const double start = att_os_seconds();
        kernel(ENOUGH, &operations);
        const double took = att_os_seconds() - start;
        best = took < best ? took : best;
    }
    return 1 + (int64_t)(seconds / best * ENOUGH);
}

/* Measures a unit for a public function of this name. */
static att_status measure(const char *name, att_ctx *ctx, att_unit unit, double seconds, double *per_second)
{
    static const double min_seconds = 3e-3, max_seconds = 0.1; /* much longer than waking the workers */
    seconds = !(seconds > min_seconds) ? min_seconds : seconds < max_seconds ? seconds : max_seconds;
    peak_job j = {0};
    double operations;
    *per_second = 0;
    const att_status s = choose_kernel(ctx, unit, &j.kernel);
    if (s)
        return s;
    j.repeats = repeats_for(j.kernel, seconds / ITEMS_PER_THREAD);
    j.kernel(j.repeats, &operations);
    const int n = att_threads(ctx) * ITEMS_PER_THREAD;
    const double best = best_seconds(ctx, n, run_peak, &j);
    if (att_cancelled(ctx))
        return att_fail(ctx, ATT_ERR_CANCELLED, "%s was cancelled", name);
    *per_second = n * operations / best;
    return ATT_OK;
}

att_status att_measure_peak(att_ctx *ctx, double seconds, double *flops_per_second)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"flops_per_second", flops_per_second})))
        return ATT_ERR_ARGUMENT;
    return measure(__func__, ctx, ATT_UNIT_F32, seconds, flops_per_second);
}

att_status att_measure_unit(att_ctx *ctx, att_unit unit, double seconds, double *operations_per_second)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"operations_per_second", operations_per_second})))
        return ATT_ERR_ARGUMENT;
    return measure(__func__, ctx, unit, seconds, operations_per_second);
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
