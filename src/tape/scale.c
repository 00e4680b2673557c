/* x times a constant */
#include "tape/tape.h"

static void scale(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.scale(last - first, j->number, j->a + first, j->y + first);
}

static void product(att_ctx *ctx, int64_t count, float factor, const float *x, float *y)
{
    const att_row_job j = {.k = att_kernels_of(ctx->isa), .a = x, .y = y, .number = factor};
    att_tape_for_rows(ctx, count, 1, scale, &j);
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    const float *factor = s->saved;
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx)
        return ATT_ERR_MEMORY;
    product(t->ctx, att_count(&s->y->value), *factor, s->y->grad, dx);
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_scale = {.name = "scale", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

att_var *att_scale(att_tape *t, att_var *x, float factor)
{
    att_var *y = att_tape_like(t, x);
    if (y)
        product(t->ctx, att_count(&x->value), factor, x->value.data, y->value.data);
    return att_tape_end(t, &att_operation_scale, y, &x, 1, &factor, sizeof factor);
}
