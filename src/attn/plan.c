/* From a spec to a plan. */
#include "attn/prologue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIM = 1 << 16, MAX_HEADS = 1 << 20 };

static att_status check_count(att_ctx *ctx, const char *name, int64_t value, int64_t most)
{
    if (value >= 1 && value <= most)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.%s is %lld, expected 1..%lld", name, (long long)value,
                    (long long)most);
}

static att_status check_sizes(att_ctx *ctx, att_attention_spec *s)
{
    s->kv_heads = s->kv_heads ? s->kv_heads : s->heads;
    s->key_dim = s->key_dim ? s->key_dim : s->head_dim;
    s->value_dim = s->value_dim ? s->value_dim : s->head_dim;
    att_status e = check_count(ctx, "heads", s->heads, MAX_HEADS);
    e = e ? e : check_count(ctx, "kv_heads", s->kv_heads, MAX_HEADS);
    e = e ? e : check_count(ctx, "head_dim", s->head_dim, MAX_DIM);
    e = e ? e : check_count(ctx, "key_dim", s->key_dim, MAX_DIM);
    e = e ? e : check_count(ctx, "value_dim", s->value_dim, MAX_DIM);
    if (e)
        return e;
    if (s->heads % s->kv_heads)
        return att_fail(ctx, ATT_ERR_SHAPE, "spec.kv_heads = %lld does not divide spec.heads = %lld",
                        (long long)s->kv_heads, (long long)s->heads);
    if (s->dtype != ATT_F32 && s->dtype != ATT_F16 && s->dtype != ATT_BF16)
        return att_fail(ctx, ATT_ERR_DTYPE, "spec.dtype is %s, expected f32, f16 or bf16", att_dtype_name(s->dtype));
    if (!(s->dropout >= 0 && s->dropout < 1))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.dropout is %g, expected at least 0 and less than 1",
                        (double)s->dropout);
    if (!isfinite(s->scale))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.scale is %g, expected a finite number", (double)s->scale);
    return ATT_OK;
}

/* ---- stages */

/* What the score does to rows, and how long they are then. */
static att_status check_prologue(att_ctx *ctx, att_plan *p)
{
    const att_attention_spec *s = &p->spec;
    const att_prologue *o = p->score->prologue;
    if (s->score_dim && !(o && o->optional))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.score_dim is %lld, but \"%s\" projects nothing to it",
                        (long long)s->score_dim, p->score->name);
    const att_status e = s->score_dim ? check_count(ctx, "score_dim", s->score_dim, MAX_DIM) : ATT_OK;
    if (e)
        return e;
    p->prologue = o && (!o->optional || s->score_dim) ? o : NULL;
    const bool q = p->prologue && o->q.kind == ATT_ROW_PROJECTED, k = p->prologue && o->k.kind == ATT_ROW_PROJECTED;
    p->q_dim = !q ? s->head_dim : s->score_dim ? s->score_dim : s->key_dim;
    p->k_dim = k ? s->score_dim : s->key_dim;
    if ((o || (p->score->flags & ATT_DOT)) && p->q_dim != p->k_dim)
        return att_fail(ctx, ATT_ERR_SHAPE, "spec.key_dim = %lld but spec.head_dim = %lld: %s needs them equal",
                        (long long)s->key_dim, (long long)s->head_dim, p->score->name);
    return ATT_OK;
}

static void set_scale(void *arg, int task)
{
    att_attention_spec *s = arg;
    (void)task;
    s->scale = (float)(1 / sqrt((double)s->head_dim));
}

static att_status check_score(att_ctx *ctx, att_plan *p)
{
    att_attention_spec *s = &p->spec;
    const att_score *score = s->score ? s->score : &att_score_dot;
    p->score = att_score_on(score, ctx->isa);
    if (!p->score->formula)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.score has no formula");
    const att_status e = check_prologue(ctx, p);
    if (e)
        return e;
    if (s->scale == 0 && score == &att_score_dot)
        att_parallel_for(ctx, 1, set_scale, s); /* rounded to nearest, whatever the host has set */
    s->scale = s->scale == 0 ? 1 : s->scale;
    p->fold = (p->score->flags & ATT_BILINEAR) && p->score->tile;
    p->flags |= p->score->flags;
    return ATT_OK;
}

