/* Attention in one call, and a description of what a plan does and costs before it runs. */
#include "attn/backward/backward.h"
#include "attn/forward/forward.h"

#include <stdio.h>

att_status att_attention(att_ctx *ctx, const att_attention_spec *spec, const att_attention_args *args)
{
    att_plan *plan;
    att_status e = att_plan_new(ctx, spec, &plan);
    e = e ? e : att_forward(plan, args);
    att_plan_free(plan);
    return e;
}

/* The sentences of the calling thread's last description. */
static _Thread_local char why[128], back_why[128];

/* Counts the pairs that masks leave, of all heads and sequences, and the bytes of their tensors. */
static void count(const att_call *call, double *done, double *all, double *bytes)
{
    const att_attention_spec *s = &call->plan->spec;
    const double element = (double)att_dtype_size(s->dtype);
    const int panel = call->plan->kernels->q_tile;
    att_mask_tile mask_tile;
    for (int64_t b = 0; b < call->sequences; b++)
        for (int64_t h = 0; h < call->plan->spec.heads; h++) {
            att_head_view at;
            att_call_head(call, b, h, &at);
            for (int64_t q0 = 0; q0 < at.head.tq; q0 += panel) {
                const int queries = (int)(at.head.tq - q0 < panel ? at.head.tq - q0 : panel);
                int64_t k0, last;
                for (att_span(call->plan, &at, q0, queries, &k0, &last); k0 < last; k0 += ATT_KEY_BLOCK) {
                    const int keys = (int)(at.head.tk - k0 < ATT_KEY_BLOCK ? at.head.tk - k0 : ATT_KEY_BLOCK);
                    att_mask_tile_make(call->plan, &at, q0, queries, k0, keys, &mask_tile);
                    for (int r = 0; r < mask_tile.n_ranges; r++)
                        *done += (double)queries * (double)(mask_tile.range[r].last - mask_tile.range[r].first);
                }
            }
            *all += (double)at.head.tq * (double)at.head.tk;
            *bytes +=
                (double)at.head.tq * ((double)(s->head_dim + s->value_dim) * element + (call->args.lse.data ? 4 : 0));
            if (h < s->kv_heads)
                *bytes += (double)at.head.tk * (double)(s->key_dim + s->value_dim) * element;
        }
}

/* Returns a note if modifiers are computed pair by pair because they have no version for tiles. */
static const char *pairs_note(const att_plan *plan, bool back)
{
    bool pairs = false;
    for (int i = 0; i < plan->modifiers.n; i++) {
        const att_modifier *m = &plan->modifiers.list[i].stage;
        pairs = pairs || (!(back ? m->tile_back : m->tile) && !(m->flags & ATT_STAGE_SINK));
    }
    return pairs ? " (some pair by pair)" : "";
}

static const char *scale_note(const att_plan *plan)
{
    return plan->scale.in_softmax                        ? ", scale in the softmax"
           : plan->scale.in_queries && !plan->bf16_pairs ? ", scale in the queries"
                                                         : "";
}

/* Describes how the score is computed in tiles, forward or back, and how rows are transformed. */
static void tiles_note(const att_plan *plan, bool back, const char *rows, char *text, size_t size)
{
    const att_score *s = &plan->score;
    snprintf(text, size, "%s in tiles%s%s; %d modifiers%s, %d masks; %s", s->name,
             !s->tile                                          ? " pair by pair, as it has only a formula"
             : back && !s->tile_back && !plan->builtin->is_dot ? ", back pair by pair"
             : att_score_changes_products(plan)                ? ", on the matrix product"
                                                               : "",
             scale_note(plan), plan->modifiers.n, pairs_note(plan, back), plan->masks.n, rows);
}

static const char *rows_note(const att_plan *plan, bool copies)
{
    return plan->spec.dtype != ATT_F32 ? "converted to f32 block by block"
           : copies                    ? "copied block by block"
                                       : "f32 in place";
}

static void describe_tiles(const att_plan *plan, bool cached, bool copies, int64_t tk, att_pass_info *d)
{
    d->kernel = "flash-forward";
    d->why = why;
    d->q_block = plan->kernels->q_tile;
    d->k_block = ATT_KEY_BLOCK;
    d->workspace = att_tiles_scratch(plan, copies, tk) * sizeof(float) * (size_t)plan->ctx->n_threads;
    tiles_note(plan, false,
               cached && plan->bf16_pairs ? "cache unpacked to pairs of bf16"
               : cached                   ? "cache unpacked block by block"
               : plan->bf16_pairs         ? plan->kernels->bf16.pack_values ? "pairs of bf16 in tiles" : "bf16 in pairs"
                                          : rows_note(plan, copies),
               why, sizeof why);
}

