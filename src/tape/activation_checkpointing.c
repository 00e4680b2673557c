/* Activation checkpointing: backward runs a function again, so that its intermediate results need not be kept. */
#include "tape/tape.h"

typedef struct recompute_saved {
    att_recompute_fn apply;
    const void *user; /* a copy */
    const att_tape_scope *scope;
} recompute_saved;

/* Makes views of x [n] (values, and gradients if the tape records) as variables of the function. */
static att_var *const *views_of(att_tape *t, att_var *const *x, int n)
{
    att_var **view = att_arena_alloc(&t->arena, att_size_mul((size_t)n, sizeof *view));
    if (!view) {
        att_tape_fail(t, ATT_ERR_MEMORY, "recompute: %s", att_error(t->ctx));
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        view[i] = att_tape_view(t, x[i], x[i]->value.rank, x[i]->value.dim);
        if (!view[i])
            return NULL;
        view[i]->requires_grad = x[i]->requires_grad;
    }
    return view;
}

/* Runs the function in the scope of the call, without the hook. */
static att_var *run(att_tape *t, const recompute_saved *k, att_var *const *x, int n)
{
    void (*const watch)(void *user, const att_tape_event *event) = t->hook;
    const att_tape_scope *scope = t->scope;
    const size_t own = t->own_mark;
    t->own_mark = att_arena_mark(&t->arena);
    att_var *const *view = views_of(t, x, n);
    t->hook = t->record ? NULL : watch;
    t->scope = k->scope;
    att_var *y = view ? k->apply(k->user, t, view) : NULL;
    if (!t->status && (!y || y->made <= t->own_mark))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "recompute: the function gave %s",
                      y ? "a variable that is not its own" : "NULL");
    t->hook = watch;
    t->scope = scope;
    t->own_mark = own;
    return t->status ? NULL : y;
}

/* ---- backward: a recorded forward, then its backward */

static att_status backward(att_tape *t, const att_step *s)
{
    att_var *last = t->last;
    att_tape_free_block *free_list = t->free_list;
    const bool recomputing = t->recomputing;
    t->recomputing = true;
    t->last = NULL;
    t->free_list = NULL; /* memory that the run frees is released with it */
    att_var *y = run(t, s->saved, s->in, s->n_in);
    att_status e = t->status ? att_fail(t->ctx, t->status, "%s", t->error)
                             : att_check_same_shape(t->ctx, "recompute: the function's second result", &y->value,
                                                    "its first", &s->y->value);
    t->status = ATT_OK; /* the tape itself has not failed: the backward may be repeated */
    e = e ? e : att_tape_run_backward(t, y, s->y->grad);
    t->last = last;
    t->free_list = free_list;
    t->recomputing = recomputing;
    return e;
}

const att_operation att_operation_recompute = {.name = "recompute", .backward = backward};

/* ---- forward */

static bool check(att_tape *t, att_recompute_fn apply, const void *user, size_t user_bytes, att_var *const *x, int n)
{
    if (!att_tape_ready(t))
        return false;
    if (!apply || !x)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "recompute: %s is NULL", x ? "apply" : "x");
    else if (n < 1)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "recompute: n is %d, less than 1", n);
    else if (!user && user_bytes > 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "recompute: user is NULL, but user_bytes is %zu", user_bytes);
    for (int i = 0; !t->status && i < n; i++)
        if (!x[i])
            return false;
    return !t->status;
}

att_var *att_recompute(att_tape *t, att_recompute_fn apply, const void *user, size_t user_bytes, att_var *const *x,
                       int n)
{
    if (!check(t, apply, user, user_bytes, x, n))
        return NULL;
    const bool record = t->record, learns = t->learns;
    const recompute_saved saved = {apply, att_tape_save(t, user, user_bytes), t->scope};
    const size_t mark = att_arena_mark(&t->arena);
    t->record = t->learns = false;
    att_var *y = att_tape_release(t, mark, t->status ? NULL : run(t, &saved, x, n));
    t->record = record;
    if (y && record) {
        t->last = y;
        y = att_tape_end(t, &att_operation_recompute, y, x, n, &saved, sizeof saved);
    }
    t->learns |= learns;
    return y;
}
