/* The tape: variables in an arena, scopes that free them, the first error. */
#include "tape/tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct att_tape_scope {
    const att_tape_scope *parent;
    size_t made; /* the arena's mark after this struct */
    int depth;   /* 1: outermost */
    char path[];
};

const char *att_tape_scope_path(const att_tape *t) { return t->scope ? t->scope->path : ""; }
static int depth_of(const att_tape *t) { return t->scope ? t->scope->depth : 0; }

static size_t bytes_of(const att_tensor *x) { return (size_t)att_count(x) * sizeof(float); }

/* ---- the tape */

att_status att_tape_new(att_ctx *ctx, const att_tape_config *cfg, att_tape **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_tape_config c;
    att_status s = att_options_read(&c, sizeof c, cfg, "att_tape_config");
    s = s ? s : att_tape_choose_compute(ctx, c.compute, &c.compute);
    if (s)
        return s;
    att_tape *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = ctx;
    t->hook = c.hook;
    t->before_attend = c.before_attend;
    t->hook_user = c.hook_user;
    t->record = t->for_backward = c.record;
    t->detect_anomaly = c.detect_anomaly;
    t->bf16 = c.compute == ATT_COMPUTE_BF16;
    att_arena_init(&t->arena, ctx);
    *out = t;
    return ATT_OK;
}

bool att_tape_require(att_tape *t, const char *function, const att_named *given, size_t n)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"function", function})))
        return false;
    return !att_require(function, given, n) || att_tape_fail(t, ATT_ERR_ARGUMENT, "%s", att_error(NULL));
}

att_ctx *att_tape_ctx(const att_tape *t) { return t ? t->ctx : NULL; }

void att_tape_free(att_tape *t)
{
    if (!t)
        return;
    att_arena_free(&t->arena);
    att_free(t->ctx, t);
}

void att_tape_reset(att_tape *t)
{
    if (!t)
        return;
    att_arena_reset(&t->arena);
    t->scope = NULL;
    t->status = ATT_OK;
    t->last = NULL;
    t->free_list = NULL;
    t->has_grads = false;
    t->own_mark = 0;
}

size_t att_tape_bytes(const att_tape *t) { return t ? sizeof *t + att_arena_bytes(&t->arena) : 0; }

void att_tape_trim(att_tape *t)
{
    if (t)
        att_arena_trim(&t->arena);
}

att_var *att_tape_fail(att_tape *t, att_status s, const char *format, ...)
{
    if (att_require("tape_fail", ATT_NAMED({"t", t})) || t->status)
        return NULL;
    if (!format)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "tape_fail: format is NULL");
    const char *path = att_tape_scope_path(t);
    int n = *path ? snprintf(t->error, sizeof t->error, "%s: ", path) : 0;
    if (n >= (int)sizeof t->error)
        n = 0; /* a path of this length would hide the message */
    va_list args;
    va_start(args, format);
    vsnprintf(t->error + n, sizeof t->error - (size_t)n, format, args);
    va_end(args);
    /* If a call is cancelled while weights are copied, the status is ATT_ERR_MEMORY, which becomes ATT_ERR_CANCELLED
     * here. */
    t->status = s == ATT_ERR_MEMORY && att_cancelled(t->ctx) ? ATT_ERR_CANCELLED : s;
    return NULL;
}

att_var *att_tape_fail_text(att_tape *t, att_status s, const char *text)
{
    return att_tape_require(t, __func__, ATT_NAMED({"text", text})) ? att_tape_fail(t, s, "%s", text) : NULL;
}

bool att_tape_ready(att_tape *t)
{
    if (att_require("tape", ATT_NAMED({"t", t})))
        return false;
    if (!t->status && att_cancelled(t->ctx))
        att_tape_fail(t, ATT_ERR_CANCELLED, "cancelled");
    return !t->status;
}

bool att_tape_options_read(att_tape *t, const char *function, void *dst, size_t dst_size, const void *src,
                           const char *type_name)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"function", function})))
        return false;
    const att_status s = att_options_read(dst, dst_size, src, type_name);
    if (s)
        att_tape_fail(t, s, "%s: %s", function, att_error(t->ctx));
    return !s;
}

/* ---- variables */

/* Allocates memory of a variable; NULL also if the tape has failed, so that checking the last allocation suffices. */
static void *allocate(att_tape *t, size_t bytes, size_t *made)
{
    void *p = t->status ? NULL : att_arena_alloc(&t->arena, bytes);
    if (!p)
        att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(t->ctx));
    *made = att_arena_mark(&t->arena);
    return p;
}

