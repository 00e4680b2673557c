#include "stack/llama_config.h"

#include <string.h>

enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 24, MAX_TOKENS = 1 << 22 };

enum { DEFAULT_WINDOW = 4096, DEFAULT_HEAD_DIM = 128 }; /* defaults of classes */

/* The differences between families: properties that config.json does not state, and defaults of the class for missing
 * keys. */
typedef struct family {
    const char *type;
    enum { BIAS_BY_SETTING, BIAS_OF_QKV, NO_BIAS } bias;        /* of attention */
    enum { NO_WINDOW, WINDOW, WINDOW_OF_LATE_LAYERS } window;   /* which layers slide */
    int64_t default_window, default_kv_heads, default_head_dim; /* 0: none, all heads, hidden / heads */
    bool mlp_bias, fused, partial_rotary;                       /* mlp_bias: whether it is a setting */
    att_nn_qk_norm qk_norm;
    att_nn_order order;
} family;

static const family families[] = {
    {.type = "llama", .mlp_bias = true, .order = ATT_NN_ORDER_PRE_NORM},
    {.type = "mistral",
     .bias = NO_BIAS,
     .window = WINDOW,
     .default_window = DEFAULT_WINDOW,
     .default_kv_heads = 8,
     .order = ATT_NN_ORDER_PRE_NORM},
    {.type = "olmo2", .qk_norm = ATT_NN_QK_NORM_ROW, .order = ATT_NN_ORDER_RESULT_NORM},
    {.type = "phi3",
     .bias = NO_BIAS,
     .window = WINDOW,
     .fused = true,
     .partial_rotary = true,
     .order = ATT_NN_ORDER_PRE_NORM},
    {.type = "qwen2",
     .bias = BIAS_OF_QKV,
     .window = WINDOW_OF_LATE_LAYERS,
     .default_window = DEFAULT_WINDOW,
     .default_kv_heads = 32,
     .order = ATT_NN_ORDER_PRE_NORM},
    {.type = "qwen3",
     .window = WINDOW_OF_LATE_LAYERS,
     .default_window = DEFAULT_WINDOW,
     .default_kv_heads = 32,
     .default_head_dim = DEFAULT_HEAD_DIM,
     .qk_norm = ATT_NN_QK_NORM_HEAD,
     .order = ATT_NN_ORDER_PRE_NORM},
};

const att_model_types att_llama_types = ATT_MODEL_TYPES(families);

/* ---- rotary positions */

/* Newer files have "rope_parameters", older ones "rope_scaling"; "rope_theta" and "partial_rotary_factor" are in it, or
 * else beside it. */
static void read_rotary(att_settings *s, const family *f, att_llama_config *c)
{
    const bool newer = att_settings_has(s, "rope_parameters");
    const char *key = newer ? "rope_parameters" : "rope_scaling";
    const bool scaled = att_settings_has(s, key);
    att_settings_scope before = {0};
    double base = att_settings_number_or(s, "rope_theta", 1, 1e12, 10000);
    double part = att_settings_number_or(s, "partial_rotary_factor", 0, 1, 1);
    if (newer)
        att_settings_only_empty(s, "rope_scaling"); /* otherwise both would state the scaling */
    if (scaled) {
        before = att_settings_enter(s, key);
        base = att_settings_number_or(s, "rope_theta", 1, 1e12, base);
        part = att_settings_number_or(s, "partial_rotary_factor", 0, 1, part);
    }
    c->rotary_base = base;
    c->scaling = (att_rotary_scaling){.type = "default", .factor = 1};
    c->rotary_dims = (int64_t)((double)c->head_dim * part);
    if (!s->status && part != 1 && !f->partial_rotary)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"partial_rotary_factor\" is %g, which is not supported; 1 is",
                          part);
    if (!s->status && (c->rotary_dims < 2 || c->rotary_dims % 2))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"partial_rotary_factor\" is of %d of a head's %d features; an even "
                          "number from 2 on is supported",
                          (int)c->rotary_dims, (int)c->head_dim);
    att_rotary_frequencies(base, c->rotary_dims, c->frequency);
    if (scaled) {
        c->scaling = att_rotary_scale(s, c->frequency, c->rotary_dims / 2);
        att_settings_leave(s, before);
    }
}

/* ---- all */

/* Reads "layer_types", which must be the same for all layers. Returns it, or `otherwise` if it is missing. */
static const char *read_layer_types(att_settings *s, const att_llama_config *c, const char *otherwise)
{
    const json_t *types = att_settings_list(s, "layer_types", false);
    const char *first = types ? json_string_value(json_array_get(types, 0)) : otherwise;
    bool good = first && (!types || (int64_t)json_array_size(types) == c->layers) &&
                (!strcmp(first, "full_attention") || !strcmp(first, "sliding_attention"));
    for (size_t i = 1; good && i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        good = type && !strcmp(type, first);
    }
    if (!good)
        att_settings_unsupported(s, "layer_types", "the same attention in all layers");
    return good ? first : otherwise;
}

