/* The definition of attention, in double, over a whole call, f32, batched and dense: what outputs and gradients are
 * held against, and what holds the definition's own gradients. */
#ifndef ATTENTION_REFERENCE_H
#define ATTENTION_REFERENCE_H

#include "attention_help.h"
#include "attn/reference.h"

#include <math.h>

enum { MAX_VALUE_DIM = 1024 };

/* The arguments of a call, which must be sound. */
static inline att_call call_of(const att_plan *plan, const att_attention_args *a)
{
    att_call call;
    if (att_call_check(plan, a, true, &call))
        fail_msg("%s", att_error(plan->ctx));
    return call;
}

/* Every head of every sequence: for (int64_t i = 0; next_site(&call, &i, &at);) */
static inline bool next_site(const att_call *call, int64_t *i, att_head_view *at)
{
    const int64_t heads = call->plan->spec.heads;
    if (*i >= call->sequences * heads)
        return false;
    att_call_head(call, *i / heads, *i % heads, at);
    ++*i;
    return true;
}

/* out [value_dim] and lse of one query, against these. */
static inline void check_row_is(const att_plan *plan, const att_head_view *at, int64_t q, const double *out, double lse,
                                double limit, const char *what)
{
    for (int64_t d = 0; d < plan->spec.value_dim; d++)
        check_near(out[d], ((const float *)at->out.at)[q * at->out.stride + d], limit, "%s %s: out[%d] of query %d",
                   att_isa(plan->ctx), what, (int)d, (int)q);
    check_near(lse, at->lse[q * at->lse_stride], isinf(lse) ? 0 : limit + 0x1p-23 * fabs(lse), "%s %s: lse of query %d",
               att_isa(plan->ctx), what, (int)q);
}

/* out and lse of one query. */
static inline void check_row(const att_plan *plan, const att_head_view *at, int64_t q, double limit, const char *what)
{
    double out[MAX_VALUE_DIM];
    assert_true(plan->spec.value_dim <= MAX_VALUE_DIM);
    const double lse = att_ref_attention_row(plan, at, q, NULL, out);
    check_row_is(plan, at, q, out, lse, limit, what);
}

/* All numbers of a tensor, f32 and dense. */
static inline void check_tensor(const att_plan *plan, const char *what, const char *name, const att_tensor *x,
                                const double *expected, double limit)
{
    for (int64_t i = 0; i < check_count(x); i++)
        check_near(expected[i], ((const float *)x->data)[i], limit, "%s %s: %s[%d]", att_isa(plan->ctx), what, name,
                   (int)i);
}

/* ---- gradients */

/* In the shapes of what they are of; NULL: not given. */
typedef struct reference {
    double *dq, *dk, *dv, *dparam[MOST_PARAMS]; /* of args.param */
} reference;

static inline double *zeros_like(const att_tensor *t)
{
    return t->rank ? calloc((size_t)check_count(t) + 1, sizeof(double)) : NULL;
}

/* Where one head's part is in the gradient of a parameter. */
static inline double *part_of(double *gradient, const att_param_view *head, const att_tensor *param)
{
    return gradient && param->dtype == ATT_F32 ? gradient + (head->data - (const float *)param->data) : NULL;
}

static inline void add_row(const att_plan *plan, const att_attention_args *a, const att_attention_grads *g,
                           const att_head_view *at, int64_t q, double *weights, const reference *r)
{
    const att_attention_spec *s = &plan->spec;
    const att_head *p = &at->head;
    const int64_t row = (p->sequence * s->heads + p->head) * a->q.dim[2] + q, group = s->heads / s->kv_heads;
    const int64_t first_key = (p->sequence * s->kv_heads + p->head / group) * a->k.dim[2];
    double out[MAX_VALUE_DIM];
    att_ref_grads of = {
        .dq = r->dq + row * s->head_dim, .dk = r->dk + first_key * s->key_dim, .dv = r->dv + first_key * s->value_dim};
    for (int i = 0; i < plan->params.n; i++) {
        const int n = plan->params.list[i].given;
        if (n >= 0)
            of.dparam[i] = part_of(r->dparam[n], &at->param[i], &a->param[n]);
    }
    att_ref_attention_row(plan, at, q, weights, out);
    att_ref_attention_row_backward(plan, at, q, weights, out, (const float *)g->dout.data + row * s->value_dim,
                                   ((const float *)g->dlse.data)[row], &of);
}

