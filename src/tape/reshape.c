/* A view of a variable's numbers in another shape. */
#include "tape/tape.h"

/* The gradient is shared, so backward has nothing to do. */
const att_operation att_operation_reshape = {.name = "reshape"};

/* Completes y's shape, dim [rank] with at most one -1, which is computed; false: it has another number of elements than
 * x. */
static bool fill_in(const att_tensor *x, att_tensor *y)
{
    const int64_t count = att_count(x);
    int64_t product = 1, *computed = NULL;
    for (int i = 0; i < y->rank; i++) {
        if (y->dim[i] == -1 && !computed)
            computed = &y->dim[i];
        else if (y->dim[i] < 0 || __builtin_mul_overflow(product, y->dim[i], &product))
            return false;
    }
    if (!computed)
        return product == count;
    if (product == 0 || count % product != 0)
        return false;
    *computed = count / product;
    return true;
}

att_var *att_reshape(att_tape *t, att_var *x, int rank, const int64_t *dim)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if (!dim)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "reshape: dim is NULL");
    if (rank < 1 || rank > ATT_MAX_RANK)
        return att_tape_fail(t, ATT_ERR_SHAPE, "reshape: rank = %d is not from 1 to %d", rank, ATT_MAX_RANK);
    att_tensor shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dim[i];
    const att_shape asked = att_shape_of(&shape);
    if (!fill_in(&x->value, &shape))
        return att_tape_fail(t, ATT_ERR_SHAPE, "reshape: x is %s, whose elements do not fit into %s",
                             att_shape_of(&x->value).text, asked.text);
    att_var *y = att_tape_view(t, x, rank, shape.dim);
    return att_tape_end(t, &att_operation_reshape, y, &x, 1, NULL, 0);
}
