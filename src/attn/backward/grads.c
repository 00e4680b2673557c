/* Checks the gradients that a backward call receives. */
#include "attn/backward/backward.h"
#include "tensor/tensor.h"

#include <stdio.h>

/* The tensors of att_attention_grads, and what they are called. */
static const att_tensor_group of_grads[] = {
    {{"dout", "dlse"}, offsetof(att_attention_grads, dout), 2},
    {{"dq", "dk", "dv"}, offsetof(att_attention_grads, dq), 3},
    {{NULL}, 0, 0},
};

/* Checks that a gradient has the shape of `like` and shares no memory with anything else of the call. */
static att_status check_grad(const att_call *c, const char *name, const att_tensor *t, const char *like_name,
                             const att_tensor *like, const att_attention_grads *g)
{
    att_ctx *ctx = c->plan->ctx;
    if (!att_given(t))
        return ATT_OK;
    if (!att_given(like))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "grads.%s is given, but args.%s is not", name, like_name);
    att_status e = att_check_output(ctx, name, t, like->dtype, like->rank);
    e = e ? e : att_check_same_shape(ctx, name, t, like_name, like);
    e = e ? e : att_call_check_apart(c, name, t);
    e = e ? e : att_check_group_apart(ctx, name, t, g, of_grads);
    for (int i = 0; !e && i < c->plan->params.n; i++)
        if (&g->dparam[i] != t && g->dparam[i].data)
            e = att_check_apart(ctx, name, t, "dparam", &g->dparam[i]);
    return e;
}

/* Copies the gradients of the plan's parameters to dparam [n_params]. */
static att_status read_params(const att_call *c, const att_attention_grads *g, att_tensor *dparam)
{
    const att_plan *p = c->plan;
    if (g->n_dparams < 0 || g->n_dparams > p->params.n_given)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "grads.n_dparams is %d, but the plan has %d parameters", g->n_dparams,
                        p->params.n_given);
    if (g->n_dparams && !g->dparam)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "grads.dparam is NULL, but grads.n_dparams is %d", g->n_dparams);
    for (int i = 0; i < p->params.n; i++) {
        const int n = p->params.list[i].given;
        dparam[i] = n >= 0 && n < g->n_dparams ? g->dparam[n] : (att_tensor){0};
        if (att_given(&dparam[i]) && p->params.list[i].of_mask)
            return att_fail(p->ctx, ATT_ERR_ARGUMENT, "grads.dparam[%d] is given, but the %s of \"%s\" has no gradient",
                            n, p->params.list[i].shape->name, p->params.list[i].stage_name);
    }
    return ATT_OK;
}

static att_status check_params(const att_call *c, const att_attention_grads *g)
{
    const att_plan *p = c->plan;
    char name[64];
    att_status e = ATT_OK;
    for (int i = 0; !e && i < p->params.n; i++) {
        const att_tensor *t = &g->dparam[i];
        snprintf(name, sizeof name, "d%s", p->params.list[i].shape->name);
        e = check_grad(c, name, t, name + 1, &c->param[i], g);
        if (!e && att_given(t) && p->params.list[i].shape->kind == ATT_PARAM_PER_HEAD)
            e = att_param_check(c, name, t, p->params.list[i].shape);
    }
    return e;
}

/* Returns the first stage that has no derivative. */
static const char *stage_without_backward(const att_plan *p)
{
    if (!p->score.derivative)
        return p->score.name;
    for (int i = 0; i < p->modifiers.n; i++)
        if (!p->modifiers.list[i].stage.derivative && !(p->modifiers.list[i].stage.flags & ATT_STAGE_SINK))
            return p->modifiers.list[i].stage.name;
    return NULL;
}

att_status att_backward_check(const att_call *c, const att_attention_grads *grads, att_attention_grads *g,
                              att_tensor *dparam)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_args *a = &c->args;
    if (!grads)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "grads is NULL");
    if (a->cache)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "there is no backward through args.cache: give args.k and args.v");
    if (stage_without_backward(c->plan))
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "\"%s\" has no derivative", stage_without_backward(c->plan));
    att_status e = att_options_read(g, sizeof *g, grads, "att_attention_grads");
    e = e ? e : read_params(c, g, dparam);
    g->dparam = dparam;
    if (!e && !att_given(&a->lse))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "args.lse is not given: the backward needs that of the forward");
    e = e ? e : att_check(ctx, "dout", &g->dout, a->out.dtype, att_call_axes(c).rank);
    e = e ? e : att_check_contiguous(ctx, "dout", &g->dout);
    e = e ? e : att_check_same_shape(ctx, "dout", &g->dout, "out", &a->out);
    if (!e && att_given(&g->dlse)) {
        e = att_check(ctx, "dlse", &g->dlse, ATT_F32, att_call_axes(c).rank - 1);
        e = e ? e : att_check_same_shape(ctx, "dlse", &g->dlse, "lse", &a->lse);
    }
    const struct {
        const char *name;
        const att_tensor *t, *like;
    } outputs[] = {{"dq", &g->dq, &a->q}, {"dk", &g->dk, &a->k}, {"dv", &g->dv, &a->v}};
    for (int i = 0; !e && i < 3; i++) {
        if (att_given(outputs[i].t)) {
            e = att_check(ctx, outputs[i].name, outputs[i].t, outputs[i].like->dtype, att_call_axes(c).rank);
            e = e ? e : att_check_contiguous(ctx, outputs[i].name, outputs[i].t);
        }
        e = e ? e : check_grad(c, outputs[i].name, outputs[i].t, outputs[i].name + 1, outputs[i].like, g);
    }
    return e ? e : check_params(c, g);
}
