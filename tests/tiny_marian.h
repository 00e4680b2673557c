/* A tiny model of the class MarianMTModel, and one with its text, written for a test, with any part left out or wrong.
 * The weights are those of tests/golden/make_tiny_marian.py. */
#ifndef TINY_MARIAN_H
#define TINY_MARIAN_H

#include "marian_files.h"
#include "tiny_model.h"

enum {
    MARIAN_HIDDEN = 24,
    MARIAN_POSITIONS = 16,
    MARIAN_TOKENS = 30,
    MARIAN_ENCODER_LAYERS = 2,
    MARIAN_DECODER_LAYERS = 3,
    MARIAN_ENCODER_HEADS = 3,
    MARIAN_DECODER_HEADS = 4,
    MARIAN_ENCODER_INNER = 20,
    MARIAN_DECODER_INNER = 28
};

/* What there is beside the layers. */
typedef struct tiny_tables {
    int64_t tokens, target_tokens; /* target_tokens 0: one table for both */
    bool output;                   /* lm_head, else the target's table is the output's */
    bool no_bias;                  /* no final_logits_bias */
    bool copies;                   /* tables are there by further names too, and embed_positions, of other numbers */
} tiny_tables;

static inline void tiny_put_norm(tiny_file *f, const char *prefix, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s_layer_norm.", prefix, name);
    tiny_put_all(f, full, (const tiny_tensor[]){{"weight", 0, MARIAN_HIDDEN}, {"bias", 0, MARIAN_HIDDEN}}, 2);
}

static inline void tiny_put_attention(tiny_file *f, const char *prefix, const char *name)
{
    enum { H = MARIAN_HIDDEN };
    char full[96];
    snprintf(full, sizeof full, "%s%s.", prefix, name);
    static const tiny_tensor parts[] = {{"k_proj.weight", H, H},   {"k_proj.bias", 0, H},   {"v_proj.weight", H, H},
                                        {"v_proj.bias", 0, H},     {"q_proj.weight", H, H}, {"q_proj.bias", 0, H},
                                        {"out_proj.weight", H, H}, {"out_proj.bias", 0, H}};
    tiny_put_all(f, full, parts, sizeof parts / sizeof parts[0]);
    tiny_put_norm(f, prefix, name);
}

static inline void tiny_put_side(tiny_file *f, const char *side, int layers, int64_t inner, bool decoder)
{
    const tiny_tensor feed_forward[] = {{"fc1.weight", inner, MARIAN_HIDDEN},
                                        {"fc1.bias", 0, inner},
                                        {"fc2.weight", MARIAN_HIDDEN, inner},
                                        {"fc2.bias", 0, MARIAN_HIDDEN}};
    for (int i = 0; i < layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "model.%s.layers.%d.", side, i);
        tiny_put_attention(f, prefix, "self_attn");
        if (decoder)
            tiny_put_attention(f, prefix, "encoder_attn");
        tiny_put_all(f, prefix, feed_forward, 4);
        tiny_put_norm(f, prefix, "final");
    }
}

static inline void tiny_put_marian(tiny_file *f)
{
    const tiny_tables *m = f->how->model;
    const int64_t target = m->target_tokens ? m->target_tokens : m->tokens;
    if (!m->target_tokens)
        tiny_put(f, "model.shared.weight", m->tokens, MARIAN_HIDDEN);
    if (m->target_tokens || m->copies) {
        tiny_put(f, "model.encoder.embed_tokens.weight", m->tokens, MARIAN_HIDDEN);
        tiny_put(f, "model.decoder.embed_tokens.weight", target, MARIAN_HIDDEN);
    }
    if (m->copies) {
        tiny_put(f, "model.encoder.embed_positions.weight", MARIAN_POSITIONS, MARIAN_HIDDEN);
        tiny_put(f, "model.decoder.embed_positions.weight", MARIAN_POSITIONS, MARIAN_HIDDEN);
    }
    tiny_put_side(f, "encoder", MARIAN_ENCODER_LAYERS, MARIAN_ENCODER_INNER, false);
    tiny_put_side(f, "decoder", MARIAN_DECODER_LAYERS, MARIAN_DECODER_INNER, true);
    if (!m->no_bias)
        tiny_put(f, "final_logits_bias", 1, target);
    if (m->output || m->copies)
        tiny_put(f, "lm_head.weight", target, MARIAN_HIDDEN);
}

