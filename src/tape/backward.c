/* Backward over a tape: from the last variable to the first, each step adds to the gradients of what it was made of. */
#include "tape/tape.h"

#include <string.h>

float *att_tape_scratch(att_tape *t, size_t count)
{
    return att_arena_alloc(&t->arena, att_size_mul(count, sizeof(float)));
}

typedef struct sum_job {
    const att_kernels *k;
    const float *x;
    float *y; /* both [count] */
} sum_job;

static void sum(const void *arg, int64_t first, int64_t last)
{
    const sum_job *j = arg;
    j->k->add(last - first, j->y + first, j->x + first, j->y + first);
}

void att_tape_sum(att_ctx *ctx, int64_t count, const float *x, float *y)
{
    const sum_job j = {att_kernels_of(ctx->isa), x, y};
    att_tape_for_rows(ctx, count, 1, sum, &j);
}

/* ---- what may begin */

/* The variable itself, NULL where it is none of the tape's. It is not looked into: it may be one of before a reset. */
static att_var *find(const att_tape *t, const att_var *v)
{
    att_var *own = t->last;
    while (own && own != v)
        own = own->before;
    return own;
}

static att_status check(const att_tape *t, const char *call, const att_var *v)
{
    if (!t->record)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the tape does not record: att_tape_config.record is false",
                        call);
    if (t->status)
        return att_fail(t->ctx, t->status, "%s", t->error);
    if (!v)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the variable is NULL but no operation has failed", call);
    if (!find(t, v))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the variable is none of this tape's since its last reset", call);
    return ATT_OK;
}

static att_status check_dv(const att_tape *t, const att_var *v, const att_tensor *dv)
{
    const att_status s = att_check(t->ctx, "backward: dv", dv, ATT_F32, dv->rank);
    if (s)
        return s;
    bool same = dv->rank == v->value.rank;
    for (int i = 0; same && i < dv->rank; i++)
        same = dv->dim[i] == v->value.dim[i];
    if (!same)
        return att_fail(t->ctx, ATT_ERR_SHAPE, "backward: dv is %s but the variable is %s", att_shape_of(dv).text,
                        att_shape_of(&v->value).text);
    if (!att_is_dense(dv))
        return att_fail(t->ctx, ATT_ERR_SHAPE, "backward: dv is %s but not dense", att_shape_of(dv).text);
    return ATT_OK;
}

/* ---- the walk */

/* A gradient of zeros for a variable that has none yet. */
static att_status reach(att_tape *t, att_var *v)
{
    if (!v || v->grad)
        return ATT_OK;
    const size_t count = (size_t)att_count(&v->value);
    v->grad = att_tape_scratch(t, count);
    if (!v->grad)
        return ATT_ERR_MEMORY;
    memset(v->grad, 0, count * sizeof *v->grad);
    return ATT_OK;
}

/* Memory for all gradients before the first is written. */
static att_status reach_all(att_tape *t, att_var *from)
{
    att_status s = reach(t, from);
    for (const att_var *v = from; v && !s; v = v->before) {
        if (!v->grad || !v->step)
            continue;
        for (size_t i = 0; !s && i < sizeof v->step->in / sizeof v->step->in[0]; i++)
            s = reach(t, v->step->in[i]);
        for (size_t i = 0; !s && i < sizeof v->step->param / sizeof v->step->param[0]; i++)
            if (v->step->param[i])
                s = att_param_grad_begin(v->step->param[i]);
    }
    return s;
}

static att_status walk(att_tape *t, att_var *from, const att_tensor *dv)
{
    const int64_t count = att_count(&from->value);
    for (int64_t i = 0; i < count; i++)
        from->grad[i] = dv ? ((const float *)dv->data)[i] : 1;
    att_status s = ATT_OK;
    for (const att_var *v = from; v && !s; v = v->before) {
        if (!v->grad || !v->step)
            continue;
        const size_t mark = att_arena_mark(&t->arena);
        s = att_cancelled(t->ctx) ? att_fail(t->ctx, ATT_ERR_CANCELLED, "backward was cancelled")
                                  : v->step->op->backward(t, v->step);
        att_arena_release(&t->arena, mark);
    }
    return s;
}

static void end(att_tape *t, att_var *from, size_t mark, bool good)
{
    for (att_var *v = from; v; v = v->before) {
        for (size_t i = 0; v->grad && v->step && i < sizeof v->step->param / sizeof v->step->param[0]; i++)
            if (v->step->param[i])
                att_param_grad_end(v->step->param[i], good);
        if (!good)
            v->grad = NULL;
    }
    if (!good)
        att_arena_release(&t->arena, mark);
    t->has_grads = good;
}

att_status att_tape_backward(att_tape *t, const att_var *v, const att_tensor *dv)
{
    att_status s = check(t, "backward", v);
    if (!s && t->has_grads)
        s = att_fail(t->ctx, ATT_ERR_ARGUMENT, "backward: the tape has been through one; att_tape_reset comes between");
    s = s || !dv ? s : check_dv(t, v, dv);
    if (s)
        return s;
    att_var *from = find(t, v);
    const size_t mark = att_arena_mark(&t->arena);
    s = reach_all(t, from);
    s = s ? s : walk(t, from, dv);
    end(t, from, mark, !s);
    return s;
}

att_status att_grad(att_tape *t, const att_var *v, att_tensor *out)
{
    const att_status s = check(t, "grad", v);
    if (s)
        return s;
    if (!v->grad)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "grad: %s",
                        t->has_grads ? "what att_tape_backward was given does not depend on the variable"
                                     : "att_tape_backward has not run since the last reset");
    *out = v->value;
    out->data = v->grad;
    return ATT_OK;
}
