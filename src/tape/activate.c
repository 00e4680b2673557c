/* Activation functions */
#include "tape/tape.h"

typedef struct activate_job {
    const att_kernels *k;
    int activation;
    const float *x;
    float *y;
    const float *dy;
    float *dx; /* all [count] */
} activate_job;

static void activate(const void *arg, int64_t first, int64_t last)
{
    const activate_job *j = arg;
    j->k->layer.activate(j->activation, last - first, j->x + first, j->y + first);
}

/* ---- backward */

static void activate_back(const void *arg, int64_t first, int64_t last)
{
    const activate_job *j = arg;
    j->k->layer.activate_back(j->activation, last - first, j->x + first, j->dy + first, j->dx + first);
}

void att_tape_activate_back(att_ctx *ctx, int activation, int64_t count, const float *x, const float *dy, float *dx)
{
    const activate_job j = {.k = att_kernels_of(ctx->isa), .activation = activation, .x = x, .dy = dy, .dx = dx};
    att_tape_for_rows(ctx, count, 1, activate_back, &j);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_activation *act = s->saved;
    const int64_t count = att_count(&s->y->value);
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx)
        return ATT_ERR_MEMORY;
    att_tape_activate_back(t->ctx, (int)*act, count, s->in[0]->value.data, s->y->grad, dx);
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_activate = {.name = "activate", .backward = backward};

/* ---- forward */

att_var *att_activate(att_tape *t, att_var *x, att_activation act)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if ((unsigned)act > ATT_ACTIVATION_QUICK_GELU)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "activate: %d is not an activation", (int)act);
    att_var *y = att_tape_like(t, x);
    if (!y)
        return NULL;
    const activate_job j = {
        .k = att_kernels_of(t->ctx->isa), .activation = (int)act, .x = x->value.data, .y = y->value.data};
    att_tape_for_rows(t->ctx, att_count(&x->value), 1, activate, &j);
    return att_tape_end(t, &att_operation_activate, y, &x, 1, &act, sizeof act);
}
