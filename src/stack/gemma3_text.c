/* EmbeddingGemma (Vera et al. 2025), the text model of Gemma 3 without its causal mask:
 *
 * x = sqrt(hidden) embedding(ids)
 * each layer: x = x + RMSNorm(Attention(RMSNorm(x))), x = x + RMSNorm((GELU(h W_gate) * (h W_inner)) W_outer) with h =
 *     RMSNorm(x)
 * x = RMSNorm(x)
 *
 * Each head's queries and keys are normalized, too, then rotated by their positions. Norms multiply by 1 + weight. In
 * most layers a token attends only to its neighbors, and positions have another base there. */
#include "stack/encoder.h"
#include "stack/encoder_config.h"
#include "stack/mixed_layers.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_HEAD_DIM = 256, DEFAULT_KV_HEADS = 4, DEFAULT_WINDOW = 4096, MAX_HEADS = 65536 };

typedef struct gemma3_text {
    att_encoder base;
    att_mixed_layers mixed;
    int64_t window; /* of sliding layers: positions before and after the token */
    int64_t head_dim, kv_heads;
    float eps, scale; /* scale: of scores */
    bool attention_bias;
    att_param *embedding; /* [vocabulary, hidden] */
} gemma3_text;

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
    {"layer.*.attention_result_norm.weight", "layers.*.post_attention_layernorm.weight"},
    {"layer.*.feed_forward_norm.weight", "layers.*.pre_feedforward_layernorm.weight"},
    {"layer.*.feed_forward.gate.weight", "layers.*.mlp.gate_proj.weight"},
    {"layer.*.feed_forward.inner.weight", "layers.*.mlp.up_proj.weight"},
    {"layer.*.feed_forward.outer.weight", "layers.*.mlp.down_proj.weight"},
    {"layer.*.feed_forward_result_norm.weight", "layers.*.post_feedforward_layernorm.weight"},
    {"norm.weight", "norm.weight"},
    {0},
};
static const char *const unused[] = {"lm_head.", NULL};

/* ---- settings */

static const att_mixed_keys mixed_keys = {.every = "sliding_window_pattern",
                                          .default_every = 6,
                                          .last = true,
                                          .full = "rope_theta",
                                          .sliding = "rope_local_base_freq",
                                          .default_full = 1e6,
                                          .default_sliding = 1e4};

static void refuse(const att_model *m, att_settings *s)
{
    if (!s->status && !att_settings_bool(s, "use_bidirectional_attention", false))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"model_type\" is \"gemma3_text\" and \"use_bidirectional_attention\" is not true, as in "
                          "language models, which are not supported; EmbeddingGemma, in which it is true, is");
    if (m->trainable) /* dropout is not computed: published models have none */
        att_settings_only_number(s, "attention_dropout", 0);
    att_settings_only_text(s, "hidden_activation", "gelu_pytorch_tanh");
    att_settings_only_empty(s, "attn_logit_softcapping");
}

static void configure(att_model *base, att_settings *s)
{
    gemma3_text *m = (gemma3_text *)base;
    att_encoder_info *c = &m->base.info;
    refuse(base, s);
    att_encoder_config_read(s, &att_encoder_usual_keys, c);
    c->type = "gemma3_text";
    m->eps = (float)att_settings_number_or(s, "rms_norm_eps", 0, 1, 1e-6);
    m->scale = (float)(1 / sqrt(att_settings_number_or(s, "query_pre_attn_scalar", 1e-6, 1e6, 256)));
    m->attention_bias = att_settings_bool(s, "attention_bias", false);
    m->kv_heads = att_settings_int_or(s, "num_key_value_heads", 1, MAX_HEADS, DEFAULT_KV_HEADS);
    if (!s->status && c->heads % m->kv_heads)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"num_key_value_heads\" is %d, which does not divide \"num_attention_heads\", %d",
                          (int)m->kv_heads, (int)c->heads);
    m->window = att_settings_int_or(s, "sliding_window", 2, INT32_MAX, DEFAULT_WINDOW) / 2;
    m->head_dim = att_encoder_head_dim(s, &att_encoder_usual_keys, c,
                                       att_settings_int_or(s, "head_dim", 1, ATT_MAX_HEAD_DIM, DEFAULT_HEAD_DIM));
    att_mixed_layers_read(s, &mixed_keys, c->layers, m->head_dim, &m->mixed);
}

