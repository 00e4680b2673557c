/* Reverse-mode differentiation: steps from the last variable to the first; each adds to the gradients of its inputs. */
#include "tape/tape.h"

/* Returns the variable v if it is on the tape, otherwise NULL. v is not dereferenced, because it may be from before a
 * reset. */
static att_var *find(const att_tape *t, const att_var *v)
{
    att_var *own = t->last;
    while (own && own != v)
        own = own->before;
    return own;
}

static att_status check(const att_tape *t, const char *call, const att_var *v)
{
    if (att_require(call, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    if (!t->record)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the tape does not record: att_tape_config.record is false",
                        call);
    if (t->status)
        return att_fail(t->ctx, t->status, "%s", t->error);
    if (!v)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: v is NULL, but no operation has failed", call);
    if (!find(t, v))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                        "%s: the variable does not belong to this tape, or was made before its last reset", call);
    return ATT_OK;
}

static att_status check_dv(const att_tape *t, const att_var *v, const att_tensor *dv)
{
    const att_status s = att_check(t->ctx, "backward: dv", dv, ATT_F32, dv->rank);
    if (s)
        return s;
    if (!att_same_shape(dv, &v->value))
        return att_fail(t->ctx, ATT_ERR_SHAPE, "backward: dv is %s but the variable is %s", att_shape_of(dv).text,
                        att_shape_of(&v->value).text);
    if (!att_is_dense(dv))
        return att_fail(t->ctx, ATT_ERR_SHAPE, "backward: dv is %s but not dense", att_shape_of(dv).text);
    return ATT_OK;
}

/* ---- memory of gradients: reused as soon as a variable's step is done */

typedef struct free_block {
    struct free_block *next;
    size_t count;
    _Alignas(64) float x[]; /* [count] */
} free_block;

static float *allocate(att_tape *t, free_block **free_list, size_t count)
{
    free_block **best = NULL;
    for (free_block **s = free_list; *s; s = &(*s)->next)
        if ((*s)->count >= count && (!best || (*s)->count < (*best)->count))
            best = s;
    if (best) {
        free_block *s = *best;
        *best = s->next;
        return s->x;
    }
    const size_t bytes = att_size_mul(count, sizeof(float));
    free_block *s = bytes < SIZE_MAX - sizeof *s ? att_arena_alloc(&t->arena, sizeof *s + bytes) : NULL;
    if (!s)
        return NULL;
    s->count = count;
    return s->x;
}

static void release(free_block **free_list, float *x)
{
    free_block *s = (free_block *)((char *)x - offsetof(free_block, x));
    s->next = *free_list;
    *free_list = s;
}

/* Returns whether v's gradient may overwrite its value: only if the one step that reads v computes the gradient in
 * place. */
static bool may_overwrite(const att_var *v, const att_step *to)
{
    return to && to->op->in_place && v == to->in[0] && v->readers == 1 && v->step && v->step->op->ignores_y &&
           v->data_made > 0 && !v->base && !v->retains_grad;
}

/* Allocates the gradient of a variable that requires one and has none; step is the step that writes it. */
static att_status allocate_grad(att_tape *t, att_var *v, const att_step *step, free_block **free_list)
{
    if (!v || !v->requires_grad || v->grad)
        return ATT_OK;
    att_var *base = v->base ? v->base : v;
    if (!base->grad) {
        base->grad_written = false;
        base->grad =
            may_overwrite(base, step) ? base->value.data : allocate(t, free_list, (size_t)att_count(&base->value));
    }
    if (base->grad)
        v->grad = base->grad + ((const float *)v->value.data - (const float *)base->value.data);
    return v->grad ? ATT_OK : ATT_ERR_MEMORY;
}

