/* Checks the parameters of a call's stages. */
#include "attn/call/params.h"
#include "attn/call/transform.h"
#include "tensor/tensor.h"

#include <stdio.h>

/* Checks a table over all pairs: each dimension 1 or that of [B, heads, Tq, Tk]. */
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

/* Checks a number for each time step of q or k: [B or 1, T], ragged [tokens]. */
static att_status check_steps(const att_call *c, const char *name, const att_tensor *t, att_dtype dtype, bool of_keys)
{
    att_ctx *ctx = c->plan->ctx;
    const att_tensor *like = of_keys ? &c->args.k : &c->args.q;
    const bool ragged = att_call_is_ragged(c, of_keys);
    const int time = ragged ? 0 : 1;
    char like_dim[16];
    snprintf(like_dim, sizeof like_dim, "%s.dim[%d]", of_keys ? "k" : "q", ragged ? 0 : 2);
    const att_status e = att_check(ctx, name, t, dtype, time + 1);
    if (!e && !ragged && t->dim[0] != 1 && t->dim[0] != c->sequences)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[0] = %lld, expected 1 or the number of sequences = %lld", name,
                        (long long)t->dim[0], (long long)c->sequences);
    return e ? e : att_check_dim(ctx, name, t, time, like_dim, like->dim[ragged ? 0 : 2]);
}

static att_status check_of_head(const att_call *c, const char *name, const att_tensor *t, const att_param_shape *shape)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_spec *s = &c->plan->spec;
    const struct {
        const char *name;
        int64_t size;
    } extent[] = {[ATT_EXTENT_HEAD_DIM] = {"spec.head_dim", s->head_dim},
                  [ATT_EXTENT_KEY_DIM] = {"spec.key_dim", s->key_dim},
                  [ATT_EXTENT_SCORE_DIM] = {s->score_dim ? "spec.score_dim" : "spec.head_dim", c->plan->q_dim}};
    const att_extent extents[] = {shape->rows, shape->columns};
    const int rank = shape->rows == ATT_EXTENT_NONE ? 1 : shape->columns == ATT_EXTENT_NONE ? 2 : 3;
    att_status e = att_check(ctx, name, t, shape->dtype, rank);
    if (!e && t->dim[0] != 1 && t->dim[0] != s->heads)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[0] = %lld, expected 1 or spec.heads = %lld", name,
                        (long long)t->dim[0], (long long)s->heads);
    for (int i = 1; !e && i < rank; i++)
        if (extents[i - 1] != ATT_EXTENT_ANY)
            e = att_check_dim(ctx, name, t, i, extent[extents[i - 1]].name, extent[extents[i - 1]].size);
    for (int64_t i = rank - 1, dense = 1; !e && i > 0; dense *= t->dim[i--])
        if (t->dim[i] > 1 && t->stride[i] != dense)
            e = att_fail(ctx, ATT_ERR_ARGUMENT, "%s.stride[%d] = %lld, but one head of it must be dense (%lld)", name,
                         (int)i, (long long)t->stride[i], (long long)dense);
    return e;
}

att_status att_param_check(const att_call *c, const char *name, const att_tensor *t, const att_param_shape *shape)
{
    switch (shape->kind) {
    case ATT_PARAM_PER_PAIR:
        return check_pairs(c, name, t, shape->dtype);
    case ATT_PARAM_PER_QUERY:
    case ATT_PARAM_PER_KEY:
        return check_steps(c, name, t, shape->dtype, shape->kind == ATT_PARAM_PER_KEY);
    default:
        return check_of_head(c, name, t, shape);
    }
}

/* Writes the plan's parameters, as in: 2: W of "general", table of "relative". */
static void list_params(const att_plan *p, size_t size, char *text)
{
    size_t used = (size_t)snprintf(text, size, "%d", p->params.n_given);
    for (int i = 0; i < p->params.n && used < size; i++)
        if (p->params.list[i].given >= 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s of \"%s\"", p->params.list[i].given ? ", " : ": ",
                                     p->params.list[i].shape->name, p->params.list[i].stage_name);
}