/* ---- weights */

/* Is it a norm's weight? Of the encoder itself: a LayerNorm after it, "module.2.norm.weight", multiplies by its weight.
 */
static bool is_norm(const char *name)
{
    return !strcmp(name, "norm.weight") || (!strncmp(name, "layer.", 6) && strstr(name, "norm.weight"));
}

/* Loads a parameter; the weight of a norm becomes 1 + weight, in f32 memory of its own. */
static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    att_model *m = model;
    att_tensor stored;
    const bool norm = is_norm(name);
    const att_status s = att_checkpoint_load(m->checkpoint, name, rank, dim, norm ? &stored : out);
    if (s || !norm)
        return s;
    float *w = att_nn_params_alloc(m->params, (size_t)dim[0] * sizeof *w);
    if (!w)
        return att_nn_params_status(m->params);
    att_status e = att_wrap(out, w, ATT_F32, rank, dim, NULL);
    e = e ? e : att_tensor_convert(m->ctx, &stored, out);
    for (int64_t i = 0; !e && i < dim[0]; i++)
        w[i] += 1;
    return e;
}

/* A norm's weight in the file is 1 less. */
static void change(const char *ours, att_file_tensor *out)
{
    if (is_norm(ours))
        out->plus = -1;
}

/* ---- layers */

static void build_layer(gemma3_text *m, int64_t i)
{
    const att_encoder_info *c = &m->base.info;
    const att_rotary_options rotary = att_mixed_layers_rotary(&m->mixed, i);
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = c->hidden,
                                               .heads = c->heads,
                                               .kv_heads = m->kv_heads,
                                               .head_dim = m->head_dim,
                                               .no_query_bias = !m->attention_bias,
                                               .no_key_bias = !m->attention_bias,
                                               .no_value_bias = !m->attention_bias,
                                               .no_output_bias = !m->attention_bias,
                                               .qk_norm = ATT_NN_QK_NORM_HEAD,
                                               .qk_norm_kind = ATT_NN_NORM_RMS,
                                               .qk_norm_eps = m->eps,
                                               .rotary = &rotary,
                                               .window = m->mixed.slides[i] ? m->window : 0,
                                               .scale = m->scale};
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_ACTIVATION_GELU_TANH,
                                       .gated = true,
                                       .no_bias = true,
                                       .order = ATT_NN_ORDER_SANDWICH_NORM,
                                       .norm = ATT_NN_NORM_RMS,
                                       .eps = m->eps,
                                       .attention = &attention};
    att_encoder_layer(&m->base, i, &layer);
}

static att_status build(att_model *base)
{
    gemma3_text *m = (gemma3_text *)base;
    const att_encoder_info *c = &m->base.info;
    m->embedding = att_model_embedding(base, "embedding", c->vocabulary, c->hidden, -1);
    for (int64_t i = 0; i < c->layers; i++)
        build_layer(m, i);
    m->base.norm = att_nn_norm_new(base->params, "norm", ATT_NN_NORM_RMS, c->hidden, m->eps);
    return ATT_OK;
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const gemma3_text *m = (const gemma3_text *)base;
    return att_scale(t, att_embedding(t, m->embedding, in->ids, in->tokens), sqrtf((float)m->base.info.hidden));
}

static const char *const types[] = {"gemma3_text"};
static const att_model_types gemma3_text_types = ATT_MODEL_TYPES(types);
const att_encoder_architecture att_gemma3_text = {.kind = {.bytes = sizeof(gemma3_text),
                                                           .types = &gemma3_text_types,
                                                           .configure = configure,
                                                           .build = build,
                                                           .prepare = att_encoder_prepare,
                                                           .load_parameter = load,
                                                           .names = names,
                                                           .prefix = "model.",
                                                           .unused = unused},
                                                  .embed = embed,
                                                  .change = change};
