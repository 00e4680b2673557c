/* Rows of tensors: their number, and loops over ranges of rows and of columns. */
#include "tape/tape.h"

int64_t att_tape_rows(const att_tensor *x)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank - 1; i++)
        n *= x->dim[i];
    return n;
}

bool att_same_shape(const att_tensor *a, const att_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

typedef struct range_job {
    void (*body)(const void *arg, int64_t first, int64_t last);
    const void *arg;
    int64_t count, grain;
} range_job;

static void run_range(void *arg, int i)
{
    const range_job *job = arg;
    const int64_t first = i * job->grain, last = first + job->grain;
    job->body(job->arg, first, last < job->count ? last : job->count);
}

static void for_ranges(att_ctx *ctx, int64_t count, int64_t grain,
                       void (*body)(const void *arg, int64_t first, int64_t last), const void *arg)
{
    range_job job = {.body = body, .arg = arg, .count = count, .grain = grain};
    att_parallel_for(ctx, (int)att_ceil_div(count, grain), run_range, &job);
}

void att_tape_for_rows(att_ctx *ctx, int64_t rows, int64_t features,
                       void (*body)(const void *arg, int64_t first, int64_t last), const void *arg)
{
    enum { WORTH = 16384 };
    for_ranges(ctx, rows, features < WORTH / 2 ? WORTH / (features > 0 ? features : 1) : 1, body, arg);
}

void att_tape_for_columns(att_ctx *ctx, int64_t columns, void (*body)(const void *arg, int64_t first, int64_t last),
                          const void *arg)
{
    for_ranges(ctx, columns, 64, body, arg);
}
