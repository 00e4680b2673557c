/* Dot products over the last dimension */
#include "tape/tape.h"

typedef struct dot_job {
    const att_kernels *k;
    const float *a, *b; /* [rows, features] */
    float *y;           /* [rows] */
    int64_t features;
} dot_job;

static void dot(const void *arg, int64_t first, int64_t last)
{
    const dot_job *j = arg;
    for (int64_t i = first; i < last; i++)
        j->y[i] = j->k->dot(j->features, j->a + i * j->features, j->b + i * j->features);
}

/* ---- backward: da = dy b, db = dy a */

typedef struct dot_backward_job {
    const att_kernels *k;
    const float *dy, *other; /* [rows], [rows, features] */
    float *dx;               /* [rows, features] */
    int64_t features;
} dot_backward_job;

static void dot_back(const void *arg, int64_t first, int64_t last)
{
    const dot_backward_job *j = arg;
    for (int64_t i = first; i < last; i++)
        j->k->scale(j->features, j->dy[i], j->other + i * j->features, j->dx + i * j->features);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    for (int i = 0; i < 2; i++) {
        if (!s->in[i]->grad)
            continue;
        float *dx = att_tape_dx(t, s->in[i]);
        if (!dx)
            return ATT_ERR_MEMORY;
        const dot_backward_job j = {att_kernels_of(t->ctx->isa), s->y->grad, s->in[1 - i]->value.data, dx,
                                    x->dim[x->rank - 1]};
        att_tape_for_rows(t->ctx, att_tape_rows(x), j.features, dot_back, &j);
        att_tape_dx_end(t, s->in[i], dx);
    }
    return ATT_OK;
}

const att_operation att_operation_dot = {.name = "dot", .backward = backward, .ignores_y = true};

/* ---- forward */

att_var *att_dot(att_tape *t, att_var *a, att_var *b)
{
    if (!a || !b || !att_tape_ready(t))
        return NULL;
    const att_tensor *x = &a->value;
    if (!att_same_shape(x, &b->value))
        return att_tape_fail(t, ATT_ERR_SHAPE, "dot: a is %s but b is %s", att_shape_of(x).text,
                             att_shape_of(&b->value).text);
    att_var *y = x->rank > 1 ? att_tape_var(t, x->rank - 1, x->dim) : att_tape_var(t, 1, (const int64_t[]){1});
    if (!y)
        return NULL;
    const dot_job j = {att_kernels_of(t->ctx->isa), x->data, b->value.data, y->value.data, x->dim[x->rank - 1]};
    att_tape_for_rows(t->ctx, att_tape_rows(x), j.features, dot, &j);
    const att_step step = {.op = &att_operation_dot, .y = y, .in = (att_var *[]){a, b}, .n_in = 2};
    return att_tape_done(t, &step, NULL, NULL);
}