/* Of sum(dout * out) + sum(dlse * lse), by all that can have a gradient. */
static inline reference reference_of(const att_plan *plan, const att_attention_args *a, const att_attention_grads *g)
{
    const att_call call = call_of(plan, a);
    att_head_view at;
    double *weights = calloc((size_t)a->k.dim[2] + 1, sizeof *weights);
    reference r = {.dq = zeros_like(&a->q), .dk = zeros_like(&a->k), .dv = zeros_like(&a->v)};
    for (int i = 0; i < a->n_params; i++)
        r.dparam[i] = zeros_like(&a->param[i]);
    assert_true(plan->spec.value_dim <= MAX_VALUE_DIM);
    for (int64_t i = 0; next_site(&call, &i, &at);)
        for (int64_t q = 0; q < at.head.tq; q++)
            add_row(plan, a, g, &at, q, weights, &r);
    free(weights);
    return r;
}

static inline void drop_reference(reference *r)
{
    free(r->dq), free(r->dk), free(r->dv);
    for (int i = 0; i < MOST_PARAMS; i++)
        free(r->dparam[i]);
}

/* ---- the definition's gradients against differences */

/* sum(dout * out) + sum(dlse * lse) of the only head there is */
static inline double objective(const att_plan *plan, const att_head_view *at, const att_attention_grads *g)
{
    const int64_t value_dim = plan->spec.value_dim;
    const float *dout = g->dout.data, *dlse = g->dlse.data;
    double sum = 0, out[MAX_VALUE_DIM];
    for (int64_t q = 0; q < at->head.tq; q++) {
        const double lse = att_ref_attention_row(plan, at, q, NULL, out);
        sum += lse > -INFINITY ? dlse[q] * lse : 0;
        for (int64_t d = 0; d < value_dim; d++)
            sum += dout[q * value_dim + d] * out[d];
    }
    return sum;
}

/* Central differences of step h are off by h^2 / 6 third derivatives, here up to some thousands, by 2^-24 second ones,
 * here up to a hundred, since x + h and x - h are floats, and by a rounding of 1e-16 / h in double: with h = 2^-14 that
 * is less than 1e-5. */
static inline void agrees_with_differences(const att_plan *plan, const att_head_view *at, const att_attention_grads *g,
                                           const att_tensor *x, const double *gradient, const char *what)
{
    const float h = 0x1p-14f;
    float *number = x->data;
    for (int64_t i = 0; i < check_count(x); i++) {
        const float before = number[i];
        number[i] = before + h;
        const double up = objective(plan, at, g), x_up = number[i];
        number[i] = before - h;
        const double down = objective(plan, at, g), x_down = number[i];
        number[i] = before;
        const double slope = (up - down) / (x_up - x_down);
        if (!(fabs(slope - gradient[i]) <= 1e-5))
            fail_msg("%s, number %d: differences give %.9g, the reference %.9g", what, (int)i, slope, gradient[i]);
    }
}

/* Of a call with one head and no lengths. */
static inline void check_reference(att_ctx *ctx, const att_attention_spec *s, const att_attention_args *a,
                                   const att_attention_grads *g, const char *name)
{
    att_plan *plan = plan_of(ctx, s);
    const att_call call = call_of(plan, a);
    reference r = reference_of(plan, a, g);
    att_head_view at;
    char what[400];
    assert_int_equal(call.sequences * s->heads, 1);
    att_call_head(&call, 0, 0, &at);
    snprintf(what, sizeof what, "%s: q, k or v", name);
    agrees_with_differences(plan, &at, g, &a->q, r.dq, what);
    agrees_with_differences(plan, &at, g, &a->k, r.dk, what);
    agrees_with_differences(plan, &at, g, &a->v, r.dv, what);
    snprintf(what, sizeof what, "%s: a parameter", name);
    for (int i = 0; i < a->n_params; i++)
        if (a->param[i].dtype == ATT_F32)
            agrees_with_differences(plan, &at, g, &a->param[i], r.dparam[i], what);
    drop_reference(&r);
    att_plan_free(plan);
}

#endif
