/* What the stages of a call are given beside q, k and v: parameters and tables. */
#include "attn/call/params.h"
#include "attn/call/transform.h"
#include "tensor/tensor.h"

#include <stdio.h>

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
static void view_documents(const att_call *c, att_head *at)
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
        att_head_view at;
        att_call_head(c, b, 0, &at);
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

att_status att_param_check(const att_call *c, const char *name, const att_tensor *t, const att_param_shape *shape)
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
    return flags & ATT_PAIRS ? check_pairs(c, name, t, ATT_F32) : att_param_check(c, name, t, shape);
}

/* The score's n-th parameter; NULL: it has none, or does without in this plan. */
static const att_param_shape *score_param(const att_plan *p, int n)
{
    const bool unused = att_transform_uses_param(p, n) && !p->transforms;
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

/* ---- one head's view */

int64_t att_param_count(const att_tensor *t)
{
    int64_t n = t->rank ? 1 : 0;
    for (int i = 1; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

int64_t att_pairs_start(const att_tensor *t, const att_head *at, int64_t stride[2])
{
    stride[0] = t->dim[2] == 1 ? 0 : t->stride[2];
    stride[1] = t->dim[3] == 1 ? 0 : t->stride[3];
    return (t->dim[0] == 1 ? 0 : at->sequence * t->stride[0]) + (t->dim[1] == 1 ? 0 : at->head * t->stride[1]);
}

static att_param_view view(const att_tensor *t, unsigned flags, const att_head *at)
{
    att_param_view o = {0};
    if (!att_given(t))
        return o;
    if (flags & ATT_PAIRS) {
        o.data = (const float *)t->data + att_pairs_start(t, at, o.stride);
    } else {
        o.data = (const float *)t->data + (t->dim[0] == 1 ? 0 : at->head * t->stride[0]);
        o.count = att_param_count(t);
    }
    return o;
}

void att_params_view(const att_call *c, att_head_view *site)
{
    const att_attention_args *a = &c->args;
    att_head *at = &site->place;
    if (att_given(&a->mask))
        at->mask = (const uint8_t *)a->mask.data + att_pairs_start(&a->mask, at, at->mask_stride);
    if (att_given(&a->k_documents))
        view_documents(c, at);
    at->window[0] = c->plan->spec.window_left;
    at->window[1] = c->plan->spec.window_right;
    for (int i = 0; i < ATT_MAX_PARAMS && !c->plan->no_params; i++)
        site->score_param[i] = view(&a->score_param[i], 0, at);
    for (int i = 0; i < c->plan->n_modifiers; i++)
        site->modifier_param[i] = view(&a->modifier_param[i], c->plan->modifier[i]->flags, at);
}
