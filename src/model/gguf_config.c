/* Converts the settings of a .gguf file to config.json and generation_config.json. */
#include "model/gguf_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 1024, MAX_FEATURES = 1 << 19, MAX_POSITIONS = 1 << 24, MAX_PAIRS = 512, KEY = 128 };

typedef struct reader reader;
typedef struct architecture {
    const char *name, *class;
    bool window, partial_rotary; /* of phi3 */
    void (*read)(reader *r);
} architecture;
static void read_gpt2(reader *r);
static void read_llama(reader *r);
static const architecture architectures[] = {
    {"gpt2", "GPT2LMHeadModel", .read = read_gpt2},
    {"llama", "LlamaForCausalLM", .read = read_llama},
    {"olmo2", "Olmo2ForCausalLM", .read = read_llama},
    {"phi3", "Phi3ForCausalLM", .window = true, .partial_rotary = true, .read = read_llama},
    {"qwen2", "Qwen2ForCausalLM", .read = read_llama},
    {"qwen3", "Qwen3ForCausalLM", .read = read_llama}};

struct reader {
    att_gguf *g;
    const architecture *a;
    json_t *root;
    char key[KEY];
};

/* Returns the key of a name: "llama.attention.head_count" for "attention.head_count". */
static const char *key_of(reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->a->name, name);
    return r->key;
}

static bool has(reader *r, const char *name) { return att_gguf_has(r->g, key_of(r, name)); }

static int64_t get_int(reader *r, const char *name, int64_t max) { return att_gguf_int(r->g, key_of(r, name), 1, max); }

static void set(reader *r, const char *name, json_t *value)
{
    if (json_object_set_new(r->root, name, value))
        att_gguf_fail(r->g, ATT_ERR_MEMORY, "out of memory");
}

/* Returns a number that was stored as f32 with as few digits as it needs: the double of 1e-05 rather than of
 * 9.99999975e-06. */
static json_t *short_number(double x)
{
    char text[32];
    double y = x;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        y = strtod(text, NULL);
        if ((float)y == (float)x)
            break;
    }
    return json_real(y);
}

static double get_number(reader *r, const char *name, double otherwise)
{
    const double x = att_gguf_number(r->g, key_of(r, name), otherwise);
    if (!isfinite(x))
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "\"%s\" is not a finite number", r->key);
    return isfinite(x) ? x : otherwise;
}

static const architecture *find_architecture(att_gguf *g)
{
    const char *type = att_gguf_text(g, "general.type", "model");
    if (strcmp(type, "model") != 0)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED,
                      "has a part of a model or something to add to one (\"general.type\" is "
                      "\"%.40s\"), not the model",
                      type);
    const char *name = att_gguf_text(g, "general.architecture", NULL);
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    att_gguf_fail(g, ATT_ERR_UNSUPPORTED,
                  "\"general.architecture\" is \"%.80s\", which is not supported; gpt2, llama, olmo2, phi3, qwen2 "
                  "and qwen3 are",
                  name);
    return &architectures[0];
}

/* ---- rotary positions */

/* Reads the factors by which frequencies are divided -> factor; returns their number. */
static int64_t read_factors(reader *r, int64_t head_dim, float factor[MAX_PAIRS])
{
    const att_gguf_tensor *t = att_gguf_find(r->g, "rope_freqs.weight");
    if (!t)
        return 0;
    if (t->elements != head_dim / 2 || t->elements > MAX_PAIRS || strcmp(t->type_name, "F32") != 0) {
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "tensor \"rope_freqs.weight\" has %lld numbers of type %s, not %lld of F32",
                      (long long)t->elements, t->type_name, (long long)head_dim / 2);
        return 0;
    }
    memcpy(factor, t->data, (size_t)t->elements * sizeof *factor);
    for (int64_t i = 0; i < t->elements; i++)
        if (!(factor[i] >= 1e-3F && factor[i] <= 1e6F))
            att_gguf_fail(r->g, ATT_ERR_FORMAT, "tensor \"rope_freqs.weight\" has %g, not a factor", (double)factor[i]);
    return t->elements;
}

