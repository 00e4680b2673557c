#include "translate/marian_config.h"

#include <string.h>

/* Upper limits. Larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 20, MAX_TOKENS = 1 << 27 };

/* The names of activations. The first name of each is written. */
static const struct {
    const char *name;
    att_activation activation;
} activations[] = {{"swish", ATT_ACTIVATION_SILU},         {"silu", ATT_ACTIVATION_SILU},
                   {"relu", ATT_ACTIVATION_RELU},          {"gelu", ATT_ACTIVATION_GELU_ERF},
                   {"gelu_new", ATT_ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", ATT_ACTIVATION_GELU_TANH},
                   {"tanh", ATT_ACTIVATION_TANH}};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };

static att_activation activation(att_settings *s)
{
    const char *name = att_settings_text(s, "activation_function", "gelu");
    for (int i = 0; i < N_ACTIVATIONS; i++)
        if (!strcmp(activations[i].name, name))
            return activations[i].activation;
    att_settings_unsupported(s, "activation_function", "one of swish, silu, relu, gelu, gelu_new and tanh");
    return ATT_ACTIVATION_IDENTITY;
}

static void read_side(att_settings *s, const char *side, int64_t hidden, int64_t *layers, int64_t *heads,
                      int64_t *intermediate)
{
    char key[64];
    const struct {
        const char *name;
        int64_t *to, max;
    } sizes[] = {{"layers", layers, MAX_LAYERS},
                 {"attention_heads", heads, MAX_FEATURES},
                 {"ffn_dim", intermediate, 8 * MAX_FEATURES}};
    for (int i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "%s_%s", side, sizes[i].name);
        *sizes[i].to = att_settings_int(s, key, 1, sizes[i].max);
    }
    if (!s->status && hidden % *heads != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s_attention_heads\" is %d, which does not divide \"d_model\", %d",
                          side, (int)*heads, (int)hidden);
}

void att_marian_config_read(att_settings *s, att_marian_config *c)
{
    att_settings_only_bool(s, "is_encoder_decoder", true);
    att_settings_only_bool(s, "normalize_before", false);
    att_settings_only_bool(s, "normalize_embedding", false);
    att_settings_only_bool(s, "add_final_layer_norm", false);
    att_settings_only_bool(s, "static_position_embeddings", true);
    att_settings_only_empty(s, "quantization_config");
    c->source_vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    c->target_vocabulary = c->source_vocabulary;
    if (att_settings_has(s, "decoder_vocab_size"))
        c->target_vocabulary = att_settings_int(s, "decoder_vocab_size", 1, MAX_TOKENS);
    c->hidden = att_settings_int(s, "d_model", 2, MAX_FEATURES);
    c->max_positions = att_settings_int(s, "max_position_embeddings", 1, MAX_POSITIONS);
    read_side(s, "encoder", c->hidden, &c->encoder.layers, &c->encoder.heads, &c->encoder.intermediate);
    read_side(s, "decoder", c->hidden, &c->decoder.layers, &c->decoder.heads, &c->decoder.intermediate);
    c->activation = activation(s);
    c->scale_embedding = att_settings_bool(s, "scale_embedding", false);
    c->share = att_settings_bool(s, "share_encoder_decoder_embeddings", true);
    c->tie = att_settings_bool(s, "tie_word_embeddings", true);
    c->pad = att_settings_int(s, "pad_token_id", 0, c->target_vocabulary - 1);
    c->eos = att_settings_int(s, "eos_token_id", 0, c->target_vocabulary - 1);
    c->start = att_settings_int(s, "decoder_start_token_id", 0, c->target_vocabulary - 1);
    if (!s->status && c->hidden % 2 != 0)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"d_model\" is %d, but sine and cosine positions take two equal halves", (int)c->hidden);
    if (!s->status && c->share && c->source_vocabulary != c->target_vocabulary)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"share_encoder_decoder_embeddings\" is true, but \"vocab_size\" is %d and "
                          "\"decoder_vocab_size\" %d",
                          (int)c->source_vocabulary, (int)c->target_vocabulary);
}

/* ---- writing */

static const char *activation_name(att_activation a)
{
    for (int i = 0; i < N_ACTIVATIONS; i++)
        if (activations[i].activation == a)
            return activations[i].name;
    return "none"; /* the reader refuses it */
}

json_t *att_marian_config_json(const att_marian_config *c)
{
    json_t *root = json_pack("{s:[s], s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "architectures",
                             "MarianMTModel", "model_type", ATT_MARIAN_TYPE, "dtype", "float32", "activation_function",
                             activation_name(c->activation), "is_encoder_decoder", true, "static_position_embeddings",
                             true, "normalize_before", false, "normalize_embedding", false, "add_final_layer_norm",
                             false, "scale_embedding", c->scale_embedding, "share_encoder_decoder_embeddings", c->share,
                             "tie_word_embeddings", c->tie);
    const struct {
        const char *key;
        int64_t value;
    } wholes[] = {{"vocab_size", c->source_vocabulary},
                  {"decoder_vocab_size", c->target_vocabulary},
                  {"d_model", c->hidden},
                  {"encoder_layers", c->encoder.layers},
                  {"encoder_attention_heads", c->encoder.heads},
                  {"encoder_ffn_dim", c->encoder.intermediate},
                  {"decoder_layers", c->decoder.layers},
                  {"decoder_attention_heads", c->decoder.heads},
                  {"decoder_ffn_dim", c->decoder.intermediate},
                  {"max_position_embeddings", c->max_positions},
                  {"pad_token_id", c->pad},
                  {"eos_token_id", c->eos},
                  {"forced_eos_token_id", c->eos},
                  {"decoder_start_token_id", c->start}};
    int failed = !root;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        failed |= json_object_set_new(root, wholes[i].key, json_integer(wholes[i].value));
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}

att_marian_config att_marian_config_default(int64_t vocabulary)
{
    return (att_marian_config){.source_vocabulary = vocabulary,
                               .target_vocabulary = vocabulary,
                               .hidden = 256,
                               .max_positions = 512,
                               .encoder = {.layers = 3, .heads = 4, .intermediate = 1024},
                               .decoder = {.layers = 3, .heads = 4, .intermediate = 1024},
                               .activation = ATT_ACTIVATION_RELU,
                               .scale_embedding = true,
                               .share = true,
                               .tie = true,
                               .pad = vocabulary - 1,
                               .start = vocabulary - 1};
}
