/* The gradient of a variable during a backward */
#include "tape/tape.h"

#include <string.h>

bool att_tape_begun(const att_var *x) { return x->base ? x->base->grad_written : x->grad_written; }

float *att_tape_grad_for_write(att_var *x, bool *add)
{
    *add = false;
    if (!x || !x->grad)
        return NULL;
    att_var *base = x->base ? x->base : x;
    const int64_t all = att_count(&base->value);
    if (!base->grad_written && att_count(&x->value) < all) { /* a step that writes only a part must add to zeros */
        memset(base->grad, 0, (size_t)all * sizeof *base->grad);
        base->grad_written = true;
    }
    *add = base->grad_written;
    base->grad_written = true;
    return x->grad;
}

float *att_tape_grad(att_var *x)
{
    bool add;
    float *grad = att_tape_grad_for_write(x, &add);
    if (grad && !add)
        memset(grad, 0, (size_t)att_count(&x->value) * sizeof *grad);
    return grad;
}

static void copy(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    memcpy(j->y + first, j->a + first, (size_t)(last - first) * sizeof *j->y);
}

void att_tape_add_grad(att_tape *t, att_var *x, const float *dx)
{
    bool add;
    float *grad = att_tape_grad_for_write(x, &add);
    if (!grad)
        return;
    if (add)
        att_tape_sum(t->ctx, att_count(&x->value), dx, grad);
    else
        att_tape_for_rows(t->ctx, att_count(&x->value), 1, copy, &(att_row_job){.a = dx, .y = grad});
}

float *att_tape_scratch(att_tape *t, size_t count)
{
    return att_arena_alloc(&t->arena, att_size_mul(count, sizeof(float)));
}

float *att_tape_dx(att_tape *t, att_var *x)
{
    bool add;
    float *dx = att_tape_grad_for_write(x, &add);
    return add ? att_tape_scratch(t, (size_t)att_count(&x->value)) : dx;
}

void att_tape_dx_end(att_tape *t, att_var *x, const float *dx)
{
    if (dx != x->grad)
        att_tape_sum(t->ctx, att_count(&x->value), dx, x->grad);
}
