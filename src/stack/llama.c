/* Llama (Touvron et al. 2023), and Mistral, OLMo 2, Phi-3, Qwen2 and Qwen3, which differ in settings:
 *
 * x = embedding(ids)
 * each layer: x = x + Attention(RMSNorm(x)), x = x + (SiLU(h W_gate) * (h W_inner)) W_outer with h = RMSNorm(x);
 *     of OLMo 2: x = x + RMSNorm(Attention(x)), x = x + RMSNorm(FeedForward(x))
 * logits = RMSNorm(x) W^T */
#include "stack/llama_config.h"
#include "stack/language_model.h"

#include <stdio.h>
#include <string.h>

typedef struct llama {
    att_language_model base;
    att_llama_config config;
    att_param *embedding; /* [vocabulary, hidden] */
    att_plan *plan;       /* of a sliding window, or NULL */
    att_rotary_options rotary;
} llama;

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
    {"layer.*.attention_result_norm.weight", "layers.*.post_attention_layernorm.weight"},
    {"layer.*.feed_forward_result_norm.weight", "layers.*.post_feedforward_layernorm.weight"},
    LINEAR("layer.*.attention.fused", "layers.*.self_attn.qkv_proj"),
    LINEAR("layer.*.feed_forward.fused", "layers.*.mlp.gate_up_proj"),
    {"norm.weight", "norm.weight"},
    {"head.weight", "lm_head.weight"},
    {0},
};
/* Tensors that are not used: a tied output layer, and frequencies, which older files have in each layer. */
static const char *const unused[] = {"rotary_emb.", "layers.*.self_attn.rotary_emb.", "lm_head.", NULL};

/* A base model may be one whose tokens attend to all. */
static void configure(att_model *base, att_settings *s)
{
    llama *m = (llama *)base;
    att_llama_config_read(s, &m->config);
    if (!att_language_architecture_of(&m->base)->without_head)
        att_settings_only_bool(s, "is_causal", true);
    else if (m->config.bidirectional && m->config.window > 0 && m->config.window < m->config.max_positions)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"is_causal\" is false, which is not supported with a sliding window");
}

/* Loads a parameter. Phi-3 has queries, keys and values as rows of one matrix, and gate and inner as rows of another.
 */
static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    const llama *m = model;
    const att_llama_config *c = &m->config;
    const int64_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim, qkv = queries + 2 * keys;
    const struct {
        const char *name;
        int64_t first, whole;
    } parts[] = {{".attention.query.", 0, qkv},
                 {".attention.key.", queries, qkv},
                 {".attention.value.", queries + keys, qkv},
                 {".feed_forward.gate.", 0, 2 * c->intermediate},
                 {".feed_forward.inner.", c->intermediate, 2 * c->intermediate}};
    for (size_t i = 0; c->fused && i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(name, parts[i].name);
        if (at) {
            char fused[ATT_CHECKPOINT_NAME];
            const char *dot = strchr(at + 1, '.'); /* before "query" or another name */
            snprintf(fused, sizeof fused, "%.*s.fused%s", (int)(dot - name), name, strrchr(name, '.'));
            return att_checkpoint_load_part(m->base.model.checkpoint, fused, rank, dim,
                                            (att_checkpoint_part){parts[i].whole, parts[i].first, false}, out);
        }
    }
    return att_checkpoint_load(m->base.model.checkpoint, name, rank, dim, out);
}

static att_nn_attention_config attention_config(const llama *m)
{
    const att_llama_config *c = &m->config;
    return (att_nn_attention_config){.size = sizeof(att_nn_attention_config),
                                     .width = c->hidden,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->head_dim,
                                     .causal = !c->bidirectional,
                                     .plan = m->plan,
                                     .no_query_bias = !c->qkv_bias,
                                     .no_key_bias = !c->qkv_bias,
                                     .no_value_bias = !c->qkv_bias,
                                     .no_output_bias = !c->output_bias,
                                     .qk_norm = c->qk_norm,
                                     .qk_norm_kind = ATT_NN_NORM_RMS,
                                     .qk_norm_eps = c->eps,
                                     .rotary = &m->rotary};
}

static att_language_model_info describe(const llama *m)
{
    const att_llama_config *c = &m->config;
    return (att_language_model_info){.type = c->type,
                                     .vocabulary = c->vocabulary,
                                     .hidden = c->hidden,
                                     .layers = c->layers,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->head_dim,
                                     .intermediate = c->intermediate,
                                     .max_positions = c->max_positions,
                                     .window = c->window < c->max_positions ? c->window : 0,
                                     .tied = c->tied};
}

static att_status build(att_model *base)
{
    llama *m = (llama *)base;
    const att_llama_config *c = &m->config;
    m->base.info = describe(m);
    m->base.causal = !c->bidirectional;
    const att_status s = m->base.info.window ? att_language_model_plan(&m->base, ATT_F32, &m->plan) : ATT_OK;
    if (s)
        return s;
    m->rotary = (att_rotary_options){.size = sizeof m->rotary, .dims = c->rotary_dims, .frequencies = c->frequency};
    const att_nn_attention_config attention = attention_config(m);
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_ACTIVATION_SILU,
                                       .gated = true,
                                       .no_bias = !c->mlp_bias,
                                       .order = c->order,
                                       .norm = ATT_NN_NORM_RMS,
                                       .eps = c->eps,
                                       .attention = &attention};
    m->embedding = att_model_embedding(base, "embedding", c->vocabulary, c->hidden, -1);
    att_language_model_layers(&m->base, &layer);
    return att_language_model_build_head(&m->base, m->embedding);
}

static void free_model(att_model *base) { att_plan_free(((llama *)base)->plan); }

static att_var *embed(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                      const att_language_state *state)
{
    (void)state;
    return att_embedding(t, ((const llama *)m)->embedding, ids, offsets[n]);
}

#define ARCHITECTURE(applied, headless)                                                                                \
    {                                                                                                                  \
        .kind = {.bytes = sizeof(llama),                                                                               \
                 .types = &att_llama_types,                                                                            \
                 .configure = configure,                                                                               \
                 .build = build,                                                                                       \
                 .prepare = (applied),                                                                                 \
                 .load_parameter = load,                                                                               \
                 .names = names,                                                                                       \
                 .prefix = "model.",                                                                                   \
                 .unused = unused,                                                                                     \
                 .free = free_model},                                                                                  \
        .embed = embed, .without_head = (headless)                                                                     \
    }
const att_language_architecture att_llama = ARCHITECTURE(att_language_model_prepare, false),
                                att_llama_base = ARCHITECTURE(att_language_base_prepare, true);
