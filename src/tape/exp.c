/* e^x */
#include "tape/tape.h"

static void exp_of(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.exp(last - first, j->a + first, j->y + first);
}

/* ---- backward: dx = dy y */

static att_status backward(att_tape *t, const att_step *s)
{
    return att_tape_binary_back(t, s->y, att_binary_mul, &s->y->value, s->in[0]);
}

const att_operation att_operation_exp = {.name = "exp", .backward = backward, .ignores_in = 1};

/* ---- forward */

att_var *att_exp(att_tape *t, att_var *x)
{
    att_var *y = att_tape_like(t, x);
    if (!y)
        return NULL;
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa), .a = x->value.data, .y = y->value.data};
    att_tape_for_rows(t->ctx, att_count(&x->value), 1, exp_of, &j);
    return att_tape_end(t, &att_operation_exp, y, &x, 1, NULL, 0);
}
