/* a - b */
#include "tape/tape.h"

/* ---- backward: da = dy, db = -dy */

static att_status backward(att_tape *t, const att_step *s)
{
    float factor = -1;
    const att_tensor minus = {.data = &factor}; /* of rank 0 */
    const att_status e = att_tape_broadcast_back(t, &s->y->value, s->y->grad, s->in[0]);
    return e ? e : att_tape_binary_back(t, s->y, att_binary_mul, &minus, s->in[1]);
}

const att_operation att_operation_sub = {.name = "sub", .backward = backward, .ignores_y = true, .ignores_in = 3};

/* ---- forward */

att_var *att_sub(att_tape *t, att_var *a, att_var *b)
{
    return att_tape_binary_operation(t, &att_operation_sub, att_binary_sub, a, b);
}
