/* Softmax of each row */
#include "tape/tape.h"

typedef struct softmax_job {
    const att_kernels *k;
    const float *x;
    float *y; /* both [rows, features] */
    int64_t features;
} softmax_job;

static void softmax(const void *arg, int64_t first, int64_t last)
{
    const softmax_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->softmax(j->features, j->x + i, j->y + i);
}

/* ---- backward: dx = y (dy - sum(y dy)) */

typedef struct softmax_backward_job {
    const att_kernels *k;
    const float *y, *dy;
    float *dx; /* all [rows, features] */
    int64_t features;
} softmax_backward_job;

static void softmax_back(const void *arg, int64_t first, int64_t last)
{
    const softmax_backward_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->softmax_back(j->features, j->y + i, j->dy + i, j->dx + i);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *y = &s->y->value;
    const softmax_backward_job j = {att_kernels_of(t->ctx->isa), y->data, s->y->grad, att_tape_grad(s->in[0]),
                                    y->dim[y->rank - 1]};
    att_tape_for_rows(t->ctx, att_tape_rows(y), j.features, softmax_back, &j);
    return ATT_OK;
}

const att_operation att_operation_softmax = {.name = "softmax", .backward = backward};

/* ---- forward */

att_var *att_softmax(att_tape *t, att_var *x)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const softmax_job j = {att_kernels_of(t->ctx->isa), x->value.data, y->value.data, x->value.dim[x->value.rank - 1]};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), j.features, softmax, &j);
    return att_tape_done(t, &(const att_step){.op = &att_operation_softmax, .y = y, .in = &x, .n_in = 1}, NULL, NULL);
}
