#include "stack/encoder_config.h"
#include "stack/rotary_config.h"

/* Upper limits; larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 24, MAX_TOKENS = 1 << 27 };

const att_encoder_keys att_encoder_usual_keys = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                                 "intermediate_size", "max_position_embeddings"};

void att_encoder_config_read(att_settings *s, const att_encoder_keys *keys, att_encoder_info *out)
{
    out->vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    out->hidden = att_settings_int(s, keys->hidden, 1, MAX_FEATURES);
    out->layers = att_settings_int(s, keys->layers, 1, MAX_LAYERS);
    out->heads = att_settings_int(s, keys->heads, 1, MAX_FEATURES);
    out->intermediate = att_settings_int(s, keys->intermediate, 1, 8 * MAX_FEATURES);
    out->max_positions = att_settings_int(s, keys->positions, 1, MAX_POSITIONS);
    att_settings_only_empty(s, "quantization_config");
}

int64_t att_encoder_head_dim(att_settings *s, const att_encoder_keys *keys, const att_encoder_info *c, int64_t given)
{
    if (!s->status && !given && c->hidden % c->heads)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %d, which does not divide \"%s\", %d", keys->heads,
                          (int)c->heads, keys->hidden, (int)c->hidden);
    const int64_t dim = s->status || given ? given : c->hidden / c->heads;
    if (!s->status && (dim % 2 || dim > ATT_MAX_HEAD_DIM))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "heads of %d features are not supported; an even number up to %d is",
                          (int)dim, ATT_MAX_HEAD_DIM);
    return s->status ? 0 : dim;
}
