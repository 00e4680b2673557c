/* Dot products over the last dimension */
#include "tape/tape.h"

static void dot(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first; i < last; i++)
        j->y[i] = j->k->vector.dot(j->features, j->a + i * j->features, j->b + i * j->features);
}

/* ---- backward: da = dy b, db = dy a */

static void dot_back(const void *arg, int64_t first, int64_t last) /* a: dy, b: the other operand */
{
    const att_row_job *j = arg;
    for (int64_t i = first; i < last; i++)
        j->k->vector.scale(j->features, j->a[i], j->b + i * j->features, j->y + i * j->features);
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
        const att_row_job j = {.k = att_kernels_of(t->ctx->isa),
                               .features = x->dim[x->rank - 1],
                               .a = s->y->grad,
                               .b = s->in[1 - i]->value.data,
                               .y = dx};
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
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa),
                           .features = x->dim[x->rank - 1],
                           .a = x->data,
                           .b = b->value.data,
                           .y = y->value.data};
    att_tape_for_rows(t->ctx, att_tape_rows(x), j.features, dot, &j);
    return att_tape_end(t, &att_operation_dot, y, (att_var *[]){a, b}, 2, NULL, 0);
}
