/* What the stages of a call are given beside q, k and v: parameters and tables, and their gradients.
 *
 * A parameter's gradient is summed over all that shares it: each task of a backward call has a part of its own, and the
 * parts are added in ascending order. What is broadcast over pairs is too large for parts: its gradient is added to in
 * place, in order. */
#include "attn/params.h"
#include "attn/prologue.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- checks */

/* A table over all pairs: each dimension 1 or that of [B, heads, Tq, Tk]. */
static att_status check_pairs(const att_call *c, const char *name, const att_tensor *t, att_dtype dtype)
{
    att_ctx *ctx = c->plan->ctx;
    const att_status e = att_check(ctx, name, t, dtype, 4);
    if (e)
        return e;
    const int64_t want[4] = {c->sequences, c->plan->spec.heads, c->max_tq, c->max_tk};
    static const char *const what[4] = {"the number of sequences", "spec.heads", "the longest query",
                                        "the longest key"};
    for (int i = 0; i < 4; i++)
        if (t->dim[i] != 1 && t->dim[i] != want[i])
            return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[%d] = %lld, expected 1 or %s = %lld", name, i,
                            (long long)t->dim[i], what[i], (long long)want[i]);
    return ATT_OK;
}

static att_status check_mask(const att_call *c)
{
    att_ctx *ctx = c->plan->ctx;
    if (!att_plan_uses(c->plan, &att_mask_boolean))
        return att_given(&c->args.mask)
                   ? att_fail(ctx, ATT_ERR_ARGUMENT, "args.mask is given but the spec has no att_mask_boolean")
                   : ATT_OK;
    if (!att_given(&c->args.mask))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the spec has att_mask_boolean but args.mask is not given");
    return check_pairs(c, "mask", &c->args.mask, ATT_BOOL);
}

/* Ids of the time steps of q or k: [B or 1, T], ragged [tokens]. */
static att_status check_ids(const att_call *c, const char *name, const att_tensor *t, const char *like_name,
                            const att_tensor *like)
{
    att_ctx *ctx = c->plan->ctx;
    const int time = c->ragged ? 0 : 1;
    char like_dim[16];
    snprintf(like_dim, sizeof like_dim, "%s.dim[%d]", like_name, c->ragged ? 0 : 2);
    att_status e = att_check(ctx, name, t, ATT_I32, time + 1);
    if (!e && !c->ragged && t->dim[0] != 1 && t->dim[0] != c->sequences)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[0] = %lld, expected 1 or the number of sequences = %lld", name,
                        (long long)t->dim[0], (long long)c->sequences);
    return e ? e : att_check_dim(ctx, name, t, time, like_dim, like->dim[c->ragged ? 0 : 2]);
}

static const int32_t *ids_of(const att_call *c, const att_tensor *t, int64_t sequence, const int64_t *offsets,
                             int64_t *stride)
{
    *stride = t->stride[c->ragged ? 0 : 1];
    const int64_t first = c->ragged ? offsets[sequence] * *stride : t->dim[0] == 1 ? 0 : sequence * t->stride[0];
    return (const int32_t *)t->data + first;
}

/* The ids of one sequence's queries and keys. */
static void view_documents(const att_call *c, att_place *at)
{
    const att_attention_args *a = &c->args;
    const int64_t *k_offsets = a->k_offsets ? a->k_offsets : a->q_offsets, b = at->sequence;
    at->document[0] = ids_of(c, &a->q_documents, b, a->q_offsets, &at->document_stride[0]);
    at->document[1] = ids_of(c, &a->k_documents, b, k_offsets, &at->document_stride[1]);
    at->documents_ascend = c->documents_ascend;
}

static bool ascend(int64_t n, const int32_t *id, int64_t stride)
{
    for (int64_t i = 1; i < n; i++)
        if (id[i * stride] < id[(i - 1) * stride])
            return false;
    return true;
}