static att_status check_modifiers(att_ctx *ctx, att_plan *p)
{
    const att_attention_spec *s = &p->spec;
    p->sink = -1;
    for (int i = 0; i < ATT_MAX_STAGES && s->modifier[i]; i++) {
        const att_modifier *m = att_modifier_on(s->modifier[i], ctx->isa);
        if (!m->formula && !(m->flags & ATT_SINK))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.modifier[%d] has no formula", i);
        if ((m->flags & ATT_HAS_VALUE) && !(isfinite(s->modifier_value[i]) && s->modifier_value[i] != 0))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.modifier_value[%d] is %g, but %s needs one", i,
                            (double)s->modifier_value[i], m->name);
        if ((m->flags & ATT_SINK) && p->sink >= 0)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.modifier[%d] and [%d] are both a sink", p->sink, i);
        if (m->flags & ATT_SINK)
            p->sink = i;
        p->modifier[p->n_modifiers++] = m;
        p->flags |= m->flags;
    }
    return ATT_OK;
}

static att_status check_masks(att_ctx *ctx, att_plan *p)
{
    for (int i = 0; i < ATT_MAX_STAGES && p->spec.mask[i]; i++) {
        if (!p->spec.mask[i]->keep)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.mask[%d] has no keep", i);
        p->mask[p->n_masks++] = p->spec.mask[i];
        p->flags |= p->spec.mask[i]->flags;
    }
    return ATT_OK;
}

bool att_plan_uses(const att_plan *p, const att_mask *mask)
{
    bool used = false;
    for (int i = 0; i < p->n_masks; i++)
        used = used || p->mask[i] == mask;
    return used;
}

static att_status check_window(att_ctx *ctx, const att_plan *p)
{
    const att_attention_spec *s = &p->spec;
    const struct {
        const char *name;
        int64_t keys;
    } window[] = {{"left", s->window_left}, {"right", s->window_right}};
    const bool used = att_plan_uses(p, &att_mask_window);
    for (int i = 0; i < 2; i++)
        if (window[i].keys < -1 || window[i].keys > INT64_C(1) << 48)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.window_%s is %lld, expected -1 (unbounded) or a count of keys",
                            window[i].name, (long long)window[i].keys);
        else if (!used && window[i].keys)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.window_%s is %lld, but the spec has no att_mask_window",
                            window[i].name, (long long)window[i].keys);
    return ATT_OK;
}

/* The first stage that needs to know where the queries stand. */
static const char *who_needs_align(const att_plan *p)
{
    if (p->score->flags & ATT_NEEDS_ALIGN)
        return p->score->name;
    for (int i = 0; i < p->n_modifiers; i++)
        if (p->modifier[i]->flags & ATT_NEEDS_ALIGN)
            return p->modifier[i]->name;
    for (int i = 0; i < p->n_masks; i++)
        if (p->mask[i]->flags & ATT_NEEDS_ALIGN)
            return p->mask[i]->name;
    return NULL;
}

static att_status check_align(att_ctx *ctx, const att_plan *p)
{
    const att_align align = p->spec.align;
    if ((unsigned)align > ATT_ALIGN_STARTS)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.align is %d, expected an att_align", (int)align);
    if (align == ATT_ALIGN_UNSET && who_needs_align(p))
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "spec.align is not given, but \"%s\" depends on where the queries stand among the keys: "
                        "ATT_ALIGN_TOP_LEFT, ATT_ALIGN_BOTTOM_RIGHT or ATT_ALIGN_STARTS",
                        who_needs_align(p));
    return ATT_OK;
}

att_vectors att_vectors_of(const att_kernels *k)
{
    return (att_vectors){k->exp, k->tanh, k->erf, k->add, k->mul, k->scale, k->sub, k->tanh_back};
}

