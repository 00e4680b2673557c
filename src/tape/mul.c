/* a b, elementwise */
#include "tape/tape.h"

/* ---- backward: da = dy b, db = dy a */

static att_status backward(att_tape *t, const att_step *s)
{
    const att_status e = att_tape_binary_back(t, s->y, att_binary_mul, &s->in[1]->value, s->in[0]);
    return e ? e : att_tape_binary_back(t, s->y, att_binary_mul, &s->in[0]->value, s->in[1]);
}

const att_operation att_operation_mul = {.name = "mul", .backward = backward};

/* ---- forward */

att_var *att_mul(att_tape *t, att_var *a, att_var *b)
{
    return att_tape_binary_operation(t, &att_operation_mul, att_binary_mul, a, b);
}