static att_var *new_var(att_tape *t, int rank, const int64_t *dim)
{
    size_t made;
    att_var *v = allocate(t, sizeof *v, &made);
    if (!v)
        return NULL;
    *v = (att_var){.made = made, .before = t->last};
    const att_status s = att_wrap(&v->value, NULL, ATT_F32, rank, dim, NULL);
    if (s)
        return att_tape_fail(t, s, "%s", att_error(t->ctx));
    if (t->record)
        t->last = v;
    return v;
}

/* Free memory for reuse, on a tape that records. */
struct att_tape_free_block {
    att_tape_free_block *next;
    size_t bytes;
};

static void *allocate_value(att_tape *t, size_t bytes, size_t *made)
{
    att_tape_free_block **s = &t->free_list;
    while (*s && (*s)->bytes != bytes)
        s = &(*s)->next;
    if (!*s || !t->record)
        return allocate(t, bytes, made);
    void *p = *s;
    *s = (*s)->next;
    *made = att_arena_mark(&t->arena);
    return p;
}

att_var *att_tape_var(att_tape *t, int rank, const int64_t *dim)
{
    att_var *v = new_var(t, rank, dim);
    if (v)
        v->value.data = allocate_value(t, bytes_of(&v->value), &v->data_made);
    return v && v->value.data ? v : NULL;
}

att_var *att_tape_like(att_tape *t, const att_var *x)
{
    return x && att_tape_ready(t) ? att_tape_var(t, x->value.rank, x->value.dim) : NULL;
}

/* Frees values above the mark, except those of keep, that no backward reads: puts their memory into the free list. */
static void free_values(att_tape *t, size_t mark, const att_var *keep)
{
    for (att_var *v = t->last; v && v->made > mark; v = v->before) {
        const size_t bytes = bytes_of(&v->value);
        const bool unread = v->unrecorded ? v->data_made > 0 : v->step && v->step->op->ignores_y;
        if (!unread || v == keep || (keep && v == keep->base) || v->value_freed || v->value_needed || v->base ||
            v->retains_grad || bytes < sizeof(att_tape_free_block))
            continue;
        att_tape_free_block *s = v->value.data;
        *s = (att_tape_free_block){t->free_list, bytes};
        t->free_list = s;
        v->value_freed = true;
    }
}

att_var *att_tape_view(att_tape *t, att_var *of, int rank, const int64_t *dim)
{
    return att_tape_part(t, of, 0, rank, dim);
}

att_var *att_tape_part(att_tape *t, att_var *of, int64_t at, int rank, const int64_t *dim)
{
    att_var *v = new_var(t, rank, dim);
    if (!v)
        return NULL;
    v->value.data = (float *)of->value.data + at;
    v->data_made = of->data_made;
    if (t->record) {
        v->base = of->base ? of->base : of;
        v->base->value_needed |= !v->base->unrecorded; /* otherwise only if a backward reads the view: record.c */
    }
    return v;
}

att_var *att_constant(att_tape *t, const att_tensor *x)
{
    if (!att_tape_ready(t))
        return NULL;
    if (!x)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "input: x is NULL");
    if (x->rank < 1 || x->rank > ATT_MAX_RANK)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "input: x is not a tensor of rank 1 to %d", ATT_MAX_RANK);
    if (x->dtype != ATT_F32)
        return att_tape_fail(t, ATT_ERR_DTYPE, "input: x is %s, not f32", att_dtype_name(x->dtype));
    att_var *v = new_var(t, x->rank, x->dim);
    if (!v)
        return NULL;
    if (!x->data && bytes_of(&v->value) > 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "input: x.data is NULL but x is %s", att_shape_of(x).text);
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] > 1 && x->stride[i] != v->value.stride[i])
            return att_tape_fail(t, ATT_ERR_SHAPE, "input: x is not dense: stride[%d] = %lld, not %lld", i,
                                 (long long)x->stride[i], (long long)v->value.stride[i]);
    v->value.data = x->data;
    return v;
}

att_var *att_input(att_tape *t, const att_tensor *x)
{
    att_var *v = att_constant(t, x);
    if (v)
        v->requires_grad = v->retains_grad = true;
    return v;
}

