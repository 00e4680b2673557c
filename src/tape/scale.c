/* x times a constant */
#include "tape/tape.h"

typedef struct scale_job {
    const att_kernels *k;
    float factor;
    const float *x;
    float *y; /* both [count] */
} scale_job;

static void scale(const void *arg, int64_t first, int64_t last)
{
    const scale_job *j = arg;
    j->k->scale(last - first, j->factor, j->x + first, j->y + first);
}

static void product(att_ctx *ctx, int64_t count, float factor, const float *x, float *y)
{
    const scale_job j = {att_kernels_of(ctx->isa), factor, x, y};
    att_tape_for_rows(ctx, count, 1, scale, &j);
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t count = att_count(&s->y->value);
    const float *factor = s->saved;
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx)
        return ATT_ERR_MEMORY;
    product(t->ctx, count, *factor, s->y->grad, dx);
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_scale = {.name = "scale", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

att_var *att_scale(att_tape *t, att_var *x, float factor)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    product(t->ctx, att_count(&x->value), factor, x->value.data, y->value.data);
    const att_step step = {
        .op = &att_operation_scale, .y = y, .in = &x, .n_in = 1, .saved = &factor, .saved_bytes = sizeof factor};
    return att_tape_done(t, &step, NULL, NULL);
}
