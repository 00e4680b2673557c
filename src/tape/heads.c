/* [tokens, heads * dim] <-> [tokens, heads, dim]: views */
#include "tape/tape.h"

/* The gradient is shared, so backward has nothing to do. */
const att_operation att_operation_split_heads = {.name = "split_heads"};
const att_operation att_operation_merge_heads = {.name = "merge_heads"};

att_var *att_split_heads(att_tape *t, att_var *x, int64_t heads)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    const att_tensor *v = &x->value;
    if (v->rank != 2 || heads < 1 || v->dim[1] % heads != 0)
        return att_tape_fail(t, ATT_ERR_SHAPE, "split_heads: x is %s, which %lld heads do not divide",
                             att_shape_of(v).text, (long long)heads);
    att_var *y = att_tape_view(t, x, 3, (const int64_t[]){v->dim[0], heads, v->dim[1] / heads});
    return att_tape_end(t, &att_operation_split_heads, y, &x, 1, NULL, 0);
}

att_var *att_merge_heads(att_tape *t, att_var *x)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    const att_tensor *v = &x->value;
    if (v->rank != 3)
        return att_tape_fail(t, ATT_ERR_SHAPE, "merge_heads: x is %s, not [tokens, heads, dim]", att_shape_of(v).text);
    att_var *y = att_tape_view(t, x, 2, (const int64_t[]){v->dim[0], v->dim[1] * v->dim[2]});
    return att_tape_end(t, &att_operation_merge_heads, y, &x, 1, NULL, 0);
}
