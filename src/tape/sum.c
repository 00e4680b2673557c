/* Sums and means over one dimension, or over all */
#include "tape/tape.h"

/* ---- backward: dx = dy / divisor, the same along the dimension */

typedef struct sum_saved {
    int64_t outer, n, inner;
    float divisor;
} sum_saved;

static att_status backward(att_tape *t, const att_step *s)
{
    const sum_saved *how = s->saved;
    float divisor = how->divisor, *to = att_tape_dx(t, s->in[0]);
    if (!to)
        return ATT_ERR_MEMORY;
    const att_tensor dy = {.data = s->y->grad, .rank = 3, .dim = {how->outer, 1, how->inner}},
                     dx = {.data = to, .rank = 3, .dim = {how->outer, how->n, how->inner}},
                     by = {.data = &divisor}; /* of rank 0 */
    att_tape_binary(t->ctx, att_binary_div, &dy, &by, &dx);
    att_tape_dx_end(t, s->in[0], to);
    return ATT_OK;
}

const att_operation att_operation_sum = {.name = "sum", .backward = backward, .ignores_y = true, .ignores_in = 1};
const att_operation att_operation_mean = {.name = "mean", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

/* Finds the shape of x without dimension dim; [1] if none is left, or dim is ATT_ALL_DIMS. False: x has no such
 * dimension. */
static bool shape_without(const att_tensor *x, int dim, att_tensor *y, sum_saved *how)
{
    *how = (sum_saved){1, att_count(x), 1, 1};
    *y = (att_tensor){.rank = 1, .dim = {1}};
    if (dim == ATT_ALL_DIMS)
        return true;
    const int at = att_tape_dim(x, dim, &how->outer, &how->inner);
    if (at < 0)
        return false;
    how->n = x->dim[at];
    if (x->rank > 1)
        y->rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != at)
            y->dim[y->rank++] = x->dim[i];
    return true;
}

static att_var *reduce(att_tape *t, const att_operation *op, att_var *x, int dim)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_tensor shape;
    sum_saved how;
    if (!shape_without(&x->value, dim, &shape, &how))
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: dim = %d but x is %s", op->name, dim,
                             att_shape_of(&x->value).text);
    att_var *y = att_tape_var(t, shape.rank, shape.dim);
    if (!y)
        return NULL;
    const int64_t divisor = op == &att_operation_mean ? att_max(how.n, 1) : 1;
    how.divisor = (float)divisor;
    att_tape_sum_dim(t->ctx, how.outer, how.n, how.inner, (double)divisor, x->value.data, y->value.data);
    return att_tape_end(t, op, y, &x, 1, &how, sizeof how);
}

att_var *att_sum(att_tape *t, att_var *x, int dim) { return reduce(t, &att_operation_sum, x, dim); }
att_var *att_mean(att_tape *t, att_var *x, int dim) { return reduce(t, &att_operation_mean, x, dim); }
