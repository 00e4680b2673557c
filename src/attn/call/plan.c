/* Makes a plan from a spec. */
#include "attn/call/scratch.h"
#include "attn/call/transform.h"

#include <math.h>
#include <string.h>

enum { MAX_DIM = 1 << 16, MAX_HEADS = 1 << 20 };

static att_status check_count(att_ctx *ctx, const char *name, int64_t value, int64_t max)
{
    if (value >= 1 && value <= max)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.%s is %lld, expected 1..%lld", name, (long long)value, (long long)max);
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

/* Finds how the score transforms rows, and the dimension of transformed rows. */
static att_status check_transforms(att_ctx *ctx, att_plan *p)
{
    const att_attention_spec *s = &p->spec;
    const att_row_transforms *o = p->builtin->transforms;
    if (s->score_dim && !(o && o->optional))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.score_dim is %lld, but \"%s\" projects nothing to it",
                        (long long)s->score_dim, p->score.name);
    const att_status e = s->score_dim ? check_count(ctx, "score_dim", s->score_dim, MAX_DIM) : ATT_OK;
    if (e)
        return e;
    p->transforms = o && (!o->optional || s->score_dim) ? o : NULL;
    const bool q = p->transforms && o->q.kind == ATT_TRANSFORM_PROJECT,
               k = p->transforms && o->k.kind == ATT_TRANSFORM_PROJECT;
    p->q_dim = !q ? s->head_dim : s->score_dim ? s->score_dim : s->key_dim;
    p->k_dim = k ? s->score_dim : s->key_dim;
    if ((o || p->builtin->is_dot) && p->q_dim != p->k_dim)
        return att_fail(ctx, ATT_ERR_SHAPE, "spec.key_dim = %lld but spec.head_dim = %lld: %s needs them equal",
                        (long long)s->key_dim, (long long)s->head_dim, p->score.name);
    return ATT_OK;
}

static void set_scale(void *arg, int task)
{
    att_attention_spec *s = arg;
    (void)task;
    s->scale = (float)(1 / sqrt((double)s->head_dim));
}

/* Checks that the functions of a score fit each other. */
static att_status check_functions(att_ctx *ctx, const att_score *s)
{
    const bool product = s->flags & ATT_STAGE_PRODUCT;
    if (!s->formula)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.score has no formula");
    if (product && (!s->tile || (s->derivative && !s->tile_back)))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "\"%s\" has ATT_STAGE_PRODUCT%s", s->name,
                        s->tile ? " and a derivative, but no tile_back" : ", but no tile");
    if (s->term && (!product || (s->derivative && !s->term_back)))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "\"%s\" has a term of each row%s", s->name,
                        product ? " and a derivative, but no term_back" : ", but not ATT_STAGE_PRODUCT");
    return ATT_OK;
}

static att_status check_score(att_ctx *ctx, att_plan *p)
{
    att_attention_spec *s = &p->spec;
    const att_score *score = s->score ? s->score : att_score_dot;
    static const att_builtin_score none;
    const att_builtin_score *builtin = att_builtin_score_of(score, ctx->isa);
    att_status e = att_options_read(&p->score, sizeof p->score, builtin ? &builtin->score : score, "att_score");
    const bool product = p->score.flags & ATT_STAGE_PRODUCT;
    p->builtin = builtin ? builtin : product ? att_builtin_score_of(att_score_dot, ctx->isa) : &none;
    e = e ? e : check_functions(ctx, &p->score);
    e = e ? e : check_transforms(ctx, p);
    if (e)
        return e;
    if (s->scale == 0 && score == att_score_dot)
        att_parallel_for(ctx, 1, set_scale, s); /* rounded to nearest, whatever the host has set */
    s->scale = s->scale == 0 ? 1 : s->scale;
    p->scale.in_queries = (p->score.flags & ATT_STAGE_BILINEAR) && p->score.tile && !product;
    p->flags |= p->score.flags;
    return ATT_OK;
}

/* Stages that are added to a plan. */
typedef struct stage_list {
    const char *name; /* "spec.stage", for messages */
    const att_stage *stage;
    int n, before; /* number of stages; number of stages that the plan has before */
} stage_list;

/* Returns whether a score, a modifier or a mask may declare parameter i of shape [i + 1] as it does. */
static bool may_declare(const att_stage *stage, int i, const att_param_shape *shape)
{
    const att_param_shape *s = &shape[i], *before = i ? s - 1 : NULL;
    const bool mask = stage && stage->mask;
    if (!s->name || (unsigned)s->kind > ATT_PARAM_PER_KEY || (unsigned)s->rows > ATT_EXTENT_SCORE_DIM ||
        (unsigned)s->columns > ATT_EXTENT_SCORE_DIM)
        return false;
    if (s->dtype != ATT_F32 && !(mask && (s->dtype == ATT_I32 || s->dtype == ATT_BOOL)))
        return false;
    if (s->kind != ATT_PARAM_PER_HEAD && !mask && !(stage && s->kind == ATT_PARAM_PER_PAIR))
        return false;
    return !s->as_queries ||
           (s->kind == ATT_PARAM_PER_KEY && before && before->kind == ATT_PARAM_PER_QUERY && before->dtype == s->dtype);
}

