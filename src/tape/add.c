/* a + b, where b is broadcast over the leading dimensions of a */
#include "tape/tape.h"

static void add(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    j->k->vector.add(last - first, j->a + first, j->b + first, j->y + first);
}

static void add_rows(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->vector.add(j->features, j->a + i, j->b, j->y + i);
}

/* Are b's dimensions the last dimensions of a? */
static bool fits(const att_tensor *a, const att_tensor *b)
{
    const int first = a->rank - b->rank;
    bool same = first >= 0;
    for (int i = 0; same && i < b->rank; i++)
        same = a->dim[first + i] == b->dim[i];
    return same;
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t count = att_count(&s->y->value), n = att_count(&s->in[1]->value);
    att_tape_add_grad(t, s->in[0], s->y->grad);
    if (n == count)
        att_tape_add_grad(t, s->in[1], s->y->grad);
    else if (s->in[1]->grad)
        att_tape_sum_rows(t->ctx, n > 0 ? count / n : 0, n, s->y->grad, att_tape_grad(s->in[1]));
    return ATT_OK;
}

const att_operation att_operation_add = {.name = "add", .backward = backward, .ignores_y = true, .ignores_in = 3};

/* ---- forward */

att_var *att_add(att_tape *t, att_var *a, att_var *b)
{
    if (!a || !b || !att_tape_ready(t))
        return NULL;
    if (!fits(&a->value, &b->value))
        return att_tape_fail(t, ATT_ERR_SHAPE, "add: a is %s but b is %s", att_shape_of(&a->value).text,
                             att_shape_of(&b->value).text);
    att_var *y = att_tape_like(t, a);
    if (!y)
        return NULL;
    const int64_t count = att_count(&a->value), n = att_count(&b->value);
    const att_row_job j = {
        .k = att_kernels_of(t->ctx->isa), .features = n, .a = a->value.data, .b = b->value.data, .y = y->value.data};
    if (n == count)
        att_tape_for_rows(t->ctx, count, 1, add, &j);
    else
        att_tape_for_rows(t->ctx, n > 0 ? count / n : 0, n, add_rows, &j);
    return att_tape_end(t, &att_operation_add, y, (att_var *[]){a, b}, 2, NULL, 0);
}