att_status att_plan_new(att_ctx *ctx, const att_attention_spec *spec, att_plan **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"spec", spec}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_plan *p = att_calloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    p->ctx = ctx;
    p->kernels = att_kernels_of(ctx->isa);
    p->vectors = att_vectors_of(p->kernels);
    att_status e = att_take_options(&p->spec, sizeof p->spec, spec, "att_attention_spec");
    e = e ? e : check_sizes(ctx, &p->spec);
    e = e ? e : check_score(ctx, p);
    e = e ? e : check_modifiers(ctx, p);
    e = e ? e : check_masks(ctx, p);
    e = e ? e : check_window(ctx, p);
    e = e ? e : check_align(ctx, p);
    p->words = !e && att_words_usable(p);
    p->late = p->words && p->n_modifiers == 0 && p->spec.scale > 0;
    p->plain = !e && p->n_modifiers == 0 && p->score->tile && !p->score->param[0].name &&
               (p->score->tile_back || (p->score->flags & ATT_DOT));
    if (e) {
        att_free(ctx, p);
        return e;
    }
    *out = p;
    return ATT_OK;
}

void att_plan_free(att_plan *plan)
{
    if (!plan)
        return;
    att_scratch_free(plan);
    att_free(plan->ctx, plan);
}

att_status att_attention(att_ctx *ctx, const att_attention_spec *spec, const att_attention_args *args)
{
    att_plan *plan;
    att_status e = att_plan_new(ctx, spec, &plan);
    e = e ? e : att_forward(plan, args);
    att_plan_free(plan);
    return e;
}

/* The pairs that masks leave, of all heads and sequences, and the bytes of their tensors. */
static void count(const att_call *call, double *done, double *all, double *bytes)
{
    const att_attention_spec *s = &call->plan->spec;
    const double element = (double)att_dtype_size(s->dtype);
    const int panel = call->plan->kernels->panel;
    att_cut cut;
    for (int64_t b = 0; b < call->sequences; b++)
        for (int64_t h = 0; h < call->plan->spec.heads; h++) {
            att_site at;
            att_call_site(call, b, h, &at);
            for (int64_t q0 = 0; q0 < at.place.tq; q0 += panel) {
                const int queries = (int)(at.place.tq - q0 < panel ? at.place.tq - q0 : panel);
                int64_t k0, last;
                for (att_span(call->plan, &at, q0, queries, &k0, &last); k0 < last; k0 += ATT_KEY_BLOCK) {
                    const int keys = (int)(at.place.tk - k0 < ATT_KEY_BLOCK ? at.place.tk - k0 : ATT_KEY_BLOCK);
                    att_cut_block(call->plan, &at, q0, queries, k0, keys, &cut);
                    for (int r = 0; r < cut.n_runs; r++)
                        *done += (double)queries * (double)(cut.run[r].last - cut.run[r].first);
                }
            }
            *all += (double)at.place.tq * (double)at.place.tk;
            *bytes +=
                (double)at.place.tq * ((double)(s->head_dim + s->value_dim) * element + (call->args.lse.data ? 4 : 0));
            if (h < s->kv_heads)
                *bytes += (double)at.place.tk * (double)(s->key_dim + s->value_dim) * element;
        }
}

/* Whether modifiers go pair by pair, for want of a version for tiles. */
static const char *say_pairs(const att_plan *plan, bool back)
{
    bool pairs = false;
    for (int i = 0; i < plan->n_modifiers; i++) {
        const att_modifier *m = plan->modifier[i];
        pairs = pairs || (!(back ? m->tile_back : m->tile) && !(m->flags & ATT_SINK));
    }
    return pairs ? " (some pair by pair)" : "";
}

static const char *say_scale(const att_plan *plan)
{
    return plan->late ? ", scale in the softmax" : plan->fold && !plan->words ? ", scale in the queries" : "";
}

