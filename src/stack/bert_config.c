#include "stack/bert_config.h"
#include "model/activation.h"

/* Upper limits; larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 20, MAX_TOKENS = 1 << 27, MAX_TYPES = 65536 };

/* The class's default is 0.1 */
static float dropout(att_settings *s, const char *key)
{
    return att_settings_has(s, key) ? (float)att_settings_number(s, key, 0, 0.99) : 0.1f;
}

void att_bert_config_read(att_settings *s, att_bert_config *c)
{
    att_settings_only_text(s, "position_embedding_type", "absolute");
    att_settings_only_bool(s, "is_decoder", false);
    att_settings_only_bool(s, "add_cross_attention", false);
    att_settings_only_bool(s, "is_encoder_decoder", false);
    att_settings_only_empty(s, "pruned_heads");
    att_settings_only_empty(s, "quantization_config");
    c->vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    c->hidden = att_settings_int(s, "hidden_size", 1, MAX_FEATURES);
    c->layers = att_settings_int(s, "num_hidden_layers", 1, MAX_LAYERS);
    c->heads = att_settings_int(s, "num_attention_heads", 1, MAX_FEATURES);
    c->intermediate = att_settings_int(s, "intermediate_size", 1, 8 * MAX_FEATURES);
    c->max_positions = att_settings_int(s, "max_position_embeddings", 1, MAX_POSITIONS);
    c->types = att_settings_int(s, "type_vocab_size", 1, MAX_TYPES);
    c->eps = (float)att_settings_number(s, "layer_norm_eps", 0, 1);
    c->hidden_dropout = dropout(s, "hidden_dropout_prob");
    c->attention_dropout = dropout(s, "attention_probs_dropout_prob");
    c->activation = att_activation_read(s, "hidden_act", NULL);
    if (!s->status && c->hidden % c->heads != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"num_attention_heads\" is %d, which does not divide \"hidden_size\", %d",
                          (int)c->heads, (int)c->hidden);
}
