#include "caption/captioner_config.h"
#include "attend_util.h"
#include "vision/vit_config.h"

#include <string.h>

/* Upper limits. Larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_LAYERS = 64, MAX_POSITIONS = 1 << 16, MAX_WORDS = 1 << 24 };
/* Limits of additive attention: to return its weights it has an identity matrix [locations, locations] beside the
 * features, and an attention plan has at most MAX_VALUES features of values. */
enum { MAX_LOCATIONS = 4096, MAX_VALUES = 65536 };

static const char *const encoders[] = {"cnn", "vit"};
static const char *const decoders[] = {"gru", "lstm", "transformer"};
static const char *const attentions[] = {"none", "additive"};

const char *att_captioner_decoder_name(const att_captioner_config *c) { return decoders[c->decoder]; }

/* ---- the encoder */

static void read_stages(att_settings *s, att_captioner_config *c)
{
    const json_t *list = att_settings_list(s, "channels", true);
    c->stages = (int64_t)json_array_size(list);
    if (!s->status && (c->stages < 1 || c->stages > ATT_IMAGE_CNN_MAX_STAGES))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"channels\" is %s, not a list of 1 to %d numbers",
                          att_json_show(list).text, ATT_IMAGE_CNN_MAX_STAGES);
    for (int64_t i = 0; !s->status && i < c->stages; i++) {
        const double channels = json_number_value(json_array_get(list, (size_t)i));
        c->stage[i] = channels >= 1 && channels <= MAX_FEATURES ? (int64_t)channels : 0;
        if (c->stage[i] < 1 || (double)c->stage[i] != channels)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"channels\" is %s, not a list of numbers of channels",
                              att_json_show(list).text);
    }
}

static void read_cnn(att_settings *s, att_captioner_config *c)
{
    att_vit_read_pair(s, "image_size", 96, c->image);
    c->channels = att_settings_int(s, "num_channels", 1, 4);
    read_stages(s, c);
    if (s->status)
        return;
    c->features = c->stage[c->stages - 1];
    for (int d = 0; d < 2; d++) {
        c->grid[d] = c->image[d] >> c->stages;
        if (c->grid[d] << c->stages != c->image[d])
            att_settings_fail(s, ATT_ERR_FORMAT, "\"image_size\" is %s, but %lld stages need a multiple of %lld",
                              att_json_show(att_settings_get(s, "image_size")).text, (long long)c->stages,
                              (long long)1 << c->stages);
    }
}

static void read_vit(att_settings *s, att_captioner_config *c)
{
    att_settings_need(s, "grid");
    att_vit_read_pair(s, "grid", 1, c->grid);
    c->features = att_settings_int(s, "encoder_hidden_size", 1, MAX_FEATURES);
}

/* ---- the decoder */

static void read_transformer(att_settings *s, att_captioner_config *c)
{
    c->attention = true;
    c->heads = att_settings_int(s, "num_attention_heads", 1, MAX_FEATURES);
    c->intermediate = att_settings_int(s, "intermediate_size", 1, 8 * MAX_FEATURES);
    if (!s->status && c->hidden % c->heads != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"hidden_size\" is %lld, which %lld heads cannot share",
                          (long long)c->hidden, (long long)c->heads);
}

static void read_recurrent(att_settings *s, att_captioner_config *c)
{
    c->attention = att_settings_choice(s, "attention", attentions, 2, "none or additive") == 1;
    c->gate = att_settings_bool(s, "gate", false);
    c->embedding = att_settings_int(s, "embedding_size", 1, MAX_FEATURES);
    if (!s->status && c->layers > ATT_NN_MAX_RECURRENT)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"num_layers\" is %lld, at most %d are supported",
                          (long long)c->layers, ATT_NN_MAX_RECURRENT);
    const int64_t locations = c->grid[0] * c->grid[1];
    if (!s->status && c->attention && locations > MAX_LOCATIONS)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "a grid of %lld x %lld has %lld locations, additive attention to at most "
                          "%d is supported",
                          (long long)c->grid[0], (long long)c->grid[1], (long long)locations, MAX_LOCATIONS);
    if (!s->status && c->attention && locations + c->hidden > MAX_VALUES)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"hidden_size\" is %lld, at most %lld is supported with %lld locations",
                          (long long)c->hidden, (long long)(MAX_VALUES - locations), (long long)locations);
    if (!s->status && c->gate && !c->attention)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"gate\" is true, but \"attention\" is \"none\"");
}