/* In each sequence? Then a look at the ends of a block tells which ids are in it. */
static bool documents_ascend(const att_call *c)
{
    for (int64_t b = 0; b < c->sequences; b++) {
        att_site at;
        att_call_site(c, b, 0, &at);
        if (!ascend(at.place.tq, at.place.document[0], at.place.document_stride[0]) ||
            !ascend(at.place.tk, at.place.document[1], at.place.document_stride[1]))
            return false;
    }
    return true;
}

static att_status check_documents(att_call *c)
{
    att_ctx *ctx = c->plan->ctx;
    att_attention_args *a = &c->args;
    if (!att_plan_uses(c->plan, &att_mask_document)) {
        if (att_given(&a->q_documents) || att_given(&a->k_documents))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "args.%c_documents is given but the spec has no att_mask_document",
                            att_given(&a->q_documents) ? 'q' : 'k');
        return ATT_OK;
    }
    if (!att_given(&a->q_documents))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the spec has att_mask_document but args.q_documents is not given");
    att_status e = check_ids(c, "q_documents", &a->q_documents, "q", &a->q);
    if (!e && !att_given(&a->k_documents)) {
        if (c->ragged ? a->k_offsets && a->k_offsets != a->q_offsets : c->max_tq != c->max_tk)
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "args.k_documents is not given, but the keys (%lld) are others than the queries (%lld)",
                            (long long)c->max_tk, (long long)c->max_tq);
        a->k_documents = a->q_documents;
    }
    return e ? e : check_ids(c, "k_documents", &a->k_documents, "k", &a->k);
}

/* A parameter's or its gradient's rank, dimensions and order of numbers: [heads or 1, extents...]. */
static att_status check_param(const att_call *c, const char *name, const att_tensor *t, const att_param_shape *shape)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_spec *s = &c->plan->spec;
    const struct {
        const char *name;
        int64_t size;
    } extent[] = {[ATT_HEAD_DIM] = {"spec.head_dim", s->head_dim},
                  [ATT_KEY_DIM] = {"spec.key_dim", s->key_dim},
                  [ATT_SCORE_DIM] = {s->score_dim ? "spec.score_dim" : "spec.head_dim", c->plan->q_dim}};
    const int rank = shape->extent[0] == ATT_NONE ? 1 : shape->extent[1] == ATT_NONE ? 2 : 3;
    att_status e = att_check(ctx, name, t, ATT_F32, rank);
    if (!e && t->dim[0] != 1 && t->dim[0] != s->heads)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[0] = %lld, expected 1 or spec.heads = %lld", name,
                        (long long)t->dim[0], (long long)s->heads);
    for (int i = 1; !e && i < rank; i++)
        if (shape->extent[i - 1] != ATT_ANY)
            e = att_check_dim(ctx, name, t, i, extent[shape->extent[i - 1]].name, extent[shape->extent[i - 1]].size);
    for (int64_t i = rank - 1, dense = 1; !e && i > 0; dense *= t->dim[i--])
        if (t->dim[i] > 1 && t->stride[i] != dense)
            e = att_fail(ctx, ATT_ERR_ARGUMENT, "%s.stride[%d] = %lld, but one head of it must be dense (%lld)", name,
                         (int)i, (long long)t->stride[i], (long long)dense);
    return e;
}

/* A stage's parameter: there exactly if the stage has one. */
static att_status check_stage_param(const att_call *c, const char *name, const att_tensor *t, const char *stage,
                                    const att_param_shape *shape, unsigned flags)
{
    att_ctx *ctx = c->plan->ctx;
    if (!shape || !shape->name)
        return att_given(t) ? att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is given, but \"%s\" has no such parameter",
                                       name, stage ? stage : "no modifier")
                            : ATT_OK;
    if (!att_given(t))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is not given: the %s of \"%s\"", name, shape->name, stage);
    return flags & ATT_PAIRS ? check_pairs(c, name, t, ATT_F32) : check_param(c, name, t, shape);
}

/* The score's n-th parameter; NULL: it has none, or does without in this plan. */
static const att_param_shape *score_param(const att_plan *p, int n)
{
    const bool unused = att_prologue_has(p, n) && !p->prologue;
    return unused ? NULL : &p->score->param[n];
}

