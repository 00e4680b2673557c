/* Softmax of each row */
#include "tape/tape.h"

static void softmax(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->layer.softmax(j->features, j->a + i, j->y + i);
}

/* ---- backward: dx = y (dy - sum(y dy)) */

static void softmax_back(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->layer.softmax_back(j->features, j->a + i, j->b + i, j->y + i);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *y = &s->y->value;
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa),
                           .features = y->dim[y->rank - 1],
                           .a = y->data,
                           .b = s->y->grad,
                           .y = att_tape_grad(s->in[0])};
    att_tape_for_rows(t->ctx, att_tape_rows(y), j.features, softmax_back, &j);
    return ATT_OK;
}

const att_operation att_operation_softmax = {.name = "softmax", .backward = backward};

/* ---- forward */

att_var *att_softmax(att_tape *t, att_var *x)
{
    att_var *y = att_tape_like(t, x);
    if (!y)
        return NULL;
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa),
                           .features = x->value.dim[x->value.rank - 1],
                           .a = x->value.data,
                           .y = y->value.data};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), j.features, softmax, &j);
    return att_tape_end(t, &att_operation_softmax, y, &x, 1, NULL, 0);
}
