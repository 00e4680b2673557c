/* The bandwidth of memory, measured in alternation with a benchmark: other users of a machine change it within a
 * second. */
#include "cli/base/progress.h"
#include "bench.h"
#include "attend_util.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM = 1 << 20, ITEMS = 64 }; /* floats, together more than caches hold */

typedef struct memory {
    float *x;                  /* [ITEMS, ITEM] */
    volatile float sum[ITEMS]; /* volatile: x must be read */
} memory;

static void fill(void *arg, int i)
{
    const memory *m = arg;
    memset(m->x + (size_t)i * ITEM, 0, ITEM * sizeof *m->x);
}

/* Reads one number of each cache line, which loads the whole line. */
static void read(void *arg, int i)
{
    enum { LINE = 16, LINES = 4, AHEAD = 1024 };
    memory *m = arg;
    const float *x = m->x + (size_t)i * ITEM;
    float sum[LINES] = {0};
    for (int j = 0; j < ITEM; j += LINES * LINE)
        for (int l = 0; l < LINES; l++) {
            __builtin_prefetch((const void *)((uintptr_t)(x + j + l * LINE) + AHEAD * sizeof *x));
            sum[l] += x[j + l * LINE];
        }
    m->sum[i] = sum[0] + sum[1] + sum[2] + sum[3];
}

int bench_measure_bandwidth(att_ctx *ctx, int64_t repeat, double seconds, int (*once)(void *arg), void *arg,
                            double bytes, bench_bandwidths *out)
{
    enum { MAX = 10000, MIN = 5 };
    const int64_t max = repeat && repeat < MAX ? repeat : MAX;
    memory m = {.x = att_alloc(ctx, ITEMS, ITEM * sizeof *m.x)};
    double *share = malloc(MAX * sizeof *share), *rate = malloc(MAX * sizeof *rate);
    int code = m.x && share && rate ? CLI_DONE : cli_fail_memory(), n = 0;
    if (!code)
        att_parallel_for(ctx, ITEMS, fill, &m);
    const double begin = cli_seconds();
    for (; !code && n < max && (repeat || n < MIN || cli_seconds() - begin < seconds); n++) {
        const double start = cli_seconds();
        code = once(arg);
        const double between = cli_seconds();
        att_parallel_for(ctx, ITEMS, read, &m);
        rate[n] = ITEMS * ITEM * sizeof *m.x / (cli_seconds() - between);
        share[n] = bytes / (between - start) / rate[n];
    }
    if (!code) {
        bench_sort(share, n);
        bench_sort(rate, n);
        *out = (bench_bandwidths){.memory = rate[(n - 1) / 2], .share = share[(n - 1) / 2]};
    }
    free(share), free(rate);
    att_free(ctx, m.x);
    return code;
}