/* model.safetensors; how NULL: as it should be; tables NULL: those of the first golden */
static inline void marian_write_weights(const test_folder *folder, const tiny_weights *how, const tiny_tables *tables)
{
    tiny_weights w = how ? *how : (tiny_weights){0};
    w.model = tables ? tables : &(const tiny_tables){.tokens = MARIAN_TOKENS};
    tiny_write_tensors(folder, &w, tiny_put_marian);
}

/* config.json for a number of tokens, the last of them <pad>; the setting `key` is `value` (JSON), or is left out where
 * that is NULL. */
static inline void marian_write_config(const test_folder *folder, int64_t tokens, const char *key, const char *value)
{
    char size[24], pad[24];
    snprintf(size, sizeof size, "%lld", (long long)tokens);
    snprintf(pad, sizeof pad, "%lld", (long long)tokens - 1);
    const char *const settings[][2] = {{"model_type", "\"marian\""},
                                       {"vocab_size", size},
                                       {"d_model", "24"},
                                       {"encoder_layers", "2"},
                                       {"decoder_layers", "3"},
                                       {"encoder_attention_heads", "3"},
                                       {"decoder_attention_heads", "4"},
                                       {"encoder_ffn_dim", "20"},
                                       {"decoder_ffn_dim", "28"},
                                       {"max_position_embeddings", "16"},
                                       {"activation_function", "\"swish\""},
                                       {"scale_embedding", "true"},
                                       {"eos_token_id", "0"},
                                       {"pad_token_id", pad},
                                       {"decoder_start_token_id", pad},
                                       {"is_encoder_decoder", "true"},
                                       {"dropout", "0.1"}};
    tiny_write_settings(folder, "config.json", settings, sizeof settings / sizeof settings[0], key, value);
}

/* generation_config.json, likewise */
static inline void marian_write_generation(const test_folder *folder, int64_t tokens, const char *key,
                                           const char *value)
{
    char pad[24], banned[32];
    snprintf(pad, sizeof pad, "%lld", (long long)tokens - 1);
    snprintf(banned, sizeof banned, "[[%s]]", pad);
    const char *const settings[][2] = {
        {"bad_words_ids", banned}, {"bos_token_id", "0"},        {"decoder_start_token_id", pad},
        {"eos_token_id", "0"},     {"forced_eos_token_id", "0"}, {"max_length", "13"},
        {"num_beams", "4"},        {"pad_token_id", pad},        {"renormalize_logits", "false"}};
    tiny_write_settings(folder, "generation_config.json", settings, sizeof settings / sizeof settings[0], key, value);
}

/* A model as it should be. */
static inline test_folder tiny_marian(void)
{
    const test_folder f = folder_new();
    marian_write_config(&f, MARIAN_TOKENS, NULL, NULL);
    marian_write_weights(&f, NULL, NULL);
    return f;
}

/* Adds a model with its text to a folder; returns the number of tokens. */
static inline int64_t write_translator(att_ctx *ctx, const test_folder *f)
{
    const int64_t tokens = write_marian_files(ctx, f);
    marian_write_config(f, tokens, NULL, NULL);
    marian_write_generation(f, tokens, NULL, NULL);
    marian_write_weights(f, NULL, &(const tiny_tables){.tokens = tokens});
    return tokens;
}

static inline att_transformer *open_model(att_ctx *c, const test_folder *f)
{
    att_transformer *m;
    if (att_transformer_open(c, f->path, &m))
        fail_msg("%s", att_error(c));
    return m;
}

#endif