att_status att_var_value(att_tape *t, const att_var *v, att_tensor *out)
{
    if (att_require("read", ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    if (t->status)
        return att_fail(t->ctx, t->status, "%s", t->error);
    if (!v)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "read: v is NULL, but no operation has failed");
    if (att_require("read", ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    *out = v->value;
    return ATT_OK;
}

const void *att_tape_save(att_tape *t, const void *p, size_t bytes)
{
    size_t made;
    void *copy = t->record ? allocate(t, bytes, &made) : NULL;
    if (copy && bytes)
        memcpy(copy, p, bytes);
    return t->record ? copy : p;
}

/* ---- scopes */

att_scope att_scope_begin(att_tape *t, const char *name)
{
    if (!t)
        return (att_scope){0};
    const att_scope s = {.mark = att_arena_mark(&t->arena), .depth = depth_of(t)};
    if (att_tape_ready(t) && !name)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "scope_begin: name is NULL");
    if (t->status)
        return s;
    const char *parent = att_tape_scope_path(t);
    const size_t bytes = strlen(parent) + strlen(name) + 2; /* "/" and the zero byte */
    size_t made;
    att_tape_scope *scope = allocate(t, sizeof *scope + bytes, &made);
    if (!scope)
        return s;
    scope->parent = t->scope;
    scope->made = made;
    scope->depth = s.depth + 1;
    snprintf(scope->path, bytes, "%s%s%s", parent, *parent ? "/" : "", name);
    t->scope = scope;
    return s;
}

/* Moves v, whose memory has just been released, to the arena's top. Values are moved first, because they may be where
 * the struct goes. */
static att_var *move_down(att_tape *t, att_var v, size_t mark)
{
    size_t made;
    att_var *moved = allocate(t, sizeof *moved, &made);
    if (!moved)
        return NULL;
    v.made = made;
    if (v.data_made > mark) {
        const size_t bytes = bytes_of(&v.value);
        void *data = allocate(t, bytes, &v.data_made);
        if (!data)
            return NULL;
        memmove(data, v.value.data, bytes);
        v.value.data = data;
    }
    *moved = v;
    return moved;
}

att_var *att_tape_release(att_tape *t, size_t mark, att_var *keep)
{
    if (t->record) {
        free_values(t, mark, keep);
        return keep;
    }
    const bool inside = keep && keep->made > mark;
    const att_var v = inside ? *keep : (att_var){0};
    att_arena_release(&t->arena, mark);
    return inside ? move_down(t, v, mark) : keep;
}

void att_tape_tell(const att_tape *t, const char *op, const att_tensor *output, const att_plan *plan,
                   const att_attention_args *args)
{
    const att_tape_event event = {
        .size = sizeof event, .op = op, .scope = att_tape_scope_path(t), .output = output, .plan = plan, .args = args};
    if (t->hook)
        t->hook(t->hook_user, &event);
}

att_var *att_scope_end(att_tape *t, att_scope s, att_var *keep)
{
    if (att_require("scope_end", ATT_NAMED({"t", t})))
        return NULL;
    if (!t->status && depth_of(t) <= s.depth)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "scope_end: this scope has ended already");
    while (depth_of(t) > s.depth + 1)
        t->scope = t->scope->parent;
    if (keep && !t->status)
        att_tape_tell(t, "scope", &keep->value, NULL, NULL);
    if (depth_of(t) > s.depth)
        t->scope = t->scope->parent;
    return att_tape_release(t, s.mark, t->status ? NULL : keep);
}

att_var *att_scope_reset(att_tape *t, att_scope s, att_var *keep)
{
    if (att_require("scope_keep", ATT_NAMED({"t", t})))
        return NULL;
    if (!t->status && depth_of(t) != s.depth + 1)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "scope_keep: this scope is not the innermost one that is open");
    return t->status ? NULL : att_tape_release(t, t->scope->made, keep);
}

/* ---- checks */

bool att_tape_check_offsets(att_tape *t, const char *op, const att_tensor *x, const int64_t *offsets, int64_t n)
{
    if (n < 0 || !offsets)
        att_tape_fail(t, ATT_ERR_ARGUMENT,
                      offsets ? "%s: n is %lld, less than 0" : "%s: offsets is NULL, but n is %lld", op, (long long)n);
    else if (offsets[0] != 0 || offsets[n] != x->dim[0])
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: offsets go from %lld to %lld but x is %s", op, (long long)offsets[0],
                      (long long)offsets[n], att_shape_of(x).text);
    for (int64_t i = 0; !t->status && i < n; i++)
        if (offsets[i] > offsets[i + 1])
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: offsets[%lld] = %lld is above offsets[%lld] = %lld", op,
                          (long long)i, (long long)offsets[i], (long long)i + 1, (long long)offsets[i + 1]);
    return !t->status;
}