static att_status check_stage_params(const att_call *c)
{
    const att_plan *p = c->plan;
    char name[32];
    att_status e = ATT_OK;
    for (int i = 0; !e && i < ATT_MAX_PARAMS; i++) {
        snprintf(name, sizeof name, "score_param[%d]", i);
        e = check_stage_param(c, name, &c->args.score_param[i], p->score->name, score_param(p, i), 0);
    }
    for (int i = 0; !e && i < ATT_MAX_STAGES; i++) {
        const att_modifier *m = i < p->n_modifiers ? p->modifier[i] : NULL;
        snprintf(name, sizeof name, "modifier_param[%d]", i);
        e = check_stage_param(c, name, &c->args.modifier_param[i], m ? m->name : NULL, m ? &m->param : NULL,
                              m ? m->flags : 0);
        if (!e && m && m->check)
            e = m->check(p->ctx, p->spec.modifier_value[i], &c->args.modifier_param[i]);
    }
    return e;
}

att_status att_params_check(att_call *c)
{
    att_status e = check_mask(c);
    e = e ? e : check_documents(c);
    e = e ? e : check_stage_params(c);
    c->documents_ascend = !e && att_plan_uses(c->plan, &att_mask_document) && documents_ascend(c);
    return e;
}

att_status att_params_check_grads(const att_call *c, const att_attention_grads *g)
{
    const att_plan *p = c->plan;
    char name[32];
    att_status e = ATT_OK;
    for (int i = 0; !e && i < ATT_MAX_PARAMS; i++) {
        snprintf(name, sizeof name, "dscore_param[%d]", i);
        const att_tensor *t = &g->dscore_param[i];
        e = att_call_check_grad(c, name, t, name + 1, &c->args.score_param[i], g);
        if (!e && att_given(t))
            e = check_param(c, name, t, &p->score->param[i]);
    }
    for (int i = 0; !e && i < ATT_MAX_STAGES; i++) {
        snprintf(name, sizeof name, "dmodifier_param[%d]", i);
        const att_tensor *t = &g->dmodifier_param[i];
        e = att_call_check_grad(c, name, t, name + 1, &c->args.modifier_param[i], g);
        if (!e && att_given(t) && !(p->modifier[i]->flags & ATT_PAIRS))
            e = check_param(c, name, t, &p->modifier[i]->param);
    }
    return e;
}

/* ---- one head's view */