static void check_words(att_settings *s, const att_captioner_config *c)
{
    const struct {
        const char *key;
        int64_t n, max;
    } words[] = {{"unk_token_id", c->unknown, c->vocabulary - 1},
                 {"eos_token_id", c->end, c->vocabulary - 1},
                 {"presence", c->presence, c->vocabulary}};
    for (size_t i = 0; !s->status && i < sizeof words / sizeof words[0]; i++)
        if (words[i].n > words[i].max)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %lld, but \"vocab_size\" is %lld", words[i].key,
                              (long long)words[i].n, (long long)c->vocabulary);
    if (!s->status && c->unknown == c->end)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"unk_token_id\" and \"eos_token_id\" are both %lld", (long long)c->end);
}

void att_captioner_config_read(att_settings *s, att_captioner_config *c)
{
    *c = (att_captioner_config){0};
    c->encoder = (att_captioner_encoder)att_settings_choice(s, "encoder", encoders, 2, "cnn or vit");
    (c->encoder == ATT_CAPTIONER_CNN ? read_cnn : read_vit)(s, c);
    c->decoder =
        (att_captioner_decoder)att_settings_choice(s, "decoder", decoders, 3, "one of gru, lstm and transformer");
    c->hidden = att_settings_int(s, "hidden_size", 1, MAX_FEATURES);
    c->layers = att_settings_int(s, "num_layers", 1, MAX_LAYERS);
    c->vocabulary = att_settings_int(s, "vocab_size", 2, MAX_WORDS);
    c->max_positions = att_settings_int(s, "max_positions", 1, MAX_POSITIONS);
    c->unknown = att_settings_int(s, "unk_token_id", 0, MAX_WORDS);
    c->end = att_settings_int(s, "eos_token_id", 0, MAX_WORDS);
    c->presence = att_settings_int_or(s, "presence", 0, MAX_WORDS, 0);
    (c->decoder == ATT_CAPTIONER_TRANSFORMER ? read_transformer : read_recurrent)(s, c);
    check_words(s, c);
}

/* ---- writing */

static json_t *stages_json(const att_captioner_config *c)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < c->stages; i++)
        if (json_array_append_new(list, json_integer(c->stage[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *encoder_json(const att_captioner_config *c)
{
    return c->encoder == ATT_CAPTIONER_CNN
               ? json_pack("{s:s, s:[I, I], s:I, s:o}", "encoder", encoders[c->encoder], "image_size",
                           (json_int_t)c->image[0], (json_int_t)c->image[1], "num_channels", (json_int_t)c->channels,
                           "channels", stages_json(c))
               : json_pack("{s:s, s:[I, I], s:I}", "encoder", encoders[c->encoder], "grid", (json_int_t)c->grid[0],
                           (json_int_t)c->grid[1], "encoder_hidden_size", (json_int_t)c->features);
}

static json_t *decoder_json(const att_captioner_config *c)
{
    return c->decoder == ATT_CAPTIONER_TRANSFORMER
               ? json_pack("{s:I, s:I}", "num_attention_heads", (json_int_t)c->heads, "intermediate_size",
                           (json_int_t)c->intermediate)
               : json_pack("{s:s, s:b, s:I}", "attention", attentions[c->attention], "gate", c->gate, "embedding_size",
                           (json_int_t)c->embedding);
}

json_t *att_captioner_config_json(const att_captioner_config *c)
{
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "model_type", ATT_CAPTIONER_TYPE,
                             "decoder", decoders[c->decoder], "hidden_size", (json_int_t)c->hidden, "num_layers",
                             (json_int_t)c->layers, "vocab_size", (json_int_t)c->vocabulary, "max_positions",
                             (json_int_t)c->max_positions, "unk_token_id", (json_int_t)c->unknown, "eos_token_id",
                             (json_int_t)c->end, "presence", (json_int_t)c->presence);
    if (root && (json_object_update_new(root, encoder_json(c)) || json_object_update_new(root, decoder_json(c)))) {
        json_decref(root);
        root = NULL;
    }
    return root;
}
