/* a * b, elementwise */
#include "tape/tape.h"

static void mul(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.mul(last - first, j->a + first, j->b + first, j->y + first);
}

static void product(att_ctx *ctx, int64_t count, const float *a, const float *b, float *y)
{
    const att_row_job j = {.k = att_kernels_of(ctx->isa), .a = a, .b = b, .y = y};
    att_tape_for_rows(ctx, count, 1, mul, &j);
}

/* ---- backward: da = dy b, db = dy a */

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t count = att_count(&s->y->value);
    for (int i = 0; i < 2; i++) {
        if (!s->in[i]->grad)
            continue;
        float *dx = att_tape_dx(t, s->in[i]);
        if (!dx)
            return ATT_ERR_MEMORY;
        product(t->ctx, count, s->y->grad, s->in[1 - i]->value.data, dx);
        att_tape_dx_end(t, s->in[i], dx);
    }
    return ATT_OK;
}

const att_operation att_operation_mul = {.name = "mul", .backward = backward};

/* ---- forward */

att_var *att_mul(att_tape *t, att_var *a, att_var *b)
{
    if (!a || !b || !att_tape_ready(t))
        return NULL;
    if (!att_same_shape(&a->value, &b->value))
        return att_tape_fail(t, ATT_ERR_SHAPE, "mul: a is %s but b is %s", att_shape_of(&a->value).text,
                             att_shape_of(&b->value).text);
    att_var *y = att_tape_like(t, a);
    if (y)
        product(t->ctx, att_count(&a->value), a->value.data, b->value.data, y->value.data);
    return att_tape_end(t, &att_operation_mul, y, (att_var *[]){a, b}, 2, NULL, 0);
}
