/* Pooling of sequences: the mean, the first or the maximum of each sequence's rows. */
#include "tape/tape.h"

#include <string.h>

typedef struct pool_saved {
    const int64_t *offsets; /* [n + 1] */
    att_pooling kind;
} pool_saved;

typedef struct pool_job {
    pool_saved of;
    const att_kernels *k;
    const float *x, *dy; /* [tokens, features], [n, features] */
    float *y, *dx;       /* as dy, as x */
    float *share;        /* as dy */
    int64_t features;
} pool_job;

static void pool_one(const pool_job *j, int64_t sequence)
{
    const int64_t f = j->features, first = j->of.offsets[sequence], last = j->of.offsets[sequence + 1];
    float *y = j->y + sequence * f;
    if (first == last) {
        memset(y, 0, (size_t)f * sizeof *y);
        return;
    }
    memcpy(y, j->x + first * f, (size_t)f * sizeof *y);
    if (j->of.kind == ATT_POOLING_CLS)
        return;
    void (*const merge)(int64_t, const float *, const float *, float *) =
        j->of.kind == ATT_POOLING_MAX ? j->k->vector.max : j->k->vector.add;
    for (int64_t i = first + 1; i < last; i++)
        merge(f, y, j->x + i * f, y);
    if (j->of.kind == ATT_POOLING_MEAN)
        j->k->vector.scale(f, 1.0f / (float)(last - first), y, y);
}

static void pool(const void *arg, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        pool_one(arg, i);
}

static bool check(att_tape *t, const att_tensor *x, const int64_t *offsets, int64_t n, att_pooling kind)
{
    if (x->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "pool: x is %s, not [tokens, features]", att_shape_of(x).text);
    else if ((unsigned)kind > ATT_POOLING_MAX)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "pool: %d is not a pooling", (int)kind);
    else
        att_tape_check_offsets(t, "pool", x, offsets, n);
    return !t->status;
}

/* ---- backward */

static void mean_back(const pool_job *j, int64_t first, int64_t last, const float *dy, float *share)
{
    const int64_t f = j->features;
    j->k->vector.scale(f, 1.0f / (float)(last - first), dy, share);
    for (int64_t i = first * f; i < last * f; i += f)
        j->k->vector.add(f, j->dx + i, share, j->dx + i);
}

/* Adds the gradient to the first maximum, or to a NaN. */
static void max_back(const pool_job *j, int64_t first, int64_t last, const float *dy)
{
    const int64_t f = j->features;
    for (int64_t d = 0; d < f; d++) {
        int64_t top = first;
        for (int64_t i = first + 1; i < last && j->x[top * f + d] == j->x[top * f + d]; i++)
            if (!(j->x[i * f + d] <= j->x[top * f + d]))
                top = i;
        j->dx[top * f + d] += dy[d];
    }
}

static void pool_back(const void *arg, int64_t from, int64_t to)
{
    const pool_job *j = arg;
    for (int64_t i = from; i < to; i++) {
        const int64_t first = j->of.offsets[i], last = j->of.offsets[i + 1], f = j->features;
        const float *dy = j->dy + i * f;
        if (first == last)
            continue;
        if (j->of.kind == ATT_POOLING_MEAN)
            mean_back(j, first, last, dy, j->share + i * f);
        else if (j->of.kind == ATT_POOLING_MAX)
            max_back(j, first, last, dy);
        else
            j->k->vector.add(f, j->dx + first * f, dy, j->dx + first * f);
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

att_var *att_pool(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, att_pooling kind)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, offsets, n, kind))
        return NULL;
    const int64_t tokens = x->value.dim[0], features = x->value.dim[1];
    att_var *y = att_tape_var(t, 2, (const int64_t[]){n, features});
    if (!y)
        return NULL;
    pool_saved saved = {offsets, kind};
    const pool_job j = {
        .of = saved, .k = att_kernels_of(t->ctx->isa), .x = x->value.data, .y = y->value.data, .features = features};
    att_tape_for_rows(t->ctx, n, n > 0 ? tokens * features / n : 0, pool, &j);
    saved.offsets = att_tape_save(t, offsets, (size_t)(n + 1) * sizeof *offsets);
    return att_tape_end(t, &att_operation_pool, y, &x, 1, &saved, sizeof saved);
}
