/* From a spec to a plan. */
#include "attn/call/scratch.h"

#include <math.h>
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
    const att_row_transforms *o = p->score->transforms;
    if (s->score_dim && !(o && o->optional))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.score_dim is %lld, but \"%s\" projects nothing to it",
                        (long long)s->score_dim, p->score->name);
    const att_status e = s->score_dim ? check_count(ctx, "score_dim", s->score_dim, MAX_DIM) : ATT_OK;
    if (e)
        return e;
    p->transforms = o && (!o->optional || s->score_dim) ? o : NULL;
    const bool q = p->transforms && o->q.kind == ATT_TRANSFORM_PROJECT,
               k = p->transforms && o->k.kind == ATT_TRANSFORM_PROJECT;
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
    p->scale_in_queries = (p->score->flags & ATT_BILINEAR) && p->score->tile;
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
static const char *stage_that_needs_align(const att_plan *p)
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
    if (align == ATT_ALIGN_UNSET && stage_that_needs_align(p))
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "spec.align is not given, but \"%s\" depends on where the queries stand among the keys: "
                        "ATT_ALIGN_TOP_LEFT, ATT_ALIGN_BOTTOM_RIGHT or ATT_ALIGN_STARTS",
                        stage_that_needs_align(p));
    return ATT_OK;
}

/* Can the plan multiply bf16 in pairs? */
static bool words_usable(const att_plan *plan)
{
    bool usable = plan->spec.dtype == ATT_BF16 && plan->kernels->bf16.scores && (plan->score->flags & ATT_DOT) &&
                  plan->score->tile && !plan->transforms;
    for (int i = 0; i < plan->n_modifiers; i++) /* pair by pair, rows are read as floats */
        usable = usable && (plan->modifier[i]->tile || !plan->modifier[i]->formula);
    return usable && (!plan->kernels->bf16.pack_values || att_os_allow_tiles());
}

att_vectors att_vectors_of(const att_kernels *k)
{
    return (att_vectors){k->vector.exp, k->vector.tanh,  k->vector.erf, k->vector.add,
                         k->vector.mul, k->vector.scale, k->vector.sub, k->layer.tanh_back};
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
    p->words = !e && words_usable(p);
    p->scale_in_softmax = p->words && p->n_modifiers == 0 && p->spec.scale > 0;
    p->no_params = !e && p->n_modifiers == 0 && p->score->tile && !p->score->param[0].name &&
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
