/* The natural logarithm */
#include "tape/tape.h"

static void log_of(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.log(last - first, j->a + first, j->y + first);
}

/* ---- backward: dx = dy / x */

static att_status backward(att_tape *t, const att_step *s)
{
    return att_tape_binary_back(t, s->y, att_binary_div, &s->in[0]->value, s->in[0]);
}

const att_operation att_operation_log = {.name = "log", .backward = backward, .ignores_y = true};

/* ---- forward */

att_var *att_log(att_tape *t, att_var *x)
{
    att_var *y = att_tape_like(t, x);
    if (!y)
        return NULL;
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa), .a = x->value.data, .y = y->value.data};
    att_tape_for_rows(t->ctx, att_count(&x->value), 1, log_of, &j);
    return att_tape_end(t, &att_operation_log, y, &x, 1, NULL, 0);
}
