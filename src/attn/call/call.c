/* Checks of a call's arguments. */
#include "attn/call/params.h"
#include "tensor/tensor.h"

#include <stddef.h>

static att_status check_operand(const att_call *c, const char *name, const att_tensor *t, int64_t heads,
                                const char *heads_name, int64_t dim, const char *dim_name, bool output)
{
    att_ctx *ctx = c->plan->ctx;
    const att_axes x = att_call_axes(c);
    const att_dtype dtype = c->plan->spec.dtype;
    att_status e = output ? att_check_output(ctx, name, t, dtype, x.rank) : att_check(ctx, name, t, dtype, x.rank);
    e = e ? e : att_check_dim(ctx, name, t, x.head, heads_name, heads);
    e = e ? e : att_check_dim(ctx, name, t, x.dim, dim_name, dim);
    return e ? e : att_check_contiguous(ctx, name, t);
}

/* Checks the shapes of k and, for outputs, v, which fit those of q. */
static att_status check_keys(const att_call *c, bool outputs)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_args *a = &c->args;
    const att_attention_spec *s = &c->plan->spec;
    const int time = att_call_axes(c).time;
    att_status e = check_operand(c, "k", &a->k, s->kv_heads, "spec.kv_heads", s->key_dim,
                                 s->key_dim == s->head_dim ? "spec.head_dim" : "spec.key_dim", false);
    if (!e && !c->ragged)
        e = att_check_dim(ctx, "k", &a->k, 0, "q.dim[0]", a->q.dim[0]);
    if (e || !outputs)
        return e;
    e = check_operand(c, "v", &a->v, s->kv_heads, "spec.kv_heads", s->value_dim, "spec.value_dim", false);
    e = e ? e : att_check_dim(ctx, "v", &a->v, time, c->ragged ? "k.dim[0]" : "k.dim[2]", a->k.dim[time]);
    if (!e && !c->ragged)
        e = att_check_dim(ctx, "v", &a->v, 0, "q.dim[0]", a->q.dim[0]);
    return e;
}

/* Checks the shapes of q, k and, for outputs, v, out and lse. */
static att_status check_shapes(const att_call *c, bool outputs)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_args *a = &c->args;
    const att_attention_spec *s = &c->plan->spec;
    const att_axes x = att_call_axes(c);
    att_status e = check_operand(c, "q", &a->q, s->heads, "spec.heads", s->head_dim, "spec.head_dim", false);
    if (!e && a->cache && !c->ragged)
        e = att_check_dim(ctx, "q", &a->q, 0, "the number of the cache's sequences", a->k.dim[0]);
    if (!e && !a->cache)
        e = check_keys(c, outputs);
    if (e || !outputs)
        return e;
    e = check_operand(c, "out", &a->out, s->heads, "spec.heads", s->value_dim, "spec.value_dim", true);
    e = e ? e : att_check_dim(ctx, "out", &a->out, x.time, c->ragged ? "q.dim[0]" : "q.dim[2]", a->q.dim[x.time]);
    if (!e && !c->ragged)
        e = att_check_dim(ctx, "out", &a->out, 0, "q.dim[0]", a->q.dim[0]);
    if (!e && a->lse.data) {
        e = att_check_output(ctx, "lse", &a->lse, ATT_F32, x.rank - 1);
        for (int i = 0; !e && i < x.rank - 1; i++)
            e = att_check_dim(ctx, "lse", &a->lse, i, "that of q", a->q.dim[i]);
    }
    return e;
}

/* The tensors of att_attention_args, and what they are called. */
static const att_tensor_group of_args[] = {
    {{"q", "k", "v", "out", "lse"}, offsetof(att_attention_args, q), 5},
    {{NULL}, 0, 0},
};

att_status att_check_group_apart(att_ctx *ctx, const char *name, const att_tensor *t, const void *from,
                                 const att_tensor_group *groups)
{
    att_status e = ATT_OK;
    for (const att_tensor_group *g = groups; g->count; g++)
        for (int i = 0; !e && i < g->count; i++) {
            const att_tensor *other = (const att_tensor *)((const char *)from + g->at) + i;
            if (other != t && other->data)
                e = att_check_apart(ctx, name, t, g->name[i < 5 && g->name[i] ? i : 0], other);
        }
    return e;
}

att_status att_call_check_apart(const att_call *c, const char *name, const att_tensor *t)
{
    att_status e = att_check_group_apart(c->plan->ctx, name, t, &c->args, of_args);
    for (int i = 0; !e && i < c->plan->params.n; i++)
        if (c->param[i].data)
            e = att_check_apart(c->plan->ctx, name, t, c->plan->params.list[i].shape->name, &c->param[i]);
    return e;
}

static att_status check_outputs_apart(const att_call *c)
{
    const att_attention_args *a = &c->args;
    const att_status e = att_call_check_apart(c, "out", &a->out);
    return e || !a->lse.data ? e : att_call_check_apart(c, "lse", &a->lse);
}

