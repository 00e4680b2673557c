/* Tiny models like Llama, written for a test: those of tests/golden/make_tiny_llama.py. */
#ifndef TINY_LLAMA_H
#define TINY_LLAMA_H

#include "tiny_model.h"

enum { LLAMA_VOCABULARY = 20, LLAMA_HIDDEN = 16, LLAMA_HEADS = 4, LLAMA_KV_HEADS = 2, LLAMA_INNER = 24 };

typedef struct tiny_llama {
    const char *name, *type;
    int head_dim, kv_heads; /* 0: LLAMA_KV_HEADS */
    int hidden, inner;      /* 0: LLAMA_HIDDEN, LLAMA_INNER */
    bool tied, qkv_bias, other_bias, qk_norm;
    bool result_norm; /* OLMo 2: norms of sublayers' results, and of all queries and keys */
    bool fused;       /* Phi-3 */
    const char *more; /* settings */
} tiny_llama;

static const tiny_llama tiny_llamas[] = {
    {.name = "llama", .type = "llama", .head_dim = 4, .more = ""},
    {.name = "llama3",
     .type = "llama",
     .head_dim = 4,
     .tied = true,
     .more = ", \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 100.0, \"factor\": 8.0, "
             "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 16}"},
    {.name = "linear",
     .type = "llama",
     .head_dim = 4,
     .qkv_bias = true,
     .other_bias = true,
     .more = ", \"attention_bias\": true, \"mlp_bias\": true, \"rope_theta\": 1000.0, "
             "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}"},
    {.name = "mistral", .type = "mistral", .head_dim = 6, .more = ", \"sliding_window\": 4, \"head_dim\": 6"},
    {.name = "qwen2", .type = "qwen2", .head_dim = 4, .tied = true, .qkv_bias = true, .more = ""},
    {.name = "qwen3", .type = "qwen3", .head_dim = 8, .qk_norm = true, .more = ", \"head_dim\": 8"},
    {.name = "olmo2", .type = "olmo2", .head_dim = 4, .result_norm = true, .more = ""},
    {.name = "phi3",
     .type = "phi3",
     .head_dim = 4,
     .fused = true,
     .more = ", \"sliding_window\": 6, \"rope_theta\": 1000.0, \"partial_rotary_factor\": 0.5"},
    {.name = "mistral_tied",
     .type = "mistral",
     .head_dim = 4,
     .kv_heads = 1,
     .tied = true,
     .more = ", \"sliding_window\": null"},
    {.name = "qwen2_untied", .type = "qwen2", .head_dim = 4, .kv_heads = 4, .qkv_bias = true, .more = ""},
    {.name = "qwen3_tied",
     .type = "qwen3",
     .head_dim = 128,
     .kv_heads = 4,
     .tied = true,
     .qk_norm = true,
     .more = ", \"head_dim\": 128"},
    {.name = "qwen2_window",
     .type = "qwen2",
     .head_dim = 4,
     .tied = true,
     .qkv_bias = true,
     .more = ", \"use_sliding_window\": true, \"sliding_window\": 4, \"max_window_layers\": 0"},
    {.name = "phi3_outer",
     .type = "phi3",
     .head_dim = 4,
     .fused = true,
     .more = ", \"partial_rotary_factor\": 0.5, \"rope_parameters\": {\"rope_theta\": 100.0}"},
};
enum { N_LLAMAS = sizeof tiny_llamas / sizeof tiny_llamas[0] };

static const tiny_llama *tiny_llama_writing; /* the model whose weights tiny_put_llama puts */

static inline void tiny_llama_linear(tiny_file *f, const char *name, int64_t out, int64_t in, bool bias)
{
    char text[160];
    snprintf(text, sizeof text, "%s.weight", name);
    tiny_put(f, text, out, in);
    snprintf(text, sizeof text, "%s.bias", name);
    if (bias)
        tiny_put(f, text, 0, out);
}

static inline int tiny_llama_hidden(const tiny_llama *m) { return m->hidden ? m->hidden : LLAMA_HIDDEN; }

static inline int tiny_llama_inner(const tiny_llama *m) { return m->inner ? m->inner : LLAMA_INNER; }

static inline int tiny_llama_kv_heads(const tiny_llama *m) { return m->kv_heads ? m->kv_heads : LLAMA_KV_HEADS; }

