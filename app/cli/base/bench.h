/* What the benchmarks share: numbers to compute with, time, and the report. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"

extern const cli_command bench_attention, bench_bandwidth, bench_gemm, bench_peak;

typedef struct bench_options {
    int64_t threads, repeat;
    bool no_verify, json;
} bench_options;

/* clang-format off */
#define BENCH_REPEAT(to)                                                                     \
    {"repeat", 'r', "N", .integer = (to), .max = 1000000, .quiet = true,                     \
     .help = "how often to measure; 0, the default: for about a second"}
#define BENCH_NO_VERIFY(to)                                                                  \
    {"no-verify", 0, NULL, .flag = (to),                                                     \
     .help = "do not compare with plain loops in double first"}
/* clang-format on */

/* n numbers in [-1, 1), the same ones for the same seed; their count is the product of dim[rank]. */
int bench_numbers(att_ctx *ctx, float **out, uint64_t seed, int rank, const int64_t *dim);

typedef struct bench_times {
    double best, median; /* seconds */
    int64_t repeat;
    double peak; /* FLOP/s, multiply-adds in registers, the best of before and after */
} bench_times;

/* Runs once(arg) for warmth, then measures it. */
int bench_measure(att_ctx *ctx, int64_t repeat, int (*once)(void *arg), void *arg, bench_times *out);

/* The row of the report. `shape` is JSON members: "\"m\": 8, \"n\": 8". error: the largest one found, relative to
 * what rounding allows; negative: not verified. */
void bench_report(const att_ctx *ctx, const char *name, const char *shape, double flops, const bench_times *t,
                  double error, bool json);

/* How far `x` is from `reference`, in units of `bound`; more than 1 is wrong. */
double bench_error(double x, double reference, double bound);

#endif
