/* What the benchmarks share: numbers to compute with, time, and the report. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/base/cli.h"

#include <jansson.h>

extern const cli_command bench_attention, bench_bandwidth, bench_gemm, bench_peak;

typedef struct bench_options {
    int64_t threads, repeat;
    double seconds;
    bool no_verify, json;
} bench_options;

/* clang-format off */
#define BENCH_REPEAT(to)                                                                     \
    {"repeat", 'r', "N", .integer = (to), .max = 1000000, .quiet = true,                     \
     .help = "how often to measure; 0, the default: for a while"}
#define BENCH_SECONDS(to)                                                                    \
    {"seconds", 's', "S", .number = (to), .max = 3600, .help = "for how long, without --repeat"}
#define BENCH_NO_VERIFY(to)                                                                  \
    {"no-verify", 0, NULL, .flag = (to),                                                     \
     .help = "do not compare with plain loops in double first"}
/* clang-format on */

/* A number in [-1, 1); *seed goes on. */
double bench_random(uint64_t *seed);
/* n numbers in [-1, 1), the same ones for the same seed; their count is the product of dim[rank]. */
int bench_numbers(att_ctx *ctx, float **out, uint64_t seed, int rank, const int64_t *dim);

typedef struct bench_times {
    double best, median; /* seconds */
    int64_t repeat;
    double peak; /* FLOP/s, multiply-adds in registers, the best of before and after */
} bench_times;

/* Smallest first. */
void bench_sort(double *x, int64_t n);

/* Runs once(arg) for warmth, then measures it: so often, or, where repeat is 0, for so long and at least five times. */
int bench_measure(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg, bench_times *out);

typedef struct bench_reading {
    double share; /* of the rate at which memory is read, by what is measured; median */
    double rate;  /* that one, bytes a second; median */
} bench_reading;

/* Runs once(arg), which reads so many bytes, by turns with a pass over memory that caches do not hold; as often as
 * bench_measure. What it reads lies in memory then, too. */
int bench_read(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg, double bytes,
               bench_reading *out);

/* The report: text under `title`, or one line of JSON with the members of `row`, which is taken over. error: the
 * largest one found, relative to what rounding allows; negative: not verified. */
int bench_report(const att_ctx *ctx, const char *name, const char *title, json_t *row, double flops,
                 const bench_times *t, double error, bool json);

/* x, or null: JSON has no NaN and no infinity. */
json_t *bench_real(double x);

/* How far `x` is from `reference`, in units of `bound`; more than 1 is wrong. */
double bench_error(double x, double reference, double bound);

#endif
