#include "bench.h"
#include "cli/base/json.h"
#include "cli/base/progress.h"
#include "attend_util.h"

#include <math.h>
#include <stdlib.h>

double bench_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (double)(*seed >> 40) / (1 << 23) - 1;
}

int bench_numbers(att_ctx *ctx, float **out, uint64_t seed, int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, dim[i], &n))
            n = INT64_MAX / 8; /* more than any machine has */
    *out = att_alloc(ctx, (size_t)n, sizeof **out);
    if (!*out)
        return cli_fail("no memory for %.3g numbers", (double)n);
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = (float)bench_random(&seed);
    return CLI_DONE;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *x, int64_t n) { qsort(x, (size_t)n, sizeof *x, ascending); }

int bench_measure(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg, bench_times *out)
{
    enum { MAX = 100000, MIN = 5 };
    const int64_t max = repeat ? repeat : MAX;
    int64_t n = 0;
    double *times = malloc((size_t)max * sizeof *times), peak = 0, warm = cli_seconds();
    int code = times ? once(arg) : cli_fail_memory();
    if (!code)
        code = cli_status(ctx, att_measure_peak(ctx, cli_seconds() - warm, &out->peak));
    for (double begin = cli_seconds(), now = begin; !code && n < max; n++) {
        if (!repeat && n >= MIN && now - begin > seconds)
            break;
        code = once(arg);
        double end = cli_seconds();
        times[n] = end - now;
        now = end;
    }
    if (!code) {
        bench_sort(times, n);
        code = cli_status(ctx, att_measure_peak(ctx, times[0], &peak));
    }
    if (!code) {
        out->best = times[0];
        out->median = n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
        out->repeat = n;
        out->peak = peak > out->peak ? peak : out->peak;
    }
    free(times);
    return code;
}

int bench_report(const att_ctx *ctx, const char *name, const char *title, json_t *row, double flops,
                 const bench_times *t, double error, bool json)
{
    double rate = flops / t->best, share = rate / t->peak;
    int code = CLI_DONE;
    if (json) {
        json_t *all = json_pack("{s:s}", "bench", name);
        json_t *times =
            json_pack("{s:i, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:b}", "threads", att_threads(ctx), "isa", att_isa(ctx),
                      "repeat", (json_int_t)t->repeat, "ms", bench_real(1e3 * t->best), "median_ms",
                      bench_real(1e3 * t->median), "gflops", bench_real(1e-9 * rate), "peak_gflops",
                      bench_real(1e-9 * t->peak), "peak_share", bench_real(share), "verified", error >= 0);
        if (!row || json_object_update(all, row) || json_object_update(all, times))
            code = cli_fail_memory();
        else
            code = cli_json_value(&(cli_json){.file = stdout}, NULL, all, JSON_REAL_PRECISION(7));
        fputs(code ? "" : "\n", stdout);
        json_decref(times);
        json_decref(all);
    } else {
        printf("%s %s, %s, threads %d\n", name, title, att_isa(ctx), att_threads(ctx));
        if (error >= 0)
            printf("  verified: the largest error is %.2g of what rounding allows\n", error);
        printf("  best %.4g ms, median %.4g ms of %lld\n", 1e3 * t->best, 1e3 * t->median, (long long)t->repeat);
        printf("  %.1f GFLOP/s, %.1f %% of the %.1f that multiply-adds reach here\n", 1e-9 * rate, 100 * share,
               1e-9 * t->peak);
    }
    json_decref(row);
    return code;
}

json_t *bench_real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

double bench_error(double x, double reference, double bound)
{
    double difference = fabs(x - reference);
    return isnan(x) ? INFINITY : difference == 0 ? 0 : difference / bound;
}
