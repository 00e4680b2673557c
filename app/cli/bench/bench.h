/* Shared by the benchmarks: random data, timing, the report. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/base/command.h"

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
     .help = "number of measurements; 0, the default: as many as fit into --seconds"}
#define BENCH_SECONDS(to)                                                                    \
    {"seconds", 's', "S", .number = (to), .max = 3600, .help = "duration of the measurements, without --repeat"}
#define BENCH_NO_VERIFY(to)                                                                  \
    {"no-verify", 0, NULL, .flag = (to),                                                     \
     .help = "do not compare the results with plain loops in double first"}
/* clang-format on */

/* Returns the next number in [-1, 1) of the generator whose state is *seed. */
double bench_random(uint64_t *seed);
/* Allocates the product of dim [rank] numbers in [-1, 1), the same ones for the same seed. */
int bench_numbers(att_ctx *ctx, float **out, uint64_t seed, int rank, const int64_t *dim);

typedef struct bench_times {
    double best, median; /* seconds */
    int64_t repeat;
    double peak; /* FLOP/s of multiply-adds in registers, the better one of a run before and a run after */
} bench_times;

/* Sorts x [n] in ascending order. */
void bench_sort(double *x, int64_t n);

/* Runs once(arg) to warm up, then times it: `repeat` times, or if that is 0, for `seconds` and at least five times. */
int bench_measure(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg, bench_times *out);

typedef struct bench_bandwidths {
    double memory; /* read bandwidth of a pass over memory, in bytes per second; median */
    double share;  /* bandwidth of once() relative to that; median */
} bench_bandwidths;

/* Runs once(arg), which reads `bytes` bytes, alternating with a pass over memory larger than the caches, so that once()
 * reads from memory, too; repeat and seconds as in bench_measure. */
int bench_measure_bandwidth(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg,
                            double bytes, bench_bandwidths *out);

/* Prints the report: text under `title`, or a JSON line with the members of `row`, whose reference it takes over.
 * error: the largest error relative to its bound; negative: not verified. */
int bench_report(const att_ctx *ctx, const char *name, const char *title, json_t *row, double flops,
                 const bench_times *t, double error, bool json);

/* x as JSON: null if it is NaN or infinite. */
json_t *bench_real(double x);

/* |x - reference| / bound: more than 1 is wrong. */
double bench_error(double x, double reference, double bound);

#endif