/* Adds the parameters that a stage declares to the plan's. n is the number of the stage; for the score stage is NULL
 * and n -1. */
static att_status add_params(att_plan *p, const att_stage *stage, int n, const char *name, int count,
                             const att_param_shape *shape)
{
    if (count < 0 || count > ATT_MAX_PARAMS - p->params.n || (count && !shape))
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "\"%s\" has %d parameters%s, but a plan has at most %d in all", name,
                        count, shape ? "" : " and no list of them", ATT_MAX_PARAMS);
    for (int i = 0; i < count; i++) {
        const bool used = stage || p->transforms || !att_transform_uses_param(p, i);
        if (!may_declare(stage, i, shape))
            return att_fail(p->ctx, ATT_ERR_ARGUMENT, "parameter %d of \"%s\" has a declaration that a %s cannot have",
                            i, name,
                            !stage        ? "score"
                            : stage->mask ? "mask"
                                          : "modifier");
        p->params.list[p->params.n++] =
            (att_plan_param){&shape[i], name, n, used ? p->params.n_given++ : -1, stage && stage->mask};
    }
    return ATT_OK;
}

/* Checks what modifiers and masks have in common; check: the function of a stage without parameters. */
static att_status check_stage(att_plan *p, const stage_list *list, int i, unsigned flags,
                              att_status (*check)(att_ctx *, const double *, const att_tensor *))
{
    att_ctx *ctx = p->ctx;
    const att_stage *s = &list->stage[i];
    const char *name =
        s->modifier ? p->modifiers.list[p->modifiers.n].stage.name : p->masks.list[p->masks.n].stage.name;
    for (int n = 0; n < 2; n++)
        if (!isfinite(s->value[n]) || (s->value[n] != 0 && !(flags & (ATT_STAGE_HAS_VALUE | ATT_STAGE_NEEDS_VALUE))))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%d].value[%d] is %g, but %s %s", list->name, i, n, s->value[n],
                            name, isfinite(s->value[n]) ? "has none" : "needs a finite number");
    if ((flags & ATT_STAGE_NEEDS_VALUE) && s->value[0] == 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%d].value[0] is 0, but %s needs one", list->name, i, name);
    p->flags |= flags;
    return check ? check(ctx, s->value, NULL) : ATT_OK;
}

static att_status add_modifier(att_plan *p, const stage_list *list, int i)
{
    att_ctx *ctx = p->ctx;
    const att_stage *s = &list->stage[i];
    const att_modifier *builtin = att_builtin_modifier_of(s->modifier, ctx->isa);
    att_plan_modifier *x = &p->modifiers.list[p->modifiers.n];
    att_modifier *m = &x->stage;
    att_status e = att_options_read(m, sizeof *m, builtin ? builtin : s->modifier, "att_modifier");
    if (e)
        return e;
    if (!m->formula && !(m->flags & ATT_STAGE_SINK))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%d].modifier has no formula", list->name, i);
    for (int n = 0; n < m->n_params && m->param && m->derivative && !m->tile_back; n++)
        if (m->param[n].kind == ATT_PARAM_PER_PAIR)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "\"%s\" has a parameter per pair and a derivative, but no tile_back",
                            m->name);
    if ((m->flags & ATT_STAGE_SINK) && (m->n_params != 1 || p->modifiers.sink >= 0))
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        p->modifiers.sink >= 0 ? "%s has two sinks, and [%d] is the second"
                                               : "%s[%d].modifier is a sink, but does not have exactly one parameter",
                        list->name, i);
    *x = (att_plan_modifier){*m, s->modifier, {s->value[0], s->value[1]}, p->params.n, list->before + i};
    e = check_stage(p, list, i, m->flags, m->n_params ? NULL : m->check);
    e = e ? e : add_params(p, s, x->index, m->name, m->n_params, m->param);
    if (m->flags & ATT_STAGE_SINK)
        p->modifiers.sink = p->modifiers.n;
    p->modifiers.n++;
    return e;
}

static att_status add_mask(att_plan *p, const stage_list *list, int i)
{
    const att_stage *s = &list->stage[i];
    att_plan_mask *x = &p->masks.list[p->masks.n];
    att_mask *m = &x->stage;
    att_status e = att_options_read(m, sizeof *m, s->mask, "att_mask");
    if (e)
        return e;
    if (!m->keep)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "%s[%d].mask has no keep", list->name, i);
    *x = (att_plan_mask){*m, {s->value[0], s->value[1]}, p->params.n, list->before + i};
    e = check_stage(p, list, i, m->flags, m->n_params ? NULL : m->check);
    p->masks.n++;
    return e ? e : add_params(p, s, x->index, m->name, m->n_params, m->param);
}

