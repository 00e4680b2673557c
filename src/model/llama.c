/* Llama (Touvron et al. 2023), and Mistral, Qwen2 and Qwen3, which differ in settings:
 *
 * x = embedding(ids)
 * each layer: x = x + Attention(RMSNorm(x)), x = x + (SiLU(h W_gate) * (h W_inner)) W_outer with h = RMSNorm(x)
 * logits = RMSNorm(x) W^T */
#include "model/llama_config.h"
#include "attend_language.h"
#include "model/model.h"

#include <string.h>

struct att_language_model {
    att_model model;
    att_llama_config config;
    att_param *embedding, *head;        /* [vocabulary, hidden]; head: that of the output layer */
    const att_nn_encoder_layer **layer; /* [config.layers] */
    const att_nn_norm *norm;
    att_plan *plan; /* of a sliding window, or NULL */
    att_rotary_options rotary;
};

#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"embedding.weight", "embed_tokens.weight"},
    {"layer.*.attention_norm.weight", "layers.*.input_layernorm.weight"},
    LINEAR("layer.*.attention.query", "layers.*.self_attn.q_proj"),
    LINEAR("layer.*.attention.key", "layers.*.self_attn.k_proj"),
    LINEAR("layer.*.attention.value", "layers.*.self_attn.v_proj"),
    LINEAR("layer.*.attention.output", "layers.*.self_attn.o_proj"),
    {"layer.*.attention.query_norm.weight", "layers.*.self_attn.q_norm.weight"},
    {"layer.*.attention.key_norm.weight", "layers.*.self_attn.k_norm.weight"},
    {"layer.*.feed_forward_norm.weight", "layers.*.post_attention_layernorm.weight"},
    LINEAR("layer.*.feed_forward.gate", "layers.*.mlp.gate_proj"),
    LINEAR("layer.*.feed_forward.inner", "layers.*.mlp.up_proj"),
    LINEAR("layer.*.feed_forward.outer", "layers.*.mlp.down_proj"),
    {"norm.weight", "norm.weight"},
    {"head.weight", "lm_head.weight"},
    {0},
};
/* A tied output layer may be in the file, too. */
static const char *const unused[] = {"rotary_emb.", "lm_head.", NULL};

/* ---- open */

static void configure(att_model *m, att_settings *s) { att_llama_config_read(s, &((att_language_model *)m)->config); }

static att_status make_window(att_language_model *m)
{
    const att_llama_config *c = &m->config;
    if (c->window == 0 || c->window >= c->max_positions)
        return ATT_OK;
    const att_attention_spec spec = {
        .size = sizeof spec,
        .heads = (int)c->heads,
        .kv_heads = (int)c->kv_heads,
        .head_dim = (int)c->head_dim,
        .align = ATT_ALIGN_BOTTOM_RIGHT,
        ATT_STAGES({.mask = att_mask_causal}, {.mask = att_mask_window, .value = {(double)c->window - 1, 0}})};
    return att_plan_new(m->model.ctx, &spec, &m->plan);
}

static att_nn_attention_config attention_config(const att_language_model *m)
{
    const att_llama_config *c = &m->config;
    return (att_nn_attention_config){.size = sizeof(att_nn_attention_config),
                                     .width = c->hidden,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->head_dim,
                                     .causal = true,
                                     .plan = m->plan,
                                     .no_query_bias = !c->qkv_bias,
                                     .no_key_bias = !c->qkv_bias,
                                     .no_value_bias = !c->qkv_bias,
                                     .no_output_bias = !c->output_bias,
                                     .qk_norm = c->qk_norm ? ATT_QK_NORM_HEAD : ATT_QK_NORM_NONE,
                                     .qk_norm_kind = ATT_RMS_NORM,
                                     .qk_norm_eps = c->eps,
                                     .rotary = &m->rotary};
}

static att_status build(att_model *base)
{
    att_language_model *m = (att_language_model *)base;
    const att_llama_config *c = &m->config;
    const att_status s = make_window(m);
    if (s)
        return s;
    m->rotary = (att_rotary_options){.size = sizeof m->rotary, .frequencies = c->frequency};
    const att_nn_attention_config attention = attention_config(m);
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_SILU,
                                       .gated = true,
                                       .no_bias = !c->mlp_bias,
                                       .order = ATT_PRE_NORM,
                                       .norm = ATT_RMS_NORM,
                                       .eps = c->eps,
                                       .attention = &attention};
    m->embedding = att_model_embedding(base, "embedding", c->vocabulary, c->hidden, -1);
    m->layer = att_nn_params_alloc(base->params, (size_t)c->layers * sizeof *m->layer);
    for (int64_t i = 0; m->layer && i < c->layers; i++)
        m->layer[i] = att_nn_encoder_layer_new(base->params, att_nn_number("layer", i).text, &layer);
    m->norm = att_nn_norm_new(base->params, "norm", ATT_RMS_NORM, c->hidden, c->eps);
    m->head = c->tied ? m->embedding : att_model_embedding(base, "head", c->vocabulary, c->hidden, -1);
    return ATT_OK;
}

static void free_model(att_model *base) { att_plan_free(((att_language_model *)base)->plan); }

static const att_model_kind kind = {.bytes = sizeof(att_language_model),
                                    .configure = configure,
                                    .build = build,
                                    .names = names,
                                    .prefix = "model.",
                                    .unused = unused,
                                    .free = free_model};