att_status att_check_offsets(att_ctx *ctx, const char *name, const int64_t *offsets, int64_t n, const char *tokens_name,
                             int64_t tokens, int64_t *longest)
{
    if (offsets[0] != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[0] = %lld, expected 0", name, (long long)offsets[0]);
    *longest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (offsets[i + 1] < offsets[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] = %lld is less than %s[%lld] = %lld", name,
                            (long long)i + 1, (long long)offsets[i + 1], name, (long long)i, (long long)offsets[i]);
        if (offsets[i + 1] - offsets[i] > *longest)
            *longest = offsets[i + 1] - offsets[i];
    }
    if (offsets[n] != tokens)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s[%lld] = %lld but %s = %lld", name, (long long)n, (long long)offsets[n],
                        tokens_name, (long long)tokens);
    return ATT_OK;
}

static att_status check_lengths(att_ctx *ctx, const char *name, const int64_t *lengths, int64_t n, int64_t max)
{
    for (int64_t i = 0; lengths && i < n; i++)
        if (lengths[i] < 0 || lengths[i] > max)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] = %lld, expected 0..%lld", name, (long long)i,
                            (long long)lengths[i], (long long)max);
    return ATT_OK;
}

static att_status check_sequences(att_call *c)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_args *a = &c->args;
    if (!c->ragged) {
        c->max_tq = a->q.dim[2];
        c->max_tk = a->k.dim[2];
        const att_status e = check_lengths(ctx, "q_lengths", a->q_lengths, c->sequences, c->max_tq);
        return e ? e : check_lengths(ctx, "k_lengths", a->k_lengths, c->sequences, c->max_tk);
    }
    if (a->n_sequences < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "args.n_sequences is %lld", (long long)a->n_sequences);
    if (a->n_sequences == 0 && a->q.dim[0] > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "args.n_sequences is 0, but args.q_offsets is given and q is %s",
                        att_shape_of(&a->q).text);
    if (a->q_lengths || a->k_lengths)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is given together with args.q_offsets, which state the lengths",
                        a->q_lengths ? "q_lengths" : "k_lengths");
    const int64_t *k_offsets = a->k_offsets ? a->k_offsets : a->q_offsets;
    const att_status e =
        att_check_offsets(ctx, "q_offsets", a->q_offsets, a->n_sequences, "q.dim[0]", a->q.dim[0], &c->max_tq);
    if (e)
        return e;
    if (a->cache) {
        c->max_tk = a->k.dim[2];
        return ATT_OK;
    }
    return att_check_offsets(ctx, a->k_offsets ? "k_offsets" : "q_offsets", k_offsets, a->n_sequences, "k.dim[0]",
                             a->k.dim[0], &c->max_tk);
}

static att_status check_dropout(const att_call *c)
{
    const float p = c->plan->spec.dropout;
    if (p > 0 && !c->args.sequence_ids && c->sequences)
        return att_fail(c->plan->ctx, ATT_ERR_ARGUMENT,
                        "args.sequence_ids is NULL, but with spec.dropout = %g each of the %lld sequences needs an id",
                        (double)p, (long long)c->sequences);
    return ATT_OK;
}

/* Returns whether a key head is projected for each of its query heads, because each of these has its own parameter. */
static bool keys_per_head(const att_call *c)
{
    const att_plan *p = c->plan;
    return p->transforms && p->transforms->k.kind == ATT_TRANSFORM_PROJECT && p->spec.heads > p->spec.kv_heads &&
           c->param[p->transforms->k.param].dim[0] > 1;
}

att_status att_call_check(const att_plan *plan, const att_attention_args *args, bool outputs, att_call *call)
{
    if (!plan || !args)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s is NULL", plan ? "args" : "plan");
    att_ctx *ctx = plan->ctx;
    *call = (att_call){.plan = plan, .outputs = outputs, .heads = {0, plan->spec.heads}};
    att_status e = att_options_read(&call->args, sizeof call->args, args, "att_attention_args");
    if (e)
        return e;
    args = &call->args;
    e = args->cache ? att_cache_check(call) : ATT_OK;
    call->ragged = args->q_offsets != NULL;
    if (!e && !call->ragged && (args->n_sequences || args->k_offsets))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is given without args.q_offsets",
                     args->n_sequences ? "n_sequences" : "k_offsets");
    if (!e && !call->ragged && !args->cache && args->q.data && args->q.rank == 3)
        e = att_fail(ctx, ATT_ERR_SHAPE,
                     "q %s has 3 dimensions but must have 4, as args.n_sequences is 0 and args.q_offsets NULL",
                     att_shape_of(&args->q).text);
    e = e ? e : check_shapes(call, outputs);
    if (e)
        return e;
    call->sequences = call->ragged ? args->n_sequences : args->q.dim[0];
    call->q_rows = args->q;
    call->k_rows = args->k;
    e = check_sequences(call);
    if (!e && outputs)
        e = check_dropout(call);
    if (!e && plan->spec.align == ATT_ALIGN_STARTS && !args->q_starts)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "spec.align is ATT_ALIGN_STARTS but args.q_starts is NULL");
    for (int64_t b = 0; !e && plan->spec.align == ATT_ALIGN_STARTS && b < call->sequences; b++)
        if (args->q_starts[b] < -((int64_t)1 << 48) || args->q_starts[b] > (int64_t)1 << 48)
            e = att_fail(ctx, ATT_ERR_ARGUMENT, "q_starts[%lld] = %lld is not a position", (long long)b,
                         (long long)args->q_starts[b]);
    e = e ? e : att_params_check(call);
    call->keys_per_head = !e && keys_per_head(call);
    if (!e && outputs)
        e = check_outputs_apart(call);
    return e;
}
