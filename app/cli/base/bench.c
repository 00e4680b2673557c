#include "bench.h"
#include "progress.h"

#include <math.h>
#include <stdlib.h>

int bench_numbers(att_ctx *ctx, float **out, uint64_t seed, int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, dim[i], &n))
            n = INT64_MAX / 8; /* more than any machine has */
    *out = att_alloc(ctx, (size_t)n, sizeof **out);
    if (!*out)
        return cli_fail("no memory for %.3g numbers", (double)n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        (*out)[i] = (float)((double)(seed >> 40) / (1 << 23) - 1);
    }
    return CLI_DONE;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int bench_measure(att_ctx *ctx, int64_t repeat, int (*once)(void *arg), void *arg, bench_times *out)
{
    enum { MOST = 100000, LEAST = 5 };
    int64_t most = repeat ? repeat : MOST, n = 0;
    double *times = malloc((size_t)most * sizeof *times), peak = 0;
    int code = times ? once(arg) : cli_fail_memory();
    if (!code)
        code = cli_status(ctx, att_measure_peak(ctx, &out->peak));
    for (double begin = cli_seconds(), now = begin; !code && n < most; n++) {
        if (!repeat && n >= LEAST && now - begin > 1)
            break;
        code = cli_signal ? CLI_INTERRUPTED : once(arg);
        double end = cli_seconds();
        times[n] = end - now;
        now = end;
    }
    if (!code)
        code = cli_status(ctx, att_measure_peak(ctx, &peak));
    if (!code) {
        qsort(times, (size_t)n, sizeof *times, ascending);
        out->best = times[0];
        out->median = n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
        out->repeat = n;
        out->peak = peak > out->peak ? peak : out->peak;
    }
    free(times);
    return code;
}

/* {"m": 8, "n": 8} as m 8, n 8 */
static void print_shape(const char *shape)
{
    for (; *shape; shape++)
        if (*shape != '"' && *shape != ':')
            putchar(*shape);
}

void bench_report(const att_ctx *ctx, const char *name, const char *shape, double flops, const bench_times *t,
                  double error, bool json)
{
    double rate = flops / t->best, share = rate / t->peak;
    if (json) {
        printf(
            "{\"bench\": \"%s\", %s, \"threads\": %d, \"isa\": \"%s\", \"repeat\": %lld, \"ms\": %.6g, "
            "\"median_ms\": %.6g, \"gflops\": %.6g, \"peak_gflops\": %.6g, \"peak_share\": %.4f, \"verified\": %s}\n",
            name, shape, att_threads(ctx), att_isa(ctx), (long long)t->repeat, 1e3 * t->best, 1e3 * t->median,
            1e-9 * rate, 1e-9 * t->peak, share, error < 0 ? "false" : "true");
        return;
    }
    printf("%s ", name);
    print_shape(shape);
    printf(", %s, threads %d\n", att_isa(ctx), att_threads(ctx));
    if (error >= 0)
        printf("  verified: the largest error is %.2g of what rounding allows\n", error);
    printf("  best %.4g ms, median %.4g ms of %lld\n", 1e3 * t->best, 1e3 * t->median, (long long)t->repeat);
    printf("  %.1f GFLOP/s, %.1f %% of the %.1f that multiply-adds reach here\n", 1e-9 * rate, 100 * share,
           1e-9 * t->peak);
}

double bench_error(double x, double reference, double bound)
{
    double difference = fabs(x - reference);
    return isnan(x) ? INFINITY : difference == 0 ? 0 : difference / bound;
}
