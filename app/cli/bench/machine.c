/* attend bench peak, attend bench bandwidth: limits of the machine. */
#include "bench.h"

#include <stdlib.h>

static int64_t threads, repeat = 5;
static bool json;

static const cli_option options[] = {
    CLI_THREADS(&threads),
    {"repeat", 'r', "N", .integer = &repeat, .min = 1, .max = 1000, .help = "number of measurements"},
    CLI_JSON(&json),
    {0},
};

/* Prints the best and the median of the rates measured by `measure`, in 1e9 `unit` per second. */
static int run(const char *name, const char *unit, const char *key, att_status (*measure)(att_ctx *, double *))
{
    att_ctx *ctx = NULL;
    double *found = malloc((size_t)repeat * sizeof *found);
    int code = found ? cli_open(&ctx, threads) : cli_fail_memory();
    for (int64_t i = 0; !code && i < repeat; i++)
        code = cli_status(ctx, measure(ctx, &found[i]));
    if (!code) {
        bench_sort(found, repeat);
        double best = 1e-9 * found[repeat - 1], median = 1e-9 * found[(repeat - 1) / 2];
        if (json)
            printf("{\"bench\": \"%s\", \"threads\": %d, \"isa\": \"%s\", \"repeat\": %lld, \"%s\": %.6g, "
                   "\"median_%s\": %.6g}\n",
                   name, att_threads(ctx), att_isa(ctx), (long long)repeat, key, best, key, median);
        else
            printf("%s, %s, threads %d\n  best %.1f G%s/s, median %.1f G%s/s of %lld\n", name, att_isa(ctx),
                   att_threads(ctx), best, unit, median, unit, (long long)repeat);
    }
    free(found);
    att_close(ctx);
    return code;
}

static att_status peak_of_short_runs(att_ctx *ctx, double *flops_per_second)
{
    return att_measure_peak(ctx, 0, flops_per_second);
}

static int run_peak(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    return run("peak", "FLOP", "gflops", peak_of_short_runs);
}

static int run_bandwidth(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    return run("bandwidth", "B", "gbytes_per_second", att_measure_bandwidth);
}

const cli_command bench_peak = {
    .name = "peak",
    .summary = "measure the peak rate of fused multiply-adds (FMA)",
    .options = options,
    .run = run_peak,
};

const cli_command bench_bandwidth = {
    .name = "bandwidth",
    .summary = "measure memory read bandwidth",
    .options = options,
    .run = run_bandwidth,
};
