/* An activation alone */
#include "tape/tape.h"

typedef struct job {
    const att_kernels *k;
    int activation;
    const float *x;
    float *y; /* both [count] */
} job;

static void activate(const void *arg, int64_t first, int64_t last)
{
    const job *j = arg;
    j->k->activate(j->activation, last - first, j->x + first, j->y + first);
}

/* ---- forward */

att_var *att_activate(att_tape *t, att_var *x, att_activation act)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if ((unsigned)act > ATT_TANH)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "activate: %d is no activation", (int)act);
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const job j = {att_kernels_of(t->ctx->isa), (int)act, x->value.data, y->value.data};
    att_tape_for_rows(t->ctx, att_count(&x->value), 1, activate, &j);
    return att_tape_done(t, "activate", y, NULL, NULL);
}