int64_t att_param_count(const att_tensor *t)
{
    int64_t n = t->rank ? 1 : 0;
    for (int i = 1; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* Where a table over pairs begins for this head, and its strides: 0 where it is broadcast. */
static int64_t pairs_start(const att_tensor *t, const att_place *at, int64_t stride[2])
{
    stride[0] = t->dim[2] == 1 ? 0 : t->stride[2];
    stride[1] = t->dim[3] == 1 ? 0 : t->stride[3];
    return (t->dim[0] == 1 ? 0 : at->sequence * t->stride[0]) + (t->dim[1] == 1 ? 0 : at->head * t->stride[1]);
}

static att_operand view(const att_tensor *t, unsigned flags, const att_place *at)
{
    att_operand o = {0};
    if (!att_given(t))
        return o;
    if (flags & ATT_PAIRS) {
        o.data = (const float *)t->data + pairs_start(t, at, o.stride);
    } else {
        o.data = (const float *)t->data + (t->dim[0] == 1 ? 0 : at->head * t->stride[0]);
        o.count = att_param_count(t);
    }
    return o;
}

void att_params_view(const att_call *c, att_site *site)
{
    const att_attention_args *a = &c->args;
    att_place *at = &site->place;
    if (att_given(&a->mask))
        at->mask = (const uint8_t *)a->mask.data + pairs_start(&a->mask, at, at->mask_stride);
    if (att_given(&a->k_documents))
        view_documents(c, at);
    at->window[0] = c->plan->spec.window_left;
    at->window[1] = c->plan->spec.window_right;
    for (int i = 0; i < ATT_MAX_PARAMS && !c->plan->plain; i++)
        site->score_param[i] = view(&a->score_param[i], 0, at);
    for (int i = 0; i < c->plan->n_modifiers; i++)
        site->modifier_param[i] = view(&a->modifier_param[i], c->plan->modifier[i]->flags, at);
}

/* ---- gradients */

enum { ALL_PARAMS = ATT_MAX_PARAMS + ATT_MAX_STAGES };

/* The n-th gradient, of the score's parameters and then of the modifiers'; NULL where it is not wanted, or is not that
 * of tiles but of the prologue. */
static const att_tensor *wanted(const att_call *c, const att_attention_grads *g, int n)
{
    const att_tensor *t = n < ATT_MAX_PARAMS ? &g->dscore_param[n] : &g->dmodifier_param[n - ATT_MAX_PARAMS];
    return att_given(t) && !(n < ATT_MAX_PARAMS && att_prologue_has(c->plan, n)) ? t : NULL;
}

static bool over_pairs(const att_call *c, int n)
{
    return n >= ATT_MAX_PARAMS && (c->plan->modifier[n - ATT_MAX_PARAMS]->flags & ATT_PAIRS);
}

/* A gradient over pairs: do several tasks add to the same place, and in several steps? */
static att_order order_of(const att_call *c, const att_tensor *t)
{
    const bool shared = (t->dim[0] == 1 && c->sequences > 1) || (t->dim[1] == 1 && c->plan->spec.heads > 1) ||
                        (t->dim[3] == 1 && c->max_tk > ATT_KEY_BLOCK);
    return !shared ? ATT_ORDER_NONE : t->dim[2] == 1 && c->max_tq > 1 ? ATT_ORDER_BY_TASK : ATT_ORDER_BY_STEP;
}

att_order att_params_order(const att_call *c, const att_attention_grads *g)
{
    att_order order = ATT_ORDER_NONE;
    for (int n = 0; n < ALL_PARAMS; n++)
        if (wanted(c, g, n) && over_pairs(c, n) && order_of(c, wanted(c, g, n)) > order)
            order = order_of(c, wanted(c, g, n));
    return order;
}

int64_t att_params_count(const att_call *c, const att_attention_grads *g)
{
    int64_t count = 0;
    for (int n = 0; n < ALL_PARAMS; n++)
        if (wanted(c, g, n) && !over_pairs(c, n))
            count += att_param_count(wanted(c, g, n));
    return count * (c->plan->spec.heads / c->plan->spec.kv_heads);
}

void att_params_point(const att_call *c, const att_attention_grads *g, const att_place *at, int64_t head_in_group,
                      float *part, att_operand *score_param, att_operand *modifier_param)
{
    const int64_t group = c->plan->spec.heads / c->plan->spec.kv_heads;
    for (int n = 0; n < ALL_PARAMS; n++) {
        const att_tensor *t = wanted(c, g, n);
        att_operand *o = n < ATT_MAX_PARAMS ? &score_param[n] : &modifier_param[n - ATT_MAX_PARAMS];
        if (!t)
            continue;
        if (over_pairs(c, n)) {
            o->grad = (float *)t->data + pairs_start(t, at, o->grad_stride);
        } else {
            o->grad = part + head_in_group * o->count;
            part += group * o->count;
        }
    }
}

/* Numbers in which the parts of all parameters are added up. */
int64_t att_params_sums(const att_call *c, const att_attention_grads *g)
{
    int64_t count = 0;
    for (int n = 0; n < ALL_PARAMS; n++)
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

void att_params_clear(const att_call *c, const att_attention_grads *g)
{
    for (int n = 0; n < ALL_PARAMS && !g->accumulate; n++)
        if (wanted(c, g, n) && over_pairs(c, n))
            for_each(wanted(c, g, n), NULL, set);
}

void att_params_sum(const att_call *c, const att_attention_grads *g, const att_tasks *tasks, const float *parts,
                    int64_t parts_stride, double *sums)
{
    const int64_t group = c->plan->spec.heads / c->plan->spec.kv_heads;
    memset(sums, 0, (size_t)att_params_sums(c, g) * sizeof *sums);
    for (int n = 0; n < ALL_PARAMS; n++) {
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