static inline void tiny_llama_layer(tiny_file *f, int layer)
{
    const tiny_llama *m = tiny_llama_writing;
    const int keys = tiny_llama_kv_heads(m) * m->head_dim, hidden = tiny_llama_hidden(m), inner = tiny_llama_inner(m);
    const struct {
        const char *name;
        int out, in;
        bool bias;
    } linear[] = {{"self_attn.q_proj", LLAMA_HEADS * m->head_dim, hidden, m->qkv_bias},
                  {"self_attn.k_proj", keys, hidden, m->qkv_bias},
                  {"self_attn.v_proj", keys, hidden, m->qkv_bias},
                  {"self_attn.o_proj", hidden, LLAMA_HEADS * m->head_dim, m->other_bias},
                  {"mlp.gate_proj", inner, hidden, m->other_bias},
                  {"mlp.up_proj", inner, hidden, m->other_bias},
                  {"mlp.down_proj", hidden, inner, m->other_bias}};
    const tiny_tensor norms[] = {{"input_layernorm.weight", 0, hidden},
                                 {"post_attention_layernorm.weight", 0, hidden},
                                 {"self_attn.q_norm.weight", 0, m->head_dim},
                                 {"self_attn.k_norm.weight", 0, m->head_dim}};
    char prefix[32], name[128];
    snprintf(prefix, sizeof prefix, "model.layers.%d.", layer);
    const tiny_tensor fused[] = {{"self_attn.qkv_proj.weight", LLAMA_HEADS * m->head_dim + 2 * keys, hidden},
                                 {"mlp.gate_up_proj.weight", 2 * inner, hidden}};
    const tiny_tensor results[] = {{"post_attention_layernorm.weight", 0, hidden},
                                   {"post_feedforward_layernorm.weight", 0, hidden},
                                   {"self_attn.q_norm.weight", 0, LLAMA_HEADS * m->head_dim},
                                   {"self_attn.k_norm.weight", 0, keys}};
    for (size_t i = 0; i < sizeof linear / sizeof linear[0]; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, linear[i].name);
        const bool whole = strstr(name, "o_proj") || strstr(name, "down_proj");
        if (whole || !m->fused)
            tiny_llama_linear(f, name, linear[i].out, linear[i].in, linear[i].bias);
    }
    tiny_put_all(f, prefix, fused, m->fused ? 2 : 0);
    if (m->result_norm)
        tiny_put_all(f, prefix, results, 4);
    else
        tiny_put_all(f, prefix, norms, m->qk_norm ? 4 : 2);
}

static inline void tiny_put_llama(tiny_file *f)
{
    const int hidden = tiny_llama_hidden(tiny_llama_writing);
    tiny_put(f, "model.embed_tokens.weight", LLAMA_VOCABULARY, hidden);
    for (int i = 0; i < 2; i++)
        tiny_llama_layer(f, i);
    tiny_put(f, "model.norm.weight", 0, hidden);
    if (!strcmp(tiny_llama_writing->type, "mistral")) /* a buffer of older folders, not used */
        tiny_put(f, "model.layers.0.self_attn.rotary_emb.inv_freq", 0, 2);
    if (!tiny_llama_writing->tied)
        tiny_put(f, "lm_head.weight", LLAMA_VOCABULARY, hidden);
}

static inline void tiny_llama_write_config(const test_folder *folder, const tiny_llama *m, const char *more)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"vocab_size\": 20, \"hidden_size\": %d, \"num_hidden_layers\": 2, "
             "\"num_attention_heads\": 4, \"num_key_value_heads\": %d, \"intermediate_size\": %d, "
             "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", "
             "\"tie_word_embeddings\": %s%s%s}",
             m->type, tiny_llama_hidden(m), tiny_llama_kv_heads(m), tiny_llama_inner(m), m->tied ? "true" : "false",
             m->more, more);
    folder_write(folder, "config.json", text);
}

static inline test_folder tiny_llama_folder(const tiny_llama *m, const tiny_weights *how)
{
    const test_folder folder = folder_new();
    tiny_llama_write_config(&folder, m, "");
    tiny_llama_writing = m;
    tiny_write_tensors(&folder, how, tiny_put_llama);
    return folder;
}

#endif
