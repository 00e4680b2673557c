/* Concatenation along a dimension */
#include "tape/tape.h"

#include <string.h>

/* ---- backward: each input has its slice */

static att_status backward(att_tape *t, const att_step *s)
{
    const int *saved = s->saved; /* the dimension */
    const att_tensor *y = &s->y->value;
    int64_t outer, inner, at = 0;
    const int dim = att_tape_dim(y, *saved, &outer, &inner);
    for (int i = 0; i < s->n_in; i++) {
        const int64_t n = s->in[i]->value.dim[dim] * inner;
        bool add;
        float *dx = att_tape_grad_for_write(s->in[i], &add);
        if (dx)
            att_tape_blocks(t->ctx, outer, n, s->y->grad + at, y->dim[dim] * inner, dx, n, add);
        at += n;
    }
    return ATT_OK;
}

const att_operation att_operation_concat = {.name = "concat", .backward = backward};

/* ---- forward */

/* Finds the shape of the result; makes *dim nonnegative. */
static bool shape_of(att_tape *t, int n, att_var *const *x, int *dim, att_tensor *y)
{
    *y = x[0]->value;
    int64_t outer, inner;
    const int at = att_tape_dim(y, *dim, &outer, &inner);
    if (at < 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "concat: dim = %d but x[0] is %s", *dim, att_shape_of(y).text);
    for (int i = 1; i < n; i++) {
        att_tensor other = x[i]->value;
        const int64_t more = at < other.rank ? other.dim[at] : 0;
        other.dim[at] = y->dim[at];
        if (!att_same_shape(&other, y))
            return att_tape_fail(t, ATT_ERR_SHAPE, "concat: x[0] is %s but x[%d] is %s: only dimension %d may differ",
                                 att_shape_of(&x[0]->value).text, i, att_shape_of(&x[i]->value).text, at);
        y->dim[at] += more;
    }
    *dim = at;
    return true;
}

att_var *att_concat(att_tape *t, int n, att_var *const *x, int dim)
{
    if (!att_tape_ready(t))
        return NULL;
    if (n < 1 || !x)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, x ? "concat: n is %d, less than 1" : "concat: x is NULL, but n is %d",
                             n);
    for (int i = 0; i < n; i++)
        if (!x[i])
            return NULL;
    att_tensor shape;
    if (!shape_of(t, n, x, &dim, &shape))
        return NULL;
    att_var *y = att_tape_var(t, shape.rank, shape.dim);
    if (!y)
        return NULL;
    int64_t outer, inner;
    att_tape_dim(&shape, dim, &outer, &inner);
    float *to = y->value.data;
    for (int i = 0; i < n; i++) {
        const int64_t part = x[i]->value.dim[dim] * inner;
        att_tape_blocks(t->ctx, outer, part, x[i]->value.data, part, to, shape.dim[dim] * inner, false);
        to += part;
    }
    return att_tape_end(t, &att_operation_concat, y, x, n, &dim, sizeof dim);
}