/* Returns whether a parameter may be left zero. */
static bool left_out(const att_param_shape *shape) { return shape->optional || shape->as_queries; }

/* Checks that the number of parameters fits the plan: only optional ones are left out at the end. */
static att_status check_count(const att_call *c)
{
    const att_plan *p = c->plan;
    const int n = c->args.n_params;
    bool fits = n >= 0 && n <= p->params.n_given;
    char text[256];
    for (int i = 0; i < p->params.n; i++)
        fits = fits && (p->params.list[i].given < n || left_out(p->params.list[i].shape));
    if (fits && n && !c->args.param)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "args.param is NULL, but args.n_params is %d", n);
    if (fits)
        return ATT_OK;
    list_params(p, sizeof text, text);
    return att_fail(p->ctx, ATT_ERR_ARGUMENT, "args.n_params is %d, but the plan has %s", n, text);
}

/* Sets parameter i, which is not given: it is optional, or per key and then perhaps that of the queries. */
static att_status set_default(att_call *c, int i)
{
    const att_plan_param *param = &c->plan->params.list[i], *before = i ? param - 1 : NULL;
    const att_attention_args *a = &c->args;
    if (!left_out(param->shape))
        return att_fail(c->plan->ctx, ATT_ERR_ARGUMENT, "args.param[%d] is not given: the %s of \"%s\"", param->given,
                        param->shape->name, param->stage_name);
    if (!param->shape->as_queries || !before || before->stage != param->stage)
        return ATT_OK;
    if (!c->ragged ? c->max_tq != c->max_tk : a->cache || (a->k_offsets && a->k_offsets != a->q_offsets))
        return att_fail(c->plan->ctx, ATT_ERR_ARGUMENT,
                        "the %s of \"%s\" are not given, but the number of keys (%lld) is not that of queries (%lld)",
                        param->shape->name, param->stage_name, (long long)c->max_tk, (long long)c->max_tq);
    c->param[i] = c->param[i - 1];
    return ATT_OK;
}

/* Copies the args' parameters to the call. */
static att_status read_params(att_call *c)
{
    const att_plan *p = c->plan;
    att_status e = check_count(c);
    for (int i = 0; !e && i < p->params.n; i++) {
        const int n = p->params.list[i].given;
        c->param[i] = n >= 0 && n < c->args.n_params ? c->args.param[n] : (att_tensor){0};
        if (att_given(&c->param[i]))
            e = att_param_check(c, p->params.list[i].shape->name, &c->param[i], p->params.list[i].shape);
        else if (n >= 0)
            e = set_default(c, i);
    }
    return e;
}

/* Returns whether the mask's `inspect` is true for every sequence. */
static bool inspect(const att_call *c, int mask)
{
    for (int64_t b = 0; b < c->sequences; b++) {
        att_head_view at;
        att_call_head(c, b, 0, &at);
        const att_mask_block whole =
            att_mask_block_of(c->plan, mask, &at, (att_range){0, at.head.tq}, (att_range){0, at.head.tk});
        if (!c->plan->masks.list[mask].stage.inspect(&whole))
            return false;
    }
    return true;
}

att_status att_params_check(att_call *c)
{
    const att_plan *p = c->plan;
    att_status e = read_params(c);
    for (int i = 0; !e && i < p->modifiers.n; i++)
        if (p->modifiers.list[i].stage.check && p->modifiers.list[i].stage.n_params)
            e = p->modifiers.list[i].stage.check(p->ctx, p->modifiers.list[i].value,
                                                 &c->param[p->modifiers.list[i].param]);
    for (int i = 0; !e && i < p->masks.n; i++)
        if (p->masks.list[i].stage.check && p->masks.list[i].stage.n_params)
            e = p->masks.list[i].stage.check(p->ctx, p->masks.list[i].value, &c->param[p->masks.list[i].param]);
    for (int i = 0; !e && i < p->masks.n; i++)
        if (p->masks.list[i].stage.inspect && inspect(c, i))
            c->inspected |= 1u << i;
    return e;
}
