/* The caller's operations: att_apply runs their forward and records their backward. */
#include "tape/tape.h"

/* ---- calls: an error has the sentence that the function has set, or the text of its status */

static void clear_error(att_ctx *ctx) { att_fail(ctx, ATT_OK, "%s", ""); }

static att_status name_error(att_ctx *ctx, const att_function *f, const char *call, att_status s)
{
    const char *sentence = att_error(ctx);
    return s ? att_fail(ctx, s, "%s: %s: %s", f->name, call, *sentence ? sentence : att_status_text(s)) : ATT_OK;
}

att_status att_function_forward(att_ctx *ctx, const att_function *f, const void *user, const att_tensor *x,
                                const att_tensor *y)
{
    clear_error(ctx);
    return name_error(ctx, f, "forward", f->forward(user, x, y));
}

att_status att_function_backward(att_ctx *ctx, const att_function *f, const void *user, const att_tensor *x,
                                 const att_tensor *y, const att_tensor *dy, const att_tensor *dx)
{
    clear_error(ctx);
    return name_error(ctx, f, "backward", f->backward(user, x, y, dy, dx));
}

/* ---- operations of a tape */

typedef struct apply_saved {
    att_function function;
    const void *user; /* a copy */
} apply_saved;

/* Makes the tensors of s->in, of values or of gradients; data is NULL if there is no gradient. NULL: error set. */
static att_tensor *tensors_of(att_tape *t, const att_step *s, bool grads)
{
    att_tensor *x = att_arena_alloc(&t->arena, att_size_mul((size_t)s->n_in, sizeof *x));
    for (int i = 0; x && i < s->n_in; i++) {
        x[i] = s->in[i]->value;
        x[i].data = grads ? att_tape_grad(s->in[i]) : x[i].data;
    }
    return x;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const apply_saved *saved = s->saved;
    const att_tensor *x = tensors_of(t, s, false), *dx = tensors_of(t, s, true);
    att_tensor dy = s->y->value;
    dy.data = s->y->grad;
    if (!x || !dx)
        return ATT_ERR_MEMORY;
    return att_function_backward(t->ctx, &saved->function, saved->user, x, &s->y->value, &dy, dx);
}

/* Each step has a copy of it with the name of its function. */
const att_operation att_operation_apply = {.name = "apply", .backward = backward};

/* ---- forward */

att_status att_function_read(const att_function *function, const char *call, att_function *f)
{
    if (!function)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: function is NULL", call);
    const att_status s = att_options_read(f, sizeof *f, function, "att_function");
    if (s)
        return s;
    const char *none = !f->name ? "name" : !f->forward ? "forward" : !f->backward ? "backward" : NULL;
    return none ? att_fail(NULL, ATT_ERR_ARGUMENT, "%s: function.%s is NULL", call, none) : ATT_OK;
}

static bool check(att_tape *t, const char *name, const void *user, size_t user_bytes, att_var *const *x, int n,
                  int rank)
{
    if (!x)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: x is NULL", name);
    else if (n < 1)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: n is %d, less than 1", name, n);
    else if (rank < 1)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: rank is %d, less than 1", name, rank);
    else if (!user && user_bytes > 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: user is NULL, but user_bytes is %zu", name, user_bytes);
    for (int i = 0; !t->status && i < n; i++)
        if (!x[i])
            return false;
    return !t->status;
}

att_var *att_apply(att_tape *t, const att_function *function, const void *user, size_t user_bytes, att_var *const *x,
                   int n, int rank, const int64_t *dim)
{
    apply_saved saved;
    if (!att_tape_ready(t))
        return NULL;
    const att_status e = att_function_read(function, "apply", &saved.function);
    if (e)
        return att_tape_fail(t, e, "%s", att_error(t->ctx));
    const char *name = saved.function.name;
    if (!check(t, name, user, user_bytes, x, n, rank))
        return NULL;
    const att_operation named = {.name = name, .backward = backward}, *op = att_tape_save(t, &named, sizeof named);
    saved.user = att_tape_save(t, user, user_bytes);
    att_var *y = att_tape_var(t, rank, dim);
    if (!y)
        return NULL;
    const size_t mark = att_arena_mark(&t->arena);
    const att_step step = {.op = op, .y = y, .in = x, .n_in = n, .saved = &saved, .saved_bytes = sizeof saved};
    const att_tensor *values = tensors_of(t, &step, false);
    if (!values)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", name, att_error(t->ctx));
    const att_status s = att_function_forward(t->ctx, &saved.function, saved.user, values, &y->value);
    att_arena_release(&t->arena, mark);
    if (s)
        return att_tape_fail(t, s, "%s", att_error(t->ctx));
    return att_tape_done(t, &step, NULL, NULL);
}
