/* NomicBERT (Nussbaum et al. 2024), the encoder of nomic-embed-text:
 *
 * x = LayerNorm(word(ids) + type(type_ids))
 * each layer: x = LayerNorm(x + Attention(x)), x = LayerNorm(x + (SiLU(x W_gate) * (x W_inner)) W_outer)
 *
 * Queries and keys are rotated by their positions. Folders have the settings of its own program, named as those of
 * GPT-2, or those of the class NomicBertConfig of `transformers`; the weights may have the names of either. */
#include "stack/encoder.h"
#include "stack/encoder_config.h"
#include "stack/rotary_config.h"

#include <string.h>

enum { MAX_TYPES = 65536 };

typedef struct nomic_bert {
    att_encoder base;
    float eps, attention_dropout;
    int64_t head_dim;
    double frequency[ATT_MAX_HEAD_DIM / 2]; /* [head_dim / 2] */
    att_param *word, *type;                 /* tables; type or NULL */
    const att_nn_norm *norm;
} nomic_bert;

/* The first name of a tensor is that of its own program, in which it is written. */
#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.type.weight", "embeddings.token_type_embeddings.weight"},
    LINEAR("embeddings.norm", "emb_ln"),
    LINEAR("embeddings.norm", "embeddings.LayerNorm"),
    LINEAR("layer.*.attention.fused", "encoder.layers.*.attn.Wqkv"),
    LINEAR("layer.*.attention.query", "layers.*.self_attn.q_proj"),
    LINEAR("layer.*.attention.key", "layers.*.self_attn.k_proj"),
    LINEAR("layer.*.attention.value", "layers.*.self_attn.v_proj"),
    LINEAR("layer.*.attention.output", "encoder.layers.*.attn.out_proj"),
    LINEAR("layer.*.attention.output", "layers.*.self_attn.o_proj"),
    LINEAR("layer.*.attention_norm", "encoder.layers.*.norm1"),
    LINEAR("layer.*.attention_norm", "layers.*.post_attention_layernorm"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layers.*.mlp.fc11"),
    LINEAR("layer.*.feed_forward.inner", "layers.*.mlp.up_proj"),
    LINEAR("layer.*.feed_forward.gate", "encoder.layers.*.mlp.fc12"),
    LINEAR("layer.*.feed_forward.gate", "layers.*.mlp.gate_proj"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layers.*.mlp.fc2"),
    LINEAR("layer.*.feed_forward.outer", "layers.*.mlp.down_proj"),
    LINEAR("layer.*.feed_forward_norm", "encoder.layers.*.norm2"),
    LINEAR("layer.*.feed_forward_norm", "layers.*.post_mlp_layernorm"),
    {0},
};
static const att_encoder_part parts[] = {{".attention.query.", ".attention.fused.", 0, 3},
                                         {".attention.key.", ".attention.fused.", 1, 3},
                                         {".attention.value.", ".attention.fused.", 2, 3},
                                         {0}};
/* Tensors of heads */
static const char *const unused[] = {"embeddings.position_ids", "pooler.", "cls.", "classifier.", NULL};

/* ---- settings of its own program */

static const att_encoder_keys own_keys = {"n_embd", "n_layer", "n_head", "n_inner", "n_positions"};

/* What its class has where a key is missing, and what is supported */
static void refuse_other_forms(att_settings *s)
{
    static const struct {
        const char *key;
        bool missing, only;
    } flags[] = {{"prenorm", false, false},
                 {"parallel_block", false, false},
                 {"use_rms_norm", false, false},
                 {"causal", false, false},
                 {"qkv_proj_bias", true, false},
                 {"mlp_fc1_bias", true, false},
                 {"mlp_fc2_bias", true, false},
                 {"rotary_emb_interleaved", false, false},
                 {"scale_attn_weights", true, true},
                 {"scale_attn_by_inverse_layer_idx", false, false},
                 {"reorder_and_upcast_attn", false, false}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (att_settings_bool(s, flags[i].key, flags[i].missing) != flags[i].only)
            att_settings_unsupported(s, flags[i].key, flags[i].only ? "true" : "false");
    att_settings_need(s, "activation_function");
    att_settings_only_text(s, "activation_function", "swiglu");
    att_settings_need(s, "rotary_emb_fraction");
    att_settings_only_number(s, "rotary_emb_fraction", 1);
    att_settings_only_empty(s, "rotary_emb_scale_base");
    if (att_settings_int_or(s, "moe_every_n_layers", INT32_MIN, INT32_MAX, 0) > 0)
        att_settings_unsupported(s, "moe_every_n_layers", "0, a model without experts,");
}

/* Longer sequences than those of its training need other frequencies, if rotary_scaling_factor is given. */
static void limit_positions(att_settings *s, att_encoder_info *c)
{
    const int64_t trained = att_settings_int_or(s, "max_trained_positions", 1, INT32_MAX, 2048);
    if (att_settings_number_or(s, "rotary_scaling_factor", 1, 1e6, 0) > 0 && trained < c->max_positions)
        c->max_positions = trained;
}

static void read_own(att_settings *s, nomic_bert *m)
{
    att_encoder_info *c = &m->base.info;
    att_encoder_config_read(s, &own_keys, c);
    refuse_other_forms(s);
    limit_positions(s, c);
    const int64_t multiple = att_settings_int_or(s, "pad_vocab_size_multiple", 1, 65536, 1);
    c->vocabulary += s->status ? 0 : (multiple - c->vocabulary % multiple) % multiple;
    m->eps = (float)att_settings_number_or(s, "layer_norm_epsilon", 0, 1, 1e-5);
    m->base.hidden_dropout = (float)att_settings_number_or(s, "resid_pdrop", 0, 0.99, 0.1);
    m->attention_dropout = (float)att_settings_number_or(s, "attn_pdrop", 0, 0.99, 0.1);
    m->head_dim = att_encoder_head_dim(s, &own_keys, c, 0);
    att_rotary_frequencies(att_settings_number_or(s, "rotary_emb_base", 1, 1e12, 10000), m->head_dim, m->frequency);
}

/* ---- settings of the class of transformers */

static void read_rotary(att_settings *s, nomic_bert *m)
{
    const char *key = att_settings_has(s, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const double base = att_settings_number_or(s, "rope_theta", 1, 1e12, 1000);
    att_rotary_frequencies(base, m->head_dim, m->frequency);
    if (s->status || !att_settings_has(s, key))
        return;
    const att_settings_scope before = att_settings_enter(s, key);
    att_settings_only_number(s, "partial_rotary_factor", 1);
    att_rotary_frequencies(att_settings_number_or(s, "rope_theta", 1, 1e12, base), m->head_dim, m->frequency);
    att_rotary_scale(s, m->frequency, m->head_dim / 2);
    att_settings_leave(s, before);
}

static void read_class(att_settings *s, nomic_bert *m)
{
    att_encoder_info *c = &m->base.info;
    att_encoder_config_read(s, &att_encoder_usual_keys, c);
    att_settings_only_text(s, "hidden_act", "silu");
    m->eps = (float)att_settings_number_or(s, "layer_norm_eps", 0, 1, 1e-12);
    m->base.hidden_dropout = (float)att_settings_number_or(s, "hidden_dropout_prob", 0, 0.99, 0);
    m->attention_dropout = (float)att_settings_number_or(s, "attention_probs_dropout_prob", 0, 0.99, 0);
    m->head_dim =
        att_encoder_head_dim(s, &att_encoder_usual_keys, c, att_settings_int_or(s, "head_dim", 1, ATT_MAX_HEAD_DIM, 0));
    read_rotary(s, m);
}

static void configure(att_model *base, att_settings *s)
{
    nomic_bert *m = (nomic_bert *)base;
    if (att_settings_has(s, "n_embd"))
        read_own(s, m);
    else
        read_class(s, m);
    m->base.info.type = "nomic_bert";
    m->base.info.types = att_settings_int_or(s, "type_vocab_size", 0, MAX_TYPES, 2);
}

/* ---- layers */

static att_status build(att_model *base)
{
    nomic_bert *m = (nomic_bert *)base;
    const att_encoder_info *c = &m->base.info;
    const att_rotary_options rotary = {.size = sizeof rotary, .frequencies = m->frequency};
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = c->hidden,
                                               .heads = c->heads,
                                               .head_dim = m->head_dim,
                                               .dropout = base->trainable ? m->attention_dropout : 0,
                                               .no_query_bias = true,
                                               .no_key_bias = true,
                                               .no_value_bias = true,
                                               .no_output_bias = true,
                                               .rotary = &rotary};
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_ACTIVATION_SILU,
                                       .gated = true,
                                       .no_bias = true,
                                       .eps = m->eps,
                                       .attention = &attention};
    m->word = att_model_embedding(base, "embeddings.word", c->vocabulary, c->hidden, -1);
    m->type = c->types ? att_model_embedding(base, "embeddings.type", c->types, c->hidden, -1) : NULL;
    m->norm = att_nn_norm_new(base->params, "embeddings.norm", ATT_NN_NORM_LAYER, c->hidden, m->eps);
    att_encoder_layers(&m->base, &layer);
    return ATT_OK;
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const nomic_bert *m = (const nomic_bert *)base;
    att_var *x = att_embedding(t, m->word, in->ids, in->tokens);
    if (m->type)
        x = att_add(t, x, att_embedding(t, m->type, in->type_ids, in->tokens));
    return att_nn_norm_apply(t, m->norm, x);
}

static const char *const types[] = {"nomic_bert"};
static const att_model_types nomic_bert_types = ATT_MODEL_TYPES(types);
const att_encoder_architecture att_nomic_bert = {.kind = {.bytes = sizeof(nomic_bert),
                                                          .types = &nomic_bert_types,
                                                          .configure = configure,
                                                          .build = build,
                                                          .prepare = att_encoder_prepare,
                                                          .load_parameter = att_encoder_load,
                                                          .names = names,
                                                          .prefix = "nomic_bert.",
                                                          .unused = unused},
                                                 .embed = embed,
                                                 .parts = parts};
