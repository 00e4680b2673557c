/* Pooling of sequences: a mean, the maximum, the first or the last of the rows of each */
#include "tape/tape.h"

#include <math.h>
#include <string.h>

typedef struct pool_saved {
    const int64_t *offsets; /* [n + 1] */
    att_pooling kind;
    int64_t skip;
} pool_saved;

typedef struct pool_job {
    pool_saved of;
    const att_kernels *k;
    const float *x, *dy; /* [tokens, features], [n, features] */
    float *y, *dx;       /* as dy, as x */
    float *share;        /* as dy */
    int64_t features;
} pool_job;

/* The rows [first, last) of a sequence that are pooled, which begins with row `start` */
typedef struct pool_rows {
    int64_t start, first, last;
} pool_rows;

static pool_rows rows_of(const pool_saved *of, int64_t sequence)
{
    const int64_t start = of->offsets[sequence], last = of->offsets[sequence + 1];
    const bool none = of->skip >= last - start;
    if (none && of->kind == ATT_POOLING_CLS)
        return (pool_rows){start, start, last};
    return (pool_rows){start, none ? last : start + of->skip, last};
}

/* The factor of row i. Sums of weights are exact up to 2^26 rows. */
static float weight(att_pooling kind, pool_rows r, int64_t i)
{
    const double n = (double)(r.last - r.first), first = (double)(r.first - r.start);
    switch (kind) {
    case ATT_POOLING_MEAN:
        return 1.0f / (float)(r.last - r.first);
    case ATT_POOLING_MEAN_SQRT:
        return (float)(1 / sqrt(n));
    case ATT_POOLING_WEIGHTED_MEAN:
        return (float)((double)(i - r.start + 1) / (n * first + n * (n + 1) / 2));
    default:
        return 1;
    }
}

static void weighted_mean(const pool_job *j, pool_rows r, float *y)
{
    const int64_t f = j->features;
    memset(y, 0, (size_t)f * sizeof *y);
    for (int64_t i = r.first; i < r.last; i++) {
        const float *x = j->x + i * f, w = weight(j->of.kind, r, i);
        for (int64_t d = 0; d < f; d++)
            y[d] += w * x[d];
    }
}

static void pool_one(const pool_job *j, int64_t sequence)
{
    const int64_t f = j->features;
    const pool_rows r = rows_of(&j->of, sequence);
    float *y = j->y + sequence * f;
    if (r.first == r.last) {
        memset(y, 0, (size_t)f * sizeof *y);
        return;
    }
    if (j->of.kind == ATT_POOLING_WEIGHTED_MEAN) {
        weighted_mean(j, r, y);
        return;
    }
    memcpy(y, j->x + (j->of.kind == ATT_POOLING_LAST ? r.last - 1 : r.first) * f, (size_t)f * sizeof *y);
    if (j->of.kind == ATT_POOLING_CLS || j->of.kind == ATT_POOLING_LAST)
        return;
    void (*const merge)(int64_t, const float *, const float *, float *) =
        j->of.kind == ATT_POOLING_MAX ? j->k->vector.max : j->k->vector.add;
    for (int64_t i = r.first + 1; i < r.last; i++)
        merge(f, y, j->x + i * f, y);
    if (j->of.kind != ATT_POOLING_MAX)
        j->k->vector.scale(f, weight(j->of.kind, r, r.first), y, y);
}

static void pool(const void *arg, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        pool_one(arg, i);
}

static bool check(att_tape *t, const att_tensor *x, const int64_t *offsets, int64_t n, att_pooling kind, int64_t skip)
{
    if (x->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "pool: x is %s, not [tokens, features]", att_shape_of(x).text);
    else if ((unsigned)kind > ATT_POOLING_LAST)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "pool: %d is not a pooling", (int)kind);
    else if (skip < 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "pool: skip is %lld, less than 0", (long long)skip);
    else
        att_tape_check_offsets(t, "pool", x, offsets, n);
    return !t->status;
}

/* ---- backward */

static void sum_back(const pool_job *j, pool_rows r, const float *dy, float *share)
{
    const int64_t f = j->features;
    for (int64_t i = r.first; i < r.last; i++) {
        if (i == r.first || j->of.kind == ATT_POOLING_WEIGHTED_MEAN)
            j->k->vector.scale(f, weight(j->of.kind, r, i), dy, share);
        j->k->vector.add(f, j->dx + i * f, share, j->dx + i * f);
    }
}

/* Adds the gradient to the first maximum, or to a NaN. */
static void max_back(const pool_job *j, pool_rows r, const float *dy)
{
    const int64_t f = j->features;
    for (int64_t d = 0; d < f; d++) {
        int64_t top = r.first;
        for (int64_t i = r.first + 1; i < r.last && j->x[top * f + d] == j->x[top * f + d]; i++)
            if (!(j->x[i * f + d] <= j->x[top * f + d]))
                top = i;
        j->dx[top * f + d] += dy[d];
    }
}

static void pool_back(const void *arg, int64_t from, int64_t to)
{
    const pool_job *j = arg;
    const att_pooling kind = j->of.kind;
    for (int64_t i = from; i < to; i++) {
        const pool_rows r = rows_of(&j->of, i);
        const int64_t f = j->features, row = kind == ATT_POOLING_LAST ? r.last - 1 : r.first;
        const float *dy = j->dy + i * f;
        if (r.first == r.last)
            continue;
        if (kind == ATT_POOLING_MAX)
            max_back(j, r, dy);
        else if (kind == ATT_POOLING_CLS || kind == ATT_POOLING_LAST)
            j->k->vector.add(f, j->dx + row * f, dy, j->dx + row * f);
        else
            sum_back(j, r, dy, j->share + i * f);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const pool_saved *saved = s->saved;
    const int64_t n = s->y->value.dim[0], features = s->y->value.dim[1], tokens = s->in[0]->value.dim[0];
    const pool_job j = {.of = *saved,
                        .k = att_kernels_of(t->ctx->isa),
                        .x = s->in[0]->value.data,
                        .dy = s->y->grad,
                        .dx = att_tape_grad(s->in[0]),
                        .share = att_tape_scratch(t, (size_t)(n * features)),
                        .features = features};
    if (!j.share)
        return ATT_ERR_MEMORY;
    att_tape_for_rows(t->ctx, n, n > 0 ? tokens * features / n : 0, pool_back, &j);
    return ATT_OK;
}

const att_operation att_operation_pool = {.name = "pool", .backward = backward};

/* ---- forward */

att_var *att_pool(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, att_pooling kind, int64_t skip)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, offsets, n, kind, skip))
        return NULL;
    const int64_t tokens = x->value.dim[0], features = x->value.dim[1];
    att_var *y = att_tape_var(t, 2, (const int64_t[]){n, features});
    if (!y)
        return NULL;
    pool_saved saved = {offsets, kind, skip};
    const pool_job j = {
        .of = saved, .k = att_kernels_of(t->ctx->isa), .x = x->value.data, .y = y->value.data, .features = features};
    att_tape_for_rows(t->ctx, n, n > 0 ? tokens * features / n : 0, pool, &j);
    saved.offsets = att_tape_save(t, offsets, (size_t)(n + 1) * sizeof *offsets);
    return att_tape_end(t, &att_operation_pool, y, &x, 1, &saved, sizeof saved);
}
