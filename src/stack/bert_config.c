#include "stack/bert_config.h"
#include "model/activation.h"

/* Upper limits. Larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 20, MAX_TOKENS = 1 << 27, MAX_TYPES = 65536 };

const att_bert_keys att_bert_keys_of_class = {.hidden = "hidden_size",
                                              .layers = "num_hidden_layers",
                                              .heads = "num_attention_heads",
                                              .intermediate = "intermediate_size",
                                              .types = "type_vocab_size",
                                              .eps = "layer_norm_eps",
                                              .hidden_dropout = "hidden_dropout_prob",
                                              .attention_dropout = "attention_probs_dropout_prob",
                                              .activation = "hidden_act"};

/* Reads a probability of dropout. The classes' default is 0.1. */
static float dropout(att_settings *s, const char *key)
{
    return att_settings_has(s, key) ? (float)att_settings_number(s, key, 0, 0.99) : 0.1f;
}

void att_bert_config_read(att_settings *s, const att_bert_keys *keys, att_bert_config *c)
{
    att_settings_only_text(s, "position_embedding_type", "absolute");
    att_settings_only_bool(s, "is_decoder", false);
    att_settings_only_bool(s, "add_cross_attention", false);
    att_settings_only_bool(s, "is_encoder_decoder", false);
    att_settings_only_empty(s, "pruned_heads");
    att_settings_only_empty(s, "quantization_config");
    c->vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    c->hidden = att_settings_int(s, keys->hidden, 1, MAX_FEATURES);
    c->layers = att_settings_int(s, keys->layers, 1, MAX_LAYERS);
    c->heads = att_settings_int(s, keys->heads, 1, MAX_FEATURES);
    c->intermediate = att_settings_int(s, keys->intermediate, 1, 8 * MAX_FEATURES);
    c->positions = att_settings_int(s, "max_position_embeddings", 1, MAX_POSITIONS);
    c->types = keys->types ? att_settings_int(s, keys->types, 1, MAX_TYPES) : 0;
    c->eps = keys->eps ? (float)att_settings_number(s, keys->eps, 0, 1) : 1e-12f;
    c->hidden_dropout = dropout(s, keys->hidden_dropout);
    c->attention_dropout = dropout(s, keys->attention_dropout);
    c->activation = att_activation_read(s, keys->activation, NULL);
    if (!s->status && c->hidden % c->heads != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %d, which does not divide \"%s\", %d", keys->heads,
                          (int)c->heads, keys->hidden, (int)c->hidden);
}

void att_bert_check_positions(att_settings *s, const att_bert_config *c, int64_t first)
{
    if (!s->status && c->positions <= first)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"max_position_embeddings\" is %d, but positions begin at %d",
                          (int)c->positions, (int)first);
}

void att_bert_layers(att_encoder *m, const att_bert_config *c, const att_nn_attention_config *attention)
{
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .heads = c->heads,
                                       .intermediate = c->intermediate,
                                       .activation = c->activation,
                                       .attention_dropout = m->model.trainable ? c->attention_dropout : 0,
                                       .eps = c->eps,
                                       .attention = attention};
    att_encoder_info *info = &m->info;
    info->vocabulary = c->vocabulary;
    info->hidden = c->hidden;
    info->layers = c->layers;
    info->heads = c->heads;
    info->intermediate = c->intermediate;
    info->max_positions = c->positions - info->first_position;
    info->types = c->types;
    info->pooler = att_model_has(&m->model, "pooler.weight");
    m->hidden_dropout = c->hidden_dropout;
    att_encoder_layers(m, &layer);
}