/* Allocates all gradients before the first is written, in the order of the steps. */
static att_status allocate_grads(att_tape *t, att_var *from)
{
    free_block *free_list = NULL;
    att_status s = allocate_grad(t, from, NULL, &free_list);
    for (const att_var *v = from; v && !s; v = v->before) {
        if (!v->grad)
            continue;
        for (int i = 0; v->step && !s && i < v->step->n_in; i++)
            s = allocate_grad(t, v->step->in[i], v->step, &free_list);
        for (int i = 0; v->step && !s && i < v->step->n_param; i++)
            if (v->step->param[i])
                s = att_param_grad_begin(v->step->param[i], &t->partials);
        if (!v->retains_grad && !v->base && v->grad != v->value.data)
            release(&free_list, v->grad);
    }
    return s;
}

/* ---- steps */

static att_status step_back(att_tape *t, att_var *v)
{
    if (att_cancelled(t->ctx))
        return att_fail(t->ctx, ATT_ERR_CANCELLED, "backward was cancelled");
    att_tape_grad(v); /* zeros if no step has written it */
    const att_status s = v->step->op->backward ? v->step->op->backward(t, v->step) : ATT_OK;
    if (s == ATT_ERR_MEMORY && att_cancelled(t->ctx)) /* see att_tape_fail */
        return att_fail(t->ctx, ATT_ERR_CANCELLED, "backward was cancelled");
    return s || !t->detect_anomaly ? s : att_tape_check_finite_grads(t, v->step);
}

static att_status walk(att_tape *t, att_var *from)
{
    att_status s = ATT_OK;
    for (att_var *v = from; v && !s; v = v->before) {
        if (!v->grad || !v->step)
            continue;
        const size_t mark = att_arena_mark(&t->arena);
        s = step_back(t, v);
        att_arena_release(&t->arena, mark);
    }
    return s;
}

static void set_ones(att_var *from)
{
    float *grad = att_tape_grad(from);
    for (int64_t i = 0; grad && i < att_count(&from->value); i++)
        grad[i] = 1;
}

att_status att_tape_run_backward(att_tape *t, att_var *from, const float *dy)
{
    const att_status s = allocate_grads(t, from);
    if (s)
        return s;
    if (dy)
        att_tape_add_grad(t, from, dy);
    else
        set_ones(from);
    return walk(t, from);
}

static void end(att_tape *t, att_var *from, size_t mark, bool good)
{
    att_param_grads_end(t->partials, good);
    t->partials = NULL;
    for (att_var *v = from; v; v = v->before) {
        if (!good && v->grad && v->grad == v->value.data && v->grad_written)
            att_tape_fail(
                t, ATT_ERR_ARGUMENT,
                "backward: an earlier one failed after it had overwritten the logits: call att_tape_reset first");
        if (good && v->retains_grad)
            att_tape_grad(v);
        else
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
        s = att_fail(t->ctx, ATT_ERR_ARGUMENT, "backward: it has already run on this tape: call att_tape_reset first");
    s = s || !dv ? s : check_dv(t, v, dv);
    if (s)
        return s;
    att_var *from = find(t, v);
    const size_t mark = att_arena_mark(&t->arena);
    s = att_tape_run_backward(t, from, dv ? dv->data : NULL);
    end(t, from, mark, !s);
    return s;
}

att_var *att_retain_grad(att_tape *t, att_var *v)
{
    if (att_require("keep_grad", ATT_NAMED({"t", t})))
        return NULL;
    if (v && t->record)
        v->requires_grad = v->retains_grad = true;
    if (v && v->base)
        v->base->retains_grad = true;
    return v;
}

att_status att_var_grad(att_tape *t, const att_var *v, att_tensor *out)
{
    att_status s = check(t, "grad", v);
    s = s ? s : att_require("grad", ATT_NAMED({"out", out}));
    if (s)
        return s;
    if (!v->grad)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "grad: %s",
                        !t->has_grads ? "att_tape_backward has not run since the last reset"
                        : !v->retains_grad
                            ? "that of the variable was not kept: call att_retain_grad before the backward"
                            : "the variable that att_tape_backward was given does not depend on this one");
    *out = v->value;
    out->data = v->grad;
    return ATT_OK;
}
