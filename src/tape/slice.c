/* A slice along a dimension */
#include "tape/tape.h"

/* ---- backward */

typedef struct slice_saved {
    int64_t outer, n, x_stride, from; /* blocks of n elements, x_stride apart in x, the first at `from` */
} slice_saved;

static att_status backward(att_tape *t, const att_step *s)
{
    const slice_saved *k = s->saved;
    float *dx = att_tape_grad(s->in[0]);
    att_tape_blocks(t->ctx, k->outer, k->n, s->y->grad, k->n, dx + k->from, k->x_stride, true);
    return ATT_OK;
}

const att_operation att_operation_slice = {.name = "slice", .backward = backward};

/* ---- forward */

att_var *att_slice(att_tape *t, att_var *x, int dim, int64_t first, int64_t count)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_tensor shape = x->value;
    int64_t outer, inner;
    const int at = att_tape_dim(&shape, dim, &outer, &inner);
    if (at < 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "slice: dim = %d but x is %s", dim, att_shape_of(&shape).text);
    const int64_t all = shape.dim[at];
    if (first < 0 || count < 0 || first > all || count > all - first)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "slice: %lld from %lld on of dimension %d, but x is %s",
                             (long long)count, (long long)first, at, att_shape_of(&shape).text);
    shape.dim[at] = count;
    att_var *y = att_tape_var(t, shape.rank, shape.dim);
    if (!y)
        return NULL;
    const slice_saved k = {outer, count * inner, all * inner, first * inner};
    att_tape_blocks(t->ctx, outer, k.n, (const float *)x->value.data + k.from, k.x_stride, y->value.data, k.n, false);
    return att_tape_end(t, &att_operation_slice, y, &x, 1, &k, sizeof k);
}