/* Returns whether layers slide. Without "layer_types", those from "max_window_layers" on do; these must be all layers
 * or none. */
static bool late_layers_slide(att_settings *s, const att_llama_config *c)
{
    const int64_t first = att_settings_int_or(s, "max_window_layers", 0, INT32_MAX, 28);
    if (!att_settings_has(s, "layer_types") && first > 0 && first < c->layers)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"use_sliding_window\" is true and \"max_window_layers\" %d, so of %d layers only some "
                          "slide, which is not supported; all or none is",
                          (int)first, (int)c->layers);
    return !strcmp(read_layer_types(s, c, first == 0 ? "sliding_attention" : "full_attention"), "sliding_attention");
}

/* Reads the window. If the key is missing, the class has a default; null means none. */
static void read_window(att_settings *s, const family *f, att_llama_config *c)
{
    const int64_t missing = att_settings_has_key(s, "sliding_window") ? 0 : f->default_window;
    const bool late = f->window == WINDOW_OF_LATE_LAYERS;
    const bool used = late ? att_settings_bool(s, "use_sliding_window", false) : f->window == WINDOW;
    const int64_t window = used ? att_settings_int_or(s, "sliding_window", 1, INT32_MAX, missing) : 0;
    if (late && window) {
        c->window = late_layers_slide(s, c) ? window : 0;
        return;
    }
    c->window = window;
    const char *type = window ? "sliding_attention" : "full_attention";
    if (strcmp(read_layer_types(s, c, type), type) != 0)
        att_settings_unsupported(s, "layer_types", type);
}

static void read_heads(att_settings *s, const family *f, att_llama_config *c)
{
    const bool absent = f->default_kv_heads && !att_settings_has_key(s, "num_key_value_heads");
    const int64_t features = f->default_head_dim ? f->default_head_dim : s->status ? 1 : c->hidden / c->heads;
    c->kv_heads =
        att_settings_int_or(s, "num_key_value_heads", 1, MAX_FEATURES, absent ? f->default_kv_heads : c->heads);
    c->head_dim = att_settings_int_or(s, "head_dim", 1, ATT_MAX_HEAD_DIM, features);
    if (!s->status && c->heads % c->kv_heads)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"num_key_value_heads\" is %d%s, which does not divide "
                          "\"num_attention_heads\", %d",
                          (int)c->kv_heads, absent ? " where it is missing" : "", (int)c->heads);
    if (!s->status && (c->head_dim % 2 || c->head_dim > ATT_MAX_HEAD_DIM || c->head_dim < 2))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "heads of %d features are not supported; an even number up to %d is",
                          (int)c->head_dim, ATT_MAX_HEAD_DIM);
}

void att_llama_config_read(att_settings *s, att_llama_config *c)
{
    const family *f = att_model_type_find(&att_llama_types, att_settings_text(s, "model_type", NULL));
    if (s->status)
        return;
    c->type = f->type;
    c->vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    c->hidden = att_settings_int(s, "hidden_size", 1, MAX_FEATURES);
    c->layers = att_settings_int(s, "num_hidden_layers", 1, MAX_LAYERS);
    c->heads = att_settings_int(s, "num_attention_heads", 1, MAX_FEATURES);
    c->intermediate = att_settings_int(s, "intermediate_size", 1, 8 * MAX_FEATURES);
    c->max_positions = att_settings_int(s, "max_position_embeddings", 1, MAX_POSITIONS);
    c->eps = (float)att_settings_number(s, "rms_norm_eps", 0, 1);
    att_settings_only_text(s, "hidden_act", "silu");
    att_settings_only_empty(s, "quantization_config");
    c->tied = att_settings_bool(s, "tie_word_embeddings", false);
    c->bidirectional = !att_settings_bool(s, "is_causal", true);
    c->mlp_bias = f->mlp_bias && att_settings_bool(s, "mlp_bias", false);
    c->output_bias = f->bias == BIAS_BY_SETTING && att_settings_bool(s, "attention_bias", false);
    c->qkv_bias = f->bias == BIAS_OF_QKV || c->output_bias;
    c->qk_norm = f->qk_norm;
    c->order = f->order;
    c->fused = f->fused;
    read_heads(s, f, c);
    if (!s->status)
        read_rotary(s, f, c);
    read_window(s, f, c);
}