/* Returns the factor of Llama 3.1 for a frequency, with its "low_freq_factor" 1, "high_freq_factor" 4 and context of
 * 8,192. */
static double llama3_factor(double frequency, double factor)
{
    const double turns = 8192 * frequency / (2 * 3.14159265358979323846);
    const double smooth = fmin(fmax((turns - 1) / (4 - 1), 0), 1);
    return 1 / (smooth + (1 - smooth) / factor);
}

static bool is_llama3(const float *factor, int64_t n, double base, double *largest)
{
    *largest = 0;
    for (int64_t i = 0; i < n; i++)
        *largest = fmax(*largest, (double)factor[i]);
    for (int64_t i = 0; i < n; i++) {
        const double want = llama3_factor(pow(base, -(double)i / (double)n), *largest);
        if (fabs((double)factor[i] - want) > 1e-4 * want)
            return false;
    }
    return true;
}

static json_t *factors_of(const float *factor, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, short_number((double)factor[i]));
    return list;
}

/* Returns the scaling of positions: its type, and the factor of "linear". As in llama.cpp, a factor without a type is
 * linear, and 0 stands for no scaling. */
static const char *read_scaling(reader *r, double *factor)
{
    const double attention = get_number(r, "rope.scaling.attn_factor", 1);
    if (attention != 1)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\" is %g, which is not supported; 1 is", r->key, attention);
    *factor = get_number(r, "rope.scaling.factor", 1);
    if (*factor == 0)
        *factor = 1;
    return att_gguf_text(r->g, key_of(r, "rope.scaling.type"), *factor != 1 ? "linear" : "none");
}

/* Sets the share of a head's features that are rotated. */
static void set_part(reader *r, json_t *rope, int64_t dims, int64_t head_dim)
{
    if (dims == head_dim)
        return;
    if (r->a->partial_rotary)
        json_object_set_new(rope, "partial_rotary_factor", short_number((double)dims / (double)head_dim));
    else
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED,
                      "\"%s.rope.dimension_count\" is not the size of heads, %lld: rotating a part of them is not "
                      "supported",
                      r->a->name, (long long)head_dim);
}

static void set_rotary(reader *r, int64_t head_dim)
{
    const int64_t dims = has(r, "rope.dimension_count") ? att_gguf_int(r->g, r->key, 1, head_dim) : head_dim;
    float factor[MAX_PAIRS];
    double largest, linear;
    const double base = get_number(r, "rope.freq_base", 10000);
    json_t *rope = json_pack("{s:o}", "rope_theta", short_number(base));
    const int64_t n = read_factors(r, dims, factor);
    set_part(r, rope, dims, head_dim);
    const char *type = read_scaling(r, &linear);
    if (n > 0 && strcmp(type, "none") != 0)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED,
                      "\"%s\" is \"%.80s\", which is not supported together with tensor \"rope_freqs.weight\"", r->key,
                      type);
    else if (n > 0 && is_llama3(factor, n, base, &largest))
        json_object_update_new(rope, json_pack("{s:s, s:o, s:f, s:f, s:i}", "rope_type", "llama3", "factor",
                                               short_number(largest), "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                                               "original_max_position_embeddings", 8192));
    else if (n > 0)
        json_object_update_new(rope, json_pack("{s:s, s:o}", "rope_type", "factors", "factors", factors_of(factor, n)));
    else if (strcmp(type, "linear") == 0)
        json_object_update_new(rope, json_pack("{s:s, s:o}", "rope_type", "linear", "factor", short_number(linear)));
    else if (strcmp(type, "none") == 0)
        json_object_set_new(rope, "rope_type", json_string("default"));
    else
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\" is \"%.80s\", which is not supported; none and linear are",
                      r->key, type);
    set(r, "rope_parameters", rope);
}

/* ---- config.json */

