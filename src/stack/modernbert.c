/* ModernBERT (Warner et al. 2024), with norms without bias, LN:
 *
 * x = LN(embedding(ids))
 * each layer: x = x + Attention(LN(x)), of the first layer Attention(x); x = x + (GELU(h W_gate) * (h W_inner)) W_outer
 *     with h = LN(x)
 * x = LN(x)
 *
 * Queries and keys are rotated by their positions. In most layers a token attends only to its neighbors, and positions
 * have another base there. */
#include "model/activation.h"
#include "stack/encoder.h"
#include "stack/encoder_config.h"
#include "stack/mixed_layers.h"

typedef struct modernbert {
    att_encoder base;
    att_mixed_layers mixed;
    int64_t window; /* of sliding layers: positions before and after the token */
    att_activation activation;
    att_nn_norm_kind norm_kind;
    float eps;
    bool attention_bias, mlp_bias;
    att_param *embedding; /* [vocabulary, hidden] */
    const att_nn_norm *embedding_norm;
} modernbert;

#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"embedding.weight", "embeddings.tok_embeddings.weight"},
    LINEAR("embedding_norm", "embeddings.norm"),
    LINEAR("layer.*.attention_norm", "layers.*.attn_norm"),
    LINEAR("layer.*.attention.fused", "layers.*.attn.Wqkv"),
    LINEAR("layer.*.attention.output", "layers.*.attn.Wo"),
    LINEAR("layer.*.feed_forward_norm", "layers.*.mlp_norm"),
    LINEAR("layer.*.feed_forward.fused", "layers.*.mlp.Wi"),
    LINEAR("layer.*.feed_forward.outer", "layers.*.mlp.Wo"),
    LINEAR("norm", "final_norm"),
    {0},
};
static const att_encoder_part parts[] = {
    {".attention.query.", ".attention.fused.", 0, 3},       {".attention.key.", ".attention.fused.", 1, 3},
    {".attention.value.", ".attention.fused.", 2, 3},       {".feed_forward.gate.", ".feed_forward.fused.", 0, 2},
    {".feed_forward.inner.", ".feed_forward.fused.", 1, 2}, {0}};
/* Tensors of heads */
static const char *const unused[] = {"head.", "decoder.", "classifier.", NULL};

/* ---- settings */

static const att_mixed_keys mixed_keys = {.every = "global_attn_every_n_layers",
                                          .default_every = 3,
                                          .full = "global_rope_theta",
                                          .sliding = "local_rope_theta",
                                          .default_full = 160000,
                                          .default_sliding = 10000,
                                          .sliding_scaled = true};

/* Dropout is not computed: published models have none. */
static void check_dropout(const att_model *m, att_settings *s)
{
    static const char *const keys[] = {"attention_dropout", "embedding_dropout", "mlp_dropout"};
    for (int i = 0; m->trainable && i < 3; i++)
        att_settings_only_number(s, keys[i], 0);
}

static void configure(att_model *base, att_settings *s)
{
    modernbert *m = (modernbert *)base;
    att_encoder_info *c = &m->base.info;
    att_encoder_config_read(s, &att_encoder_usual_keys, c);
    c->type = "modernbert";
    m->activation = att_activation_read(s, "hidden_activation", "gelu");
    m->norm_kind = att_settings_bool(s, "norm_bias", false) ? ATT_NN_NORM_LAYER : ATT_NN_NORM_LAYER_NO_BIAS;
    m->eps = (float)att_settings_number_or(s, "norm_eps", 0, 1, 1e-5);
    m->attention_bias = att_settings_bool(s, "attention_bias", false);
    m->mlp_bias = att_settings_bool(s, "mlp_bias", false);
    m->window = att_settings_int_or(s, "local_attention", 2, INT32_MAX, 128) / 2;
    check_dropout(base, s);
    const int64_t head_dim = att_encoder_head_dim(s, &att_encoder_usual_keys, c, 0);
    att_mixed_layers_read(s, &mixed_keys, c->layers, head_dim, &m->mixed);
}

/* ---- layers */

static void build_layer(modernbert *m, int64_t i)
{
    const att_encoder_info *c = &m->base.info;
    const att_rotary_options rotary = att_mixed_layers_rotary(&m->mixed, i);
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = c->hidden,
                                               .heads = c->heads,
                                               .no_query_bias = !m->attention_bias,
                                               .no_key_bias = !m->attention_bias,
                                               .no_value_bias = !m->attention_bias,
                                               .no_output_bias = !m->attention_bias,
                                               .rotary = &rotary,
                                               .window = m->mixed.slides[i] ? m->window : 0};
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .intermediate = c->intermediate,
                                       .activation = m->activation,
                                       .gated = true,
                                       .no_bias = !m->mlp_bias,
                                       .order = ATT_NN_ORDER_PRE_NORM,
                                       .norm = m->norm_kind,
                                       .eps = m->eps,
                                       .attention = &attention,
                                       .no_attention_norm = i == 0};
    att_encoder_layer(&m->base, i, &layer);
}

static att_status build(att_model *base)
{
    modernbert *m = (modernbert *)base;
    const att_encoder_info *c = &m->base.info;
    m->embedding = att_model_embedding(base, "embedding", c->vocabulary, c->hidden, -1);
    m->embedding_norm = att_nn_norm_new(base->params, "embedding_norm", m->norm_kind, c->hidden, m->eps);
    for (int64_t i = 0; i < c->layers; i++)
        build_layer(m, i);
    m->base.norm = att_nn_norm_new(base->params, "norm", m->norm_kind, c->hidden, m->eps);
    return ATT_OK;
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const modernbert *m = (const modernbert *)base;
    return att_nn_norm_apply(t, m->embedding_norm, att_embedding(t, m->embedding, in->ids, in->tokens));
}

static const char *const types[] = {"modernbert"};
static const att_model_types modernbert_types = ATT_MODEL_TYPES(types);
const att_encoder_architecture att_modernbert = {.kind = {.bytes = sizeof(modernbert),
                                                          .types = &modernbert_types,
                                                          .configure = configure,
                                                          .build = build,
                                                          .prepare = att_encoder_prepare,
                                                          .load_parameter = att_encoder_load,
                                                          .names = names,
                                                          .prefix = "model.",
                                                          .unused = unused},
                                                 .embed = embed,
                                                 .parts = parts};
