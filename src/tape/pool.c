/* Pooling of sequences: the mean, the first or the maximum of the rows of each */
#include "tape/tape.h"

#include <string.h>

typedef struct pool_job {
    const att_kernels *k;
    const float *x;         /* [tokens, features] */
    const int64_t *offsets; /* [n + 1] */
    float *y;               /* [n, features] */
    int64_t features;
    att_pooling kind;
} pool_job;

static void pool_one(const pool_job *j, int64_t sequence)
{
    const int64_t f = j->features, first = j->offsets[sequence], last = j->offsets[sequence + 1];
    float *y = j->y + sequence * f;
    if (first == last) {
        memset(y, 0, (size_t)f * sizeof *y);
        return;
    }
    memcpy(y, j->x + first * f, (size_t)f * sizeof *y);
    if (j->kind == ATT_POOL_CLS)
        return;
    void (*const merge)(int64_t, const float *, const float *, float *) =
        j->kind == ATT_POOL_MAX ? j->k->max : j->k->add;
    for (int64_t i = first + 1; i < last; i++)
        merge(f, y, j->x + i * f, y);
    if (j->kind == ATT_POOL_MEAN)
        j->k->scale(f, 1.0f / (float)(last - first), y, y);
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
    else if ((unsigned)kind > ATT_POOL_MAX)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "pool: %d is no pooling", (int)kind);
    else
        att_tape_check_offsets(t, "pool", x, offsets, n);
    return !t->status;
}

/* ---- backward */

typedef struct pool_saved {
    const int64_t *offsets; /* [n + 1] */
    att_pooling kind;
} pool_saved;

typedef struct pool_backward_job {
    const att_kernels *k;
    const float *x, *dy;    /* [tokens, features], [n, features] */
    const int64_t *offsets; /* [n + 1] */
    float *dx;              /* [tokens, features] */
    float *share;           /* [n, features] */
    int64_t features;
    att_pooling kind;
} pool_backward_job;

static void mean_back(const pool_backward_job *j, int64_t first, int64_t last, const float *dy, float *share)
{
    const int64_t f = j->features;
    j->k->scale(f, 1.0f / (float)(last - first), dy, share);
    for (int64_t i = first * f; i < last * f; i += f)
        j->k->add(f, j->dx + i, share, j->dx + i);
}

/* The gradient goes to the first maximum, or to a NaN. */
static void max_back(const pool_backward_job *j, int64_t first, int64_t last, const float *dy)
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
    const pool_backward_job *j = arg;
    for (int64_t i = from; i < to; i++) {
        const int64_t first = j->offsets[i], last = j->offsets[i + 1], f = j->features;
        const float *dy = j->dy + i * f;
        if (first == last)
            continue;
        if (j->kind == ATT_POOL_MEAN)
            mean_back(j, first, last, dy, j->share + i * f);
        else if (j->kind == ATT_POOL_MAX)
            max_back(j, first, last, dy);
        else
            j->k->add(f, j->dx + first * f, dy, j->dx + first * f);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const pool_saved *saved = s->saved;
    const int64_t n = s->y->value.dim[0], features = s->y->value.dim[1], tokens = s->in[0]->value.dim[0];
    const pool_backward_job j = {.k = att_kernels_of(t->ctx->isa),
                                 .x = s->in[0]->value.data,
                                 .dy = s->y->grad,
                                 .offsets = saved->offsets,
                                 .dx = att_tape_grad(s->in[0]),
                                 .share = att_tape_scratch(t, (size_t)(n * features)),
                                 .features = features,
                                 .kind = saved->kind};
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
    const pool_job j = {.k = att_kernels_of(t->ctx->isa),
                        .x = x->value.data,
                        .offsets = offsets,
                        .y = y->value.data,
                        .features = features,
                        .kind = kind};
    att_tape_for_rows(t->ctx, n, n > 0 ? tokens * features / n : 0, pool, &j);
    const pool_saved saved = {.offsets = att_tape_save(t, offsets, (size_t)(n + 1) * sizeof *offsets), .kind = kind};
    const att_step step = {
        .op = &att_operation_pool, .y = y, .in = &x, .n_in = 1, .saved = &saved, .saved_bytes = sizeof saved};
    return att_tape_done(t, &step, NULL, NULL);
}