static void refuse_others(reader *r, int64_t head_dim, int64_t positions)
{
    if (has(r, "expert_count") && att_gguf_int(r->g, r->key, 0, 1 << 20) > 0)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\": mixtures of experts are not supported", r->key);
    if (has(r, "attention.value_length") && get_int(r, "attention.value_length", MAX_FEATURES) != head_dim)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\" is not the size of keys, %lld, which is not supported", r->key,
                      (long long)head_dim);
    if (!r->a->window && has(r, "attention.sliding_window") && att_gguf_int(r->g, r->key, 0, INT32_MAX) < positions &&
        att_gguf_int(r->g, r->key, 0, INT32_MAX) > 0)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\": a sliding window is not supported", r->key);
    if (has(r, "rope.scale_linear"))
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\" is an old setting, which is not supported", r->key);
}

/* Reads the number of tokens. */
static int64_t vocabulary_of(reader *r)
{
    const att_gguf_tensor *embedding = att_gguf_find(r->g, "token_embd.weight");
    if (!embedding)
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "there is no tensor \"token_embd.weight\"");
    return embedding ? embedding->dim[0] : 1;
}

static void set_sizes(reader *r)
{
    const int64_t hidden = get_int(r, "embedding_length", MAX_FEATURES);
    const int64_t heads = get_int(r, "attention.head_count", MAX_FEATURES);
    const int64_t kv_heads = has(r, "attention.head_count_kv") ? get_int(r, "attention.head_count_kv", heads) : heads;
    const int64_t head_dim =
        has(r, "attention.key_length") ? get_int(r, "attention.key_length", MAX_FEATURES) : hidden / heads;
    const int64_t positions = get_int(r, "context_length", MAX_POSITIONS);
    set(r, "vocab_size", json_integer(vocabulary_of(r)));
    set(r, "hidden_size", json_integer(hidden));
    set(r, "num_hidden_layers", json_integer(get_int(r, "block_count", MAX_LAYERS)));
    set(r, "num_attention_heads", json_integer(heads));
    set(r, "num_key_value_heads", json_integer(kv_heads));
    set(r, "head_dim", json_integer(head_dim));
    set(r, "intermediate_size", json_integer(get_int(r, "feed_forward_length", MAX_FEATURES)));
    set(r, "max_position_embeddings", json_integer(positions));
    if (!has(r, "attention.layer_norm_rms_epsilon"))
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "there is no \"%s\"", r->key);
    set(r, "rms_norm_eps", short_number(get_number(r, "attention.layer_norm_rms_epsilon", 0)));
    refuse_others(r, head_dim, positions);
    set_rotary(r, head_dim);
}

static void set_ids(reader *r)
{
    static const char *const keys[][2] = {{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                          {"eos_token_id", "tokenizer.ggml.eos_token_id"},
                                          {"pad_token_id", "tokenizer.ggml.padding_token_id"}};
    for (int i = 0; i < 3; i++)
        if (att_gguf_has(r->g, keys[i][1]))
            set(r, keys[i][0], json_integer(att_gguf_int(r->g, keys[i][1], 0, INT32_MAX)));
}

static void read_llama(reader *r)
{
    const char *name = r->a->name;
    set_sizes(r);
    set(r, "hidden_act", json_string("silu"));
    if (strcmp(name, "qwen2") != 0 && strcmp(name, "phi3") != 0) /* config.json does not state their biases */
        set(r, "attention_bias", json_boolean(att_gguf_find(r->g, "blk.0.attn_q.bias") != NULL));
    if (strcmp(name, "llama") == 0)
        set(r, "mlp_bias", json_boolean(att_gguf_find(r->g, "blk.0.ffn_up.bias") != NULL));
    if (!r->a->window)
        return;
    const int64_t window =
        has(r, "attention.sliding_window") ? att_gguf_int(r->g, r->key, 0, INT32_MAX) : 0; /* 0: none */
    set(r, "sliding_window", window ? json_integer(window) : json_null());
    set(r, "pad_token_id", json_null()); /* the class has a default beyond small vocabularies */
    if (has(r, "rope.scaling.original_context_length"))
        set(r, "original_max_position_embeddings", json_integer(att_gguf_int(r->g, r->key, 1, MAX_POSITIONS)));
}

static void read_gpt2(reader *r)
{
    static const struct {
        const char *name, *key;
        int64_t max;
    } sizes[] = {{"n_embd", "embedding_length", MAX_FEATURES},
                 {"n_layer", "block_count", MAX_LAYERS},
                 {"n_head", "attention.head_count", MAX_FEATURES},
                 {"n_inner", "feed_forward_length", MAX_FEATURES},
                 {"n_positions", "context_length", MAX_POSITIONS}};
    set(r, "vocab_size", json_integer(vocabulary_of(r)));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        set(r, sizes[i].name, json_integer(get_int(r, sizes[i].key, sizes[i].max)));
    if (!has(r, "attention.layer_norm_epsilon"))
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "there is no \"%s\"", r->key);
    set(r, "layer_norm_epsilon", short_number(get_number(r, "attention.layer_norm_epsilon", 0)));
    set(r, "activation_function", json_string("gelu_new"));
}

