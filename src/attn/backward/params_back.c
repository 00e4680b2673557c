/* Gradients of the stages' parameters and tables.
 *
 * A parameter's gradient is summed over all that shares it: each task of a backward call has a part of its own, and the
 * parts are added in ascending order. What is broadcast over pairs is too large for parts: its gradient is added to in
 * place, in order. */
#include "attn/backward/params_back.h"
#include "attn/call/transform.h"

#include <string.h>

/* Returns the gradient of the plan's parameter n; NULL if it is not wanted, or if the transforms compute it instead of
 * the tiles.
 */
static const att_tensor *wanted(const att_call *c, const att_attention_grads *g, int n)
{
    return att_given(&g->dparam[n]) && !att_transform_uses_param(c->plan, n) ? &g->dparam[n] : NULL;
}

static bool over_pairs(const att_call *c, int n) { return c->plan->params.list[n].shape->kind == ATT_PARAM_PER_PAIR; }

/* Returns how tasks add to a gradient over pairs: whether several add to the same element, and in several steps. */
static att_add_order order_of(const att_call *c, const att_tensor *t)
{
    const bool shared = (t->dim[0] == 1 && c->sequences > 1) || (t->dim[1] == 1 && c->plan->spec.heads > 1) ||
                        (t->dim[3] == 1 && c->max_tk > ATT_KEY_BLOCK);
    return !shared ? ATT_ADD_UNORDERED : t->dim[2] == 1 && c->max_tq > 1 ? ATT_ADD_BY_TASK : ATT_ADD_BY_STEP;
}

att_add_order att_params_back_order(const att_call *c, const att_attention_grads *g)
{
    att_add_order order = ATT_ADD_UNORDERED;
    for (int n = 0; n < c->plan->params.n; n++)
        if (wanted(c, g, n) && over_pairs(c, n) && order_of(c, wanted(c, g, n)) > order)
            order = order_of(c, wanted(c, g, n));
    return order;
}

int64_t att_params_back_count(const att_call *c, const att_attention_grads *g)
{
    int64_t count = 0;
    for (int n = 0; n < c->plan->params.n; n++)
        if (wanted(c, g, n) && !over_pairs(c, n))
            count += att_param_count(wanted(c, g, n));
    return count * (c->plan->spec.heads / c->plan->spec.kv_heads);
}

void att_params_back_view(const att_call *c, const att_attention_grads *g, const att_head *at, int64_t head_in_group,
                          float *part, att_param_view *param)
{
    const int64_t group = c->plan->spec.heads / c->plan->spec.kv_heads;
    for (int n = 0; n < c->plan->params.n; n++) {
        const att_tensor *t = wanted(c, g, n);
        att_param_view *o = &param[n];
        if (!t)
            continue;
        if (over_pairs(c, n)) {
            o->grad = (float *)t->data + att_pairs_start(t, at, o->grad_stride);
        } else {
            o->grad = part + head_in_group * o->count;
            part += group * o->count;
        }
    }
}

/* Returns how many numbers the sums of all parameters have. */
int64_t att_params_back_sums(const att_call *c, const att_attention_grads *g)
{
    int64_t count = 0;
    for (int n = 0; n < c->plan->params.n; n++)
        if (wanted(c, g, n) && !over_pairs(c, n))
            count += wanted(c, g, n)->dim[0] * att_param_count(wanted(c, g, n));
    return count;
}

/* f(&t[i], x[i]) for each number of a tensor of rank 4 or less, x in dense order; x NULL: f(&t[i], 0) */
static void for_each(const att_tensor *t, const double *x, void (*f)(float *y, double x))
{
    int64_t dim[4] = {1, 1, 1, 1}, stride[4] = {0}, n = 0;
    for (int i = 0; i < t->rank; i++) {
        dim[4 - t->rank + i] = t->dim[i];
        stride[4 - t->rank + i] = t->stride[i];
    }
    for (int64_t a = 0; a < dim[0]; a++)
        for (int64_t b = 0; b < dim[1]; b++)
            for (int64_t d = 0; d < dim[2]; d++)
                for (int64_t e = 0; e < dim[3]; e++, n++)
                    f((float *)t->data + a * stride[0] + b * stride[1] + d * stride[2] + e * stride[3], x ? x[n] : 0);
}

static void set(float *y, double x) { *y = (float)x; }
static void add(float *y, double x) { *y += (float)x; }

void att_params_back_clear(const att_call *c, const att_attention_grads *g)
{
    for (int n = 0; n < c->plan->params.n && !g->accumulate; n++)
        if (wanted(c, g, n) && over_pairs(c, n))
            for_each(wanted(c, g, n), NULL, set);
}

void att_params_back_sum(const att_call *c, const att_attention_grads *g, const att_backward_tasks *tasks,
                         const float *parts, int64_t parts_stride, double *sums)
{
    const int64_t group = c->plan->spec.heads / c->plan->spec.kv_heads;
    memset(sums, 0, (size_t)att_params_back_sums(c, g) * sizeof *sums);
    for (int n = 0; n < c->plan->params.n; n++) {
        const att_tensor *t = wanted(c, g, n);
        if (!t || over_pairs(c, n))
            continue;
        const int64_t count = att_param_count(t);
        for (int64_t i = 0; i < tasks->count; i++)
            for (int64_t h = 0; h < group; h++) {
                const int64_t head = tasks->task[i].kv_head * group + h;
                const float *part = parts + i * parts_stride + h * count;
                double *sum = sums + (t->dim[0] == 1 ? 0 : head * count);
                for (int64_t e = 0; e < count; e++)
                    sum[e] += part[e];
            }
        for_each(t, sums, g->accumulate ? add : set);
        parts += group * count;
        sums += t->dim[0] * count;
    }
}