att_status att_language_model_open(att_ctx *ctx, const char *folder, att_language_model **out)
{
    return att_model_open(ctx, __func__, &kind, folder, false, out);
}

void att_language_model_free(att_language_model *m) { att_model_free(m); }

att_status att_language_model_describe(const att_language_model *m, att_language_model_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_llama_config *c = &m->config;
    const att_language_model_info all = {.type = c->type,
                                         .vocabulary = c->vocabulary,
                                         .hidden = c->hidden,
                                         .layers = c->layers,
                                         .heads = c->heads,
                                         .kv_heads = c->kv_heads,
                                         .head_dim = c->head_dim,
                                         .intermediate = c->intermediate,
                                         .max_positions = c->max_positions,
                                         .window = m->plan ? c->window : 0,
                                         .tied = c->tied};
    return att_give_info(info, &all, sizeof all, "att_language_model_info");
}

/* ---- state */

struct att_language_state {
    att_ctx *ctx;
    int64_t layers;
    att_cache **cache; /* [layers] */
};

att_status att_language_state_new(const att_language_model *m, int64_t n, att_dtype dtype, att_language_state **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    if (dtype != 0 && dtype != ATT_F32) /* their plans are of f32 */
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "att_language_state_new: dtype is %s; only f32 is supported",
                        att_dtype_name(dtype));
    att_language_state *s = att_calloc(ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (att_language_state){.ctx = ctx, .layers = m->config.layers};
    s->cache = att_calloc(ctx, (size_t)s->layers, sizeof(att_cache *));
    att_status e = s->cache ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_new(m->layer[i]->attention->plan, n, &s->cache[i]);
    if (e)
        att_language_state_free(s);
    else
        *out = s;
    return e;
}

void att_language_state_free(att_language_state *s)
{
    if (!s)
        return;
    for (int64_t i = 0; s->cache && i < s->layers; i++)
        att_cache_free(s->cache[i]);
    att_free(s->ctx, s->cache);
    att_free(s->ctx, s);
}

int64_t att_language_state_length(const att_language_state *s, int64_t sequence)
{
    return s ? att_cache_length(s->cache[0], sequence) : -1;
}

att_status att_language_state_truncate(att_language_state *s, int64_t sequence, int64_t length)
{
    att_status e = att_require(__func__, ATT_NAMED({"s", s})) ? ATT_ERR_ARGUMENT : ATT_OK;
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_truncate(s->cache[i], sequence, length);
    return e;
}

att_status att_language_state_select(att_language_state *s, int64_t n, const int64_t *from)
{
    att_status e = att_require(__func__, ATT_NAMED({"s", s}, {"from", from})) ? ATT_ERR_ARGUMENT : ATT_OK;
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_select(s->cache[i], n, from);
    return e;
}

/* ---- apply */

/* Do the sequences and what the state has fit into the model's positions? */
static bool check_lengths(att_tape *t, const att_language_model *m, const int64_t *offsets, int64_t n,
                          const att_language_state *state, bool last_only)
{
    if (state && att_cache_sequences(state->cache[0]) != n)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "language model: n is %lld, but the state has %lld sequences",
                             (long long)n, (long long)att_cache_sequences(state->cache[0])) != NULL;
    for (int64_t b = 0; b < n; b++) {
        const int64_t before = state ? att_language_state_length(state, b) : 0, more = offsets[b + 1] - offsets[b];
        if (before + more > m->config.max_positions)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "language model: sequence %lld has %lld tokens, %lld of them in the state, but the "
                                 "model has %lld positions",
                                 (long long)b, (long long)(before + more), (long long)before,
                                 (long long)m->config.max_positions) != NULL;
        if (last_only && more == 0)
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "language model: sequence %lld is empty, and has no last token",
                                 (long long)b) != NULL;
    }
    return true;
}

/* Rows of the last tokens of n sequences: x [tokens, hidden] -> [n, hidden] */
static att_var *last_rows(att_tape *t, const att_language_model *m, att_var *x, const int64_t *offsets, int64_t n)
{
    int32_t *row = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *row);
    if (!row)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t b = 0; b < n; b++)
        row[b] = (int32_t)(offsets[b + 1] - 1);
    att_var *y = att_gather(t, x, row, n);
    att_free(m->model.ctx, row);
    return y;
}

att_var *att_language_model_apply(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                  int64_t n, att_language_state *state, bool last_only)
{
    if (!att_tape_require(t, "language model", ATT_NAMED({"m", m})) ||
        !att_sequences_fit(t, "language model", ids, offsets, n, m->config.max_positions) ||
        !check_lengths(t, m, offsets, n, state, last_only))
        return NULL;
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    att_scope s = att_scope_begin(t, "language_model");
    att_var *x = att_embedding(t, m->embedding, ids, offsets[n]);
    for (int64_t i = 0; i < m->config.layers; i++) {
        const att_nn_layer_call call = {.size = sizeof call, .args = &args, .cache = state ? state->cache[i] : NULL};
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->layer[i], x, &call));
        x = att_scope_reset(t, s, x);
    }
    if (last_only)
        x = last_rows(t, m, x, offsets, n);
    x = att_linear(t, att_nn_norm_apply(t, m->norm, x), m->head, NULL, ATT_IDENTITY, NULL);
    return att_scope_end(t, s, x);
}
