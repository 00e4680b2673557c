/* Mean squared error: the mean or sum of (a - b)^2 */
#include "tape/tape.h"

typedef struct mean_squared_error_job {
    const att_kernels *k;
    const float *a, *b;
    float *y; /* squares or gradient; all [count] */
    float factor;
} mean_squared_error_job;

static void squares(const void *arg, int64_t first, int64_t last)
{
    const mean_squared_error_job *j = arg;
    j->k->vector.sub(last - first, j->a + first, j->b + first, j->y + first);
    j->k->vector.mul(last - first, j->y + first, j->y + first, j->y + first);
}

/* ---- backward: da = 2 dy (a - b) / divisor, db = -da */

static void squares_back(const void *arg, int64_t first, int64_t last)
{
    const mean_squared_error_job *j = arg;
    j->k->vector.sub(last - first, j->a + first, j->b + first, j->y + first);
    j->k->vector.scale(last - first, j->factor, j->y + first, j->y + first);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t *divisor = s->saved;
    for (int i = 0; i < 2; i++) {
        if (!s->in[i]->grad)
            continue;
        float *dx = att_tape_dx(t, s->in[i]);
        if (!dx)
            return ATT_ERR_MEMORY;
        const mean_squared_error_job j = {.k = att_kernels_of(t->ctx->isa),
                                          .a = s->in[i]->value.data,
                                          .b = s->in[1 - i]->value.data,
                                          .y = dx,
                                          .factor = (float)(2 * (double)*s->y->grad / (double)*divisor)};
        att_tape_for_rows(t->ctx, att_count(&s->in[i]->value), 1, squares_back, &j);
        att_tape_dx_end(t, s->in[i], dx);
    }
    return ATT_OK;
}

const att_operation att_operation_mean_squared_error = {
    .name = "mean_squared_error", .backward = backward, .ignores_y = true};

/* ---- forward */

static bool sum_up(att_tape *t, const att_tensor *a, const att_tensor *b, int64_t divisor, float *y)
{
    const int64_t n = att_count(a);
    const size_t mark = att_arena_mark(&t->arena);
    const mean_squared_error_job j = {
        .k = att_kernels_of(t->ctx->isa), .a = a->data, .b = b->data, .y = att_tape_scratch(t, (size_t)n)};
    if (j.y) {
        att_tape_for_rows(t->ctx, n, 1, squares, &j);
        att_tape_sum_dim(t->ctx, 1, n, 1, (double)divisor, j.y, y);
    }
    att_arena_release(&t->arena, mark);
    return j.y;
}

att_var *att_mean_squared_error(att_tape *t, att_var *a, att_var *b, const att_mean_squared_error_options *options)
{
    att_mean_squared_error_options o;
    if (!a || !b || !att_tape_ready(t) ||
        !att_tape_options_read(t, "mean_squared_error", &o, sizeof o, options, "att_mean_squared_error_options"))
        return NULL;
    if (!att_same_shape(&a->value, &b->value))
        return att_tape_fail(t, ATT_ERR_SHAPE, "mean_squared_error: a is %s but b is %s", att_shape_of(&a->value).text,
                             att_shape_of(&b->value).text);
    const int64_t divisor = o.sum ? 1 : att_max(att_count(&a->value), 1);
    att_var *y = att_tape_var(t, 1, (const int64_t[]){1});
    if (!y)
        return NULL;
    if (!sum_up(t, &a->value, &b->value, divisor, y->value.data))
        return att_tape_fail(t, ATT_ERR_MEMORY, "mean_squared_error: %s", att_error(t->ctx));
    return att_tape_end(t, &att_operation_mean_squared_error, y, (att_var *[]){a, b}, 2, &divisor, sizeof divisor);
}