att_status att_gguf_config(att_gguf *g, json_t **root)
{
    reader r = {.g = g, .a = find_architecture(g), .root = json_object()};
    set(&r, "architectures", json_pack("[s]", r.a->class));
    set(&r, "model_type", json_string(r.a->name));
    r.a->read(&r);
    set_ids(&r);
    set(&r, "tie_word_embeddings", json_boolean(!att_gguf_find(g, "output.weight")));
    if (att_gguf_error(g))
        json_decref(r.root), r.root = NULL;
    *root = r.root;
    return att_gguf_error(g);
}

/* Adds the ends of a message ("eot", "eom"), which end a text, too. */
static void add_end(reader *r, const char *key)
{
    if (!att_gguf_has(r->g, key))
        return;
    const int64_t id = att_gguf_int(r->g, key, 0, INT32_MAX);
    json_t *end = json_object_get(r->root, "eos_token_id");
    if (!end)
        set(r, "eos_token_id", json_integer(id));
    else if (json_is_array(end) && json_array_append_new(end, json_integer(id)))
        att_gguf_fail(r->g, ATT_ERR_MEMORY, "out of memory");
    else if (!json_is_array(end) && json_integer_value(end) != id)
        set(r, "eos_token_id", json_pack("[I, I]", json_integer_value(end), (json_int_t)id));
}

/* Adds how tokens are sampled, if the file has any key about it. Without general.sampling.temp the temperature is 1. */
static void set_sampling(reader *r)
{
    static const char *const numbers[][2] = {
        {"temperature", "temp"}, {"top_p", "top_p"}, {"min_p", "min_p"}, {"repetition_penalty", "penalty_repeat"}};
    static const struct {
        const char *name;
        double only;
    } others[] = {{"xtc_probability", 0}, {"mirostat", 0}};
    char key[64];
    bool any = false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "general.sampling.%s", numbers[i][1]);
        if (!att_gguf_has(r->g, key))
            continue;
        set(r, numbers[i][0], short_number(att_gguf_number(r->g, key, 1)));
        any = true;
    }
    if (att_gguf_has(r->g, "general.sampling.top_k")) {
        set(r, "top_k", json_integer(att_gguf_int(r->g, "general.sampling.top_k", 0, INT32_MAX)));
        any = true;
    }
    if (any)
        set(r, "do_sample", json_true());
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(key, sizeof key, "general.sampling.%s", others[i].name);
        const double value = att_gguf_number(r->g, key, others[i].only);
        if (value != others[i].only)
            att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED, "\"%s\" is %g, which is not supported; %g is", key, value,
                          others[i].only);
    }
}

att_status att_gguf_generation_config(att_gguf *g, json_t **root)
{
    reader r = {.g = g, .root = json_object()};
    set_ids(&r);
    add_end(&r, "tokenizer.ggml.eot_token_id");
    add_end(&r, "tokenizer.ggml.eom_token_id");
    set_sampling(&r);
    if (att_gguf_error(g))
        json_decref(r.root), r.root = NULL;
    *root = r.root;
    return att_gguf_error(g);
}
