/* a + b */
#include "tape/tape.h"

/* Returns whether x is a bias: its dimensions are the last ones of y, whose rows share it. */
static bool is_bias(const att_tensor *x, const att_tensor *y)
{
    const int first = y->rank - x->rank;
    bool same = att_count(x) != att_count(y);
    for (int i = 0; same && i < x->rank; i++)
        same = x->dim[i] == y->dim[first + i];
    return same;
}

/* ---- backward */

static att_status operand_back(att_tape *t, const att_var *y, att_var *x)
{
    const int64_t count = att_count(&y->value), n = att_count(&x->value);
    if (!is_bias(&x->value, &y->value))
        return att_tape_broadcast_back(t, &y->value, y->grad, x);
    if (x->grad)
        att_tape_sum_rows(t->ctx, n > 0 ? count / n : 0, n, y->grad, att_tape_grad(x));
    return ATT_OK;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_status e = operand_back(t, s->y, s->in[0]);
    return e ? e : operand_back(t, s->y, s->in[1]);
}

const att_operation att_operation_add = {.name = "add", .backward = backward, .ignores_y = true, .ignores_in = 3};

/* ---- forward */

att_var *att_add(att_tape *t, att_var *a, att_var *b)
{
    return att_tape_binary_operation(t, &att_operation_add, att_binary_add, a, b);
}