/* How the score is computed in tiles, forward or back, and what becomes of the rows. */
static void say_tiles(const att_plan *plan, bool back, const char *rows, char *why, size_t size)
{
    const att_score *s = plan->score;
    snprintf(why, size, "%s in tiles%s%s; %d modifiers%s, %d masks; %s", s->name,
             !s->tile                                         ? " pair by pair, as it has only a formula"
             : back && !s->tile_back && !(s->flags & ATT_DOT) ? ", back pair by pair"
                                                              : "",
             say_scale(plan), plan->n_modifiers, say_pairs(plan, back), plan->n_masks, rows);
}

static const char *say_floats(const att_plan *plan, bool copies)
{
    return plan->spec.dtype != ATT_F32 ? "converted to f32 block by block"
           : copies                    ? "copied block by block"
                                       : "f32 in place";
}

static void describe_tiles(const att_plan *plan, bool cached, bool copies, int64_t tk, att_plan_info *d)
{
    d->kernel = "flash-forward";
    d->q_block = plan->kernels->panel;
    d->workspace = att_plan_scratch(plan, copies, tk) * sizeof(float) * (size_t)att_threads(plan->ctx);
    say_tiles(plan, false,
              cached && plan->words ? "cache unpacked to pairs of bf16"
              : cached              ? "cache unpacked block by block"
              : plan->words         ? plan->kernels->turn_values ? "pairs of bf16 in tiles" : "bf16 in pairs"
                                    : say_floats(plan, copies),
              d->why, sizeof d->why);
}

static void describe_decode(const att_call *call, att_plan_info *d)
{
    const att_plan *plan = call->plan;
    d->kernel = "decode";
    d->q_block = ATT_FEW;
    d->workspace = att_decode_workspace(call);
    snprintf(d->why, sizeof d->why, "%s%s, %d queries share keys%s, and up to %d are few; %d modifiers%s, %d masks",
             plan->score->name, plan->score->tile ? "" : " pair by pair",
             (int)(call->max_tq * (plan->spec.heads / plan->spec.kv_heads)), call->args.cache ? " of a cache" : "",
             ATT_FEW, plan->n_modifiers, say_pairs(plan, false), plan->n_masks);
}

/* Few queries and bf16 are no other case here. */
static void describe_backward(const att_plan *plan, bool copies, att_plan_info *d)
{
    d->backward_kernel = "flash-backward";
    d->backward_q_block = plan->kernels->panel;
    say_tiles(plan, true,
              plan->words ? plan->kernels->turn_values ? "S and dP from pairs of bf16 in tiles, else converted to f32"
                                                       : "S and dP from pairs of bf16, else converted to f32"
                          : say_floats(plan, copies),
              d->backward_why, sizeof d->backward_why);
}

static void describe_call(const att_call *call, att_plan_info *d)
{
    const att_plan *plan = call->plan;
    const double key = (double)plan->q_dim, value = (double)plan->spec.value_dim;
    const bool copies = att_call_copies(call);
    double done = 0, all = 0;
    if (att_decode_suits(call))
        describe_decode(call, d);
    else
        describe_tiles(plan, call->args.cache, copies, call->max_tk, d);
    count(call, &done, &all, &d->bytes);
    d->flops = 2 * (key + value) * done;
    d->skipped = all > 0 ? 1 - done / all : 0;
    d->workspace += att_prologue_bytes(call);
    if (call->args.cache)
        return;
    describe_backward(plan, copies, d);
    d->backward_flops = (6 * key + 4 * value) * done;
    d->backward_workspace = att_backward_workspace(call) + att_prologue_bytes(call) + att_prologue_bytes_back(call);
}

att_status att_plan_describe(const att_plan *plan, const att_attention_args *args, att_plan_info *info)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_plan_info d = {.isa = att_isa(plan->ctx), .k_block = ATT_KEY_BLOCK};
    if (args) {
        att_call call;
        const att_status e = att_call_check(plan, args, false, &call);
        if (e)
            return e;
        describe_call(&call, &d);
    } else {
        describe_tiles(plan, false, plan->spec.dtype != ATT_F32, 0, &d);
        describe_backward(plan, false, &d);
    }
    return att_give_info(info, &d, sizeof d, "att_plan_info");
}
