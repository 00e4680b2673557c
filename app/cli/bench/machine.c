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

/* The rates of a unit or of memory, in 1e9 per second; missing: why there are none, or "". */
typedef struct rates {
    double best, median;
    char missing[128];
} rates;

typedef att_status measurement(att_ctx *ctx, int what, double *rate);

/* Measures a number of times, unless the context cannot. Returns an exit code. */
static int measure(att_ctx *ctx, measurement *once, int what, rates *found)
{
    double *all = malloc((size_t)repeat * sizeof *all);
    att_status s = all ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < repeat; i++)
        s = once(ctx, what, &all[i]);
    *found = (rates){0};
    if (s == ATT_ERR_UNSUPPORTED) {
        snprintf(found->missing, sizeof found->missing, "%s", att_error(ctx));
        s = ATT_OK;
    } else if (!s) {
        bench_sort(all, repeat);
        found->best = 1e-9 * all[repeat - 1];
        found->median = 1e-9 * all[(repeat - 1) / 2];
    }
    free(all);
    return all ? cli_status(ctx, s) : cli_fail_memory();
}

static void print_start(const char *name, att_ctx *ctx)
{
    if (json)
        printf("{\"bench\": \"%s\", \"threads\": %d, \"isa\": \"%s\", \"repeat\": %lld", name, att_threads(ctx),
               att_isa(ctx), (long long)repeat);
    else
        printf("%s, %s, threads %d\n", name, att_isa(ctx), att_threads(ctx));
}

/* Prints rates, or in text why there are none. what: "", or the unit and a colon; key: their name in JSON. */
static void print_rates(const rates *r, const char *what, const char *unit, const char *key)
{
    if (*r->missing && !json)
        printf("  not measured: %s\n", r->missing);
    else if (json && !*r->missing)
        printf(", \"%s\": %.6g, \"median_%s\": %.6g", key, r->best, key, r->median);
    else if (!json)
        printf("  %sbest %.1f G%s/s, median %.1f G%s/s of %lld\n", what, r->best, unit, r->median, unit,
               (long long)repeat);
}

/* ---- peak */

static att_status measure_unit(att_ctx *ctx, int unit, double *rate)
{
    return att_measure_unit(ctx, (att_unit)unit, 0, rate);
}

/* The units, and the names of their rates. */
static const struct {
    const char *what, *operation, *key;
} units[] = {
    [ATT_UNIT_F32] = {"", "FLOP", "gflops"},
    [ATT_UNIT_BF16] = {"bf16: ", "FLOP", "bf16_gflops"},
    [ATT_UNIT_INT8] = {"int8: ", "OP", "int8_gops"},
    [ATT_UNIT_BF16_TILES] = {"bf16 tiles: ", "FLOP", "bf16_tiles_gflops"},
    [ATT_UNIT_INT8_TILES] = {"int8 tiles: ", "OP", "int8_tiles_gops"},
};
enum { UNITS = sizeof units / sizeof *units };

static int run_peak(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    att_ctx *ctx = NULL;
    rates found[UNITS];
    int code = cli_open(&ctx, threads);
    for (int i = 0; !code && i < UNITS; i++)
        code = measure(ctx, measure_unit, i, &found[i]);
    if (!code)
        print_start("peak", ctx);
    for (int i = 0; !code && i < UNITS; i++)
        print_rates(&found[i], units[i].what, units[i].operation, units[i].key);
    if (!code && json)
        puts("}");
    att_close(ctx);
    return code;
}

/* ---- bandwidth */

static att_status measure_bandwidth(att_ctx *ctx, int what, double *rate)
{
    (void)what;
    return att_measure_bandwidth(ctx, rate);
}

static int run_bandwidth(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    att_ctx *ctx = NULL;
    rates found;
    int code = cli_open(&ctx, threads);
    if (!code && !(code = measure(ctx, measure_bandwidth, 0, &found))) {
        print_start("bandwidth", ctx);
        print_rates(&found, "", "B", "gbytes_per_second");
        if (json)
            puts("}");
    }
    att_close(ctx);
    return code;
}

const cli_command bench_peak = {
    .name = "peak",
    .summary = "measure the peak rates of multiply-adds (FMA), and of bf16 and int8",
    .options = options,
    .run = run_peak,
};

const cli_command bench_bandwidth = {
    .name = "bandwidth",
    .summary = "measure memory read bandwidth",
    .options = options,
    .run = run_bandwidth,
};