static void describe_decode(const att_call *call, att_pass_info *d)
{
    const att_plan *plan = call->plan;
    d->kernel = "decode";
    d->why = why;
    d->k_block = ATT_KEY_BLOCK;
    d->q_block = ATT_DECODE_QUERIES;
    d->workspace = att_decode_workspace(call);
    snprintf(why, sizeof why, "%s%s, %d queries share keys%s, and up to %d are few; %d modifiers%s, %d masks",
             plan->score.name, plan->score.tile ? "" : " pair by pair",
             (int)(call->max_tq * (plan->spec.heads / plan->spec.kv_heads)), call->args.cache ? " of a cache" : "",
             ATT_DECODE_QUERIES, plan->modifiers.n, pairs_note(plan, false), plan->masks.n);
}

/* Describes the backward, which is the same for few queries and for bf16. */
static void describe_backward(const att_plan *plan, bool copies, att_pass_info *d)
{
    d->kernel = "flash-backward";
    d->q_block = plan->kernels->q_tile;
    d->k_block = ATT_KEY_BLOCK;
    d->why = back_why;
    tiles_note(plan, true,
               plan->bf16_pairs ? plan->kernels->bf16.pack_values
                                      ? "S and dP from pairs of bf16 in tiles, else converted to f32"
                                      : "S and dP from pairs of bf16, else converted to f32"
                                : rows_note(plan, copies),
               back_why, sizeof back_why);
}

static void describe_call(const att_call *call, att_plan_info *d)
{
    const att_plan *plan = call->plan;
    const double key = (double)plan->q_dim, value = (double)plan->spec.value_dim;
    const bool copies = att_call_copies(call);
    double done = 0, all = 0;
    att_call decoded, tiled;
    if (att_decode_suits(call))
        describe_decode(call, &d->forward);
    else
        describe_tiles(plan, call->args.cache, copies, call->max_tk, &d->forward);
    if (att_forward_split(call, &decoded, &tiled)) /* the plan keeps the memory of the first part for later calls */
        d->forward.workspace += att_decode_workspace(&decoded);
    count(call, &done, &all, &d->bytes);
    d->forward.flops = 2 * (key + value) * done;
    d->skipped = all > 0 ? 1 - done / all : 0;
    d->forward.workspace += att_transform_workspace(call);
    if (call->args.cache)
        return;
    describe_backward(plan, copies, &d->backward);
    d->backward.flops = (6 * key + 4 * value) * done;
    d->backward.workspace =
        att_backward_workspace(call) + att_transform_workspace(call) + att_transform_back_workspace(call);
}

att_status att_plan_describe(const att_plan *plan, const att_attention_args *args, att_plan_info *info)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_attention_spec *s = &plan->spec;
    att_plan_info d = {.isa = att_isa(plan->ctx),
                       .heads = s->heads,
                       .kv_heads = s->kv_heads,
                       .head_dim = s->head_dim,
                       .key_dim = s->key_dim,
                       .value_dim = s->value_dim,
                       .n_params = plan->params.n_given};
    if (args) {
        att_call call;
        const att_status e = att_call_check(plan, args, false, &call);
        if (e)
            return e;
        describe_call(&call, &d);
    } else {
        describe_tiles(plan, false, plan->spec.dtype != ATT_F32, 0, &d.forward);
        describe_backward(plan, false, &d.backward);
    }
    return att_info_write(info, &d, sizeof d, "att_plan_info");
}

/* ---- parameters */

/* Finds the shape of a parameter per head, as far as the plan fixes it. */
static void shape_of_head(const att_plan *plan, const att_param_shape *shape, att_plan_parameter_info *d)
{
    const int64_t size[] = {[ATT_EXTENT_ANY] = -1,
                            [ATT_EXTENT_HEAD_DIM] = plan->spec.head_dim,
                            [ATT_EXTENT_KEY_DIM] = plan->spec.key_dim,
                            [ATT_EXTENT_SCORE_DIM] = plan->q_dim};
    const att_extent extents[] = {shape->rows, shape->columns};
    d->dim[0] = plan->spec.heads;
    for (d->rank = 1; d->rank < 3 && extents[d->rank - 1] != ATT_EXTENT_NONE; d->rank++)
        d->dim[d->rank] = size[extents[d->rank - 1]];
}

att_status att_plan_parameter(const att_plan *plan, int i, att_plan_parameter_info *info)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    for (int n = 0; n < plan->params.n; n++) {
        const att_plan_param *p = &plan->params.list[n];
        if (i < 0 || p->given != i)
            continue;
        att_plan_parameter_info d = {.stage = p->stage_name,
                                     .name = p->shape->name,
                                     .dtype = p->shape->dtype,
                                     .optional = p->shape->optional,
                                     .of_mask = p->of_mask};
        if (p->shape->kind == ATT_PARAM_PER_HEAD)
            shape_of_head(plan, p->shape, &d);
        return att_info_write(info, &d, sizeof d, "att_plan_parameter_info");
    }
    return att_fail(plan->ctx, ATT_ERR_ARGUMENT, "att_plan_parameter: i is %d, expected 0..%d", i,
                    plan->params.n_given - 1);
}