static att_status add_stages(att_plan *p, const stage_list *list)
{
    att_status e = ATT_OK;
    for (int i = 0; !e && i < list->n; i++) {
        const att_stage *s = &list->stage[i];
        if (!s->modifier == !s->mask)
            e = att_fail(p->ctx, ATT_ERR_ARGUMENT, "%s[%d] has %s a modifier %s a mask, expected one of the two",
                         list->name, i, s->mask ? "both" : "neither", s->mask ? "and" : "nor");
        else
            e = s->mask ? add_mask(p, list, i) : add_modifier(p, list, i);
    }
    return e;
}

static att_status check_stages(att_ctx *ctx, att_plan *p)
{
    const att_attention_spec *s = &p->spec;
    const stage_list list = {"spec.stage", s->stage, s->n_stages, 0};
    p->modifiers.sink = -1;
    if (s->n_stages < 0 || s->n_stages > ATT_MAX_STAGES)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.n_stages is %d, expected 0..%d", s->n_stages, ATT_MAX_STAGES);
    if (s->n_stages && !s->stage)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "spec.stage is NULL, but spec.n_stages is %d", s->n_stages);
    att_status e = add_params(p, NULL, -1, p->score.name, p->score.n_params, p->score.param);
    e = e ? e : add_stages(p, &list);
    p->spec.stage = NULL; /* the caller may change its array from now on */
    return e;
}

/* Returns the first stage that needs the positions of queries. */
static const char *stage_that_needs_align(const att_plan *p)
{
    if (p->score.flags & ATT_STAGE_NEEDS_ALIGN)
        return p->score.name;
    for (int i = 0; i < p->modifiers.n; i++)
        if (p->modifiers.list[i].stage.flags & ATT_STAGE_NEEDS_ALIGN)
            return p->modifiers.list[i].stage.name;
    for (int i = 0; i < p->masks.n; i++)
        if (p->masks.list[i].stage.flags & ATT_STAGE_NEEDS_ALIGN)
            return p->masks.list[i].stage.name;
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

/* Returns whether the plan can multiply bf16 in pairs. */
static bool can_use_bf16_pairs(const att_plan *plan)
{
    bool usable = plan->spec.dtype == ATT_BF16 && plan->kernels->bf16.scores && plan->builtin->is_dot &&
                  plan->score.tile && !plan->transforms && !att_score_changes_products(plan);
    for (int i = 0; i < plan->modifiers.n; i++) /* stages computed pair by pair read rows as floats */
        usable = usable && (plan->modifiers.list[i].stage.tile || !plan->modifiers.list[i].stage.formula);
    return usable && (!plan->kernels->bf16.pack_values || att_os_allow_tiles());
}

att_vectors att_vectors_of(const att_kernels *k)
{
    return (att_vectors){sizeof(att_vectors), k->vector.exp, k->vector.tanh,  k->vector.erf,
                         k->vector.add,       k->vector.mul, k->vector.scale, k->vector.sub,
                         k->layer.tanh_back,  k->vector.dot, k->vector.sum};
}

/* Derives the settings that depend on all stages together; after an error the plan is freed. */
static att_status finish(att_plan *p, att_status e, att_plan **out)
{
    e = e ? e : check_align(p->ctx, p);
    e = e ? e : att_scratch_new(p);
    p->bf16_pairs = !e && can_use_bf16_pairs(p);
    p->scale.in_softmax = p->bf16_pairs && p->modifiers.n == 0 && p->spec.scale > 0;
    if (e)
        att_free(p->ctx, p);
    else
        *out = p;
    return e;
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
    att_status e = att_options_read(&p->spec, sizeof p->spec, spec, "att_attention_spec");
    e = e ? e : check_sizes(ctx, &p->spec);
    e = e ? e : check_score(ctx, p);
    return finish(p, e ? e : check_stages(ctx, p), out);
}

att_status att_plan_with(const att_plan *plan, const att_stage *stages, int n, att_plan **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = plan->ctx;
    if (n < 0 || n > ATT_MAX_STAGES - plan->spec.n_stages)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n is %d, but the plan has %d stages, and may have %d", n,
                        plan->spec.n_stages, ATT_MAX_STAGES);
    if (n && !stages)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "stages is NULL, but n is %d", n);
    att_plan *p = att_alloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    *p = *plan;
    const stage_list list = {"stages", stages, n, plan->spec.n_stages};
    p->spec.n_stages += n;
    return finish(p, add_stages(p, &list), out);
}

void att_plan_free(att_plan *plan)
{
    if (!plan)
        return;
    att_scratch_free(plan);
    att_free(plan->ctx, plan);
}
