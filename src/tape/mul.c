/* a * b, elementwise */
#include "tape/tape.h"

typedef struct mul_job {
    const att_kernels *k;
    const float *a, *b;
    float *y; /* all [count] */
} mul_job;

static void mul(const void *arg, int64_t first, int64_t last)
{
    const mul_job *j = arg;
    j->k->mul(last - first, j->a + first, j->b + first, j->y + first);
}

static void product(att_ctx *ctx, int64_t count, const float *a, const float *b, float *y)
{
    const mul_job j = {att_kernels_of(ctx->isa), a, b, y};
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
    att_var *y = att_tape_var(t, a->value.rank, a->value.dim);
    if (!y)
        return NULL;
    product(t->ctx, att_count(&a->value), a->value.data, b->value.data, y->value.data);
    const att_step step = {.op = &att_operation_mul, .y = y, .in = (att_var *[]){a, b}, .n_in = 2};
    return att_tape_done(t, &step, NULL, NULL);
}
