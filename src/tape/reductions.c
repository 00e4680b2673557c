/* Sums that operations share, each in an order that depends only on the shapes. */
#include "tape/tape.h"

#include <string.h>

static void add_range(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.add(last - first, j->y + first, j->a + first, j->y + first);
}

void att_tape_sum(att_ctx *ctx, int64_t count, const float *x, float *y)
{
    const att_row_job j = {.k = att_kernels_of(ctx->isa), .a = x, .y = y};
    att_tape_for_rows(ctx, count, 1, add_range, &j);
}

typedef struct rows_job {
    const att_kernels *k;
    int64_t rows, columns;
    const float *x; /* [rows, columns] */
    float *y;       /* [columns] */
} rows_job;

static void sum_rows(const void *arg, int64_t first, int64_t last)
{
    const rows_job *j = arg;
    for (int64_t i = 0; i < j->rows; i++)
        j->k->vector.add(last - first, j->y + first, j->x + i * j->columns + first, j->y + first);
}

void att_tape_sum_rows(att_ctx *ctx, int64_t rows, int64_t columns, const float *x, float *y)
{
    const rows_job j = {att_kernels_of(ctx->isa), rows, columns, x, y};
    att_tape_for_columns(ctx, columns, sum_rows, &j);
}

typedef struct total_job {
    int64_t n, divisor;
    const float *x;
    float *y;
} total_job;

static void total(const void *arg, int64_t first, int64_t last)
{
    (void)first, (void)last;
    const total_job *j = arg;
    double sum = 0;
    for (int64_t i = 0; i < j->n; i++)
        sum += (double)j->x[i];
    *j->y = (float)(sum / (double)j->divisor);
}

void att_tape_total(att_ctx *ctx, int64_t n, const float *x, int64_t divisor, float *y)
{
    const total_job j = {n, divisor, x, y};
    att_tape_for_rows(ctx, 1, 1, total, &j);
}

/* ---- over one dimension */

typedef struct sum_job {
    const att_kernels *k;
    int64_t n, inner, blocks; /* blocks: number of blocks of columns in inner */
    double divisor;
    const float *x; /* [outer, n, inner] */
    float *y;       /* [outer, inner] */
} sum_job;

enum { COLUMNS = 64, ROWS = 64, RUN = 4096 };

/* Sums n adjacent numbers: runs in the order of the kernel, then the sums of runs in ascending order in double. */
static void sum_runs(const void *arg, int64_t first, int64_t last)
{
    const sum_job *j = arg;
    for (int64_t o = first; o < last; o++) {
        double total = 0;
        for (int64_t i = 0; i < j->n; i += RUN)
            total += (double)j->k->vector.sum(att_min(j->n - i, RUN), j->x + o * j->n + i);
        j->y[o] = (float)(total / j->divisor);
    }
}

/* Sums n rows in a block of columns, in which narrow rows are side by side: each 64 rows of the block, then these sums,
 * in ascending order, so that an error grows with 64 + n / 64 roundings. */
static void sum_columns(const void *arg, int64_t first, int64_t last)
{
    const sum_job *j = arg;
    const int64_t inner = j->inner, fold = att_max(COLUMNS / inner, 1), rows = j->n / fold, rest = j->n % fold;
    for (int64_t task = first; task < last; task++) {
        const int64_t o = task / j->blocks, at = task % j->blocks * COLUMNS, columns = att_min(inner - at, COLUMNS);
        const float *x = j->x + o * j->n * inner + at;
        float part[COLUMNS], total[COLUMNS] = {0};
        for (int64_t i = 0; i < rows; i += ROWS) {
            memset(part, 0, sizeof part);
            for (int64_t r = i; r < att_min(i + ROWS, rows); r++)
                j->k->vector.add(columns * fold, part, x + r * fold * inner, part);
            j->k->vector.add(columns * fold, total, part, total);
        }
        if (rest > 0)
            j->k->vector.add(columns * rest, total, x + rows * fold * inner, total);
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t f = 1; f < fold; f++)
                total[c] += total[f * inner + c];
            j->y[o * inner + at + c] = (float)((double)total[c] / j->divisor);
        }
    }
}

void att_tape_sum_dim(att_ctx *ctx, int64_t outer, int64_t n, int64_t inner, double divisor, const float *x, float *y)
{
    const sum_job j = {att_kernels_of(ctx->isa), n, inner, att_ceil_div(inner, COLUMNS), divisor, x, y};
    if (inner == 1)
        att_tape_for_rows(ctx, outer, n, sum_runs, &j);
    else
        att_tape_for_rows(ctx, outer * j.blocks, n * att_min(inner, COLUMNS), sum_columns, &j);
}
