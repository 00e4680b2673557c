/* attend_language.h - causal language models, which predict the next token.
 *
 * Chapters: 1 Models, 2 Conversion.
 *
 * A model is a folder in the format in which it is published, as in attend_model.h, whose rules for names, files and
 * threads hold here, too. Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_LANGUAGE_H
#define ATTEND_LANGUAGE_H

#include "attend_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Models ----------------------------------------------------------- */

/* A decoder-only Transformer that predicts the next token:
 *   GPT-2 (Radford et al. 2019), the class GPT2LMHeadModel: layer norm before each sublayer, learned positions.
 *   Llama (Touvron et al. 2023) and what is built like it, the classes LlamaForCausalLM, MistralForCausalLM (with a
 *   sliding window), Olmo2ForCausalLM (norms after each sublayer), Phi3ForCausalLM, Qwen2ForCausalLM and
 *   Qwen3ForCausalLM: RMS norm before each sublayer, rotary positions, grouped heads, a gated feed-forward network. */
typedef struct att_language_model att_language_model;

typedef struct att_language_model_info {
    size_t size;
    const char *type; /* "gpt2", "llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3": valid as long as the model */
    int64_t vocabulary, hidden, layers, heads, kv_heads, head_dim, intermediate, max_positions;
    int64_t window; /* number of tokens that a token attends to, itself included; 0: all before it */
    bool tied;      /* the output layer has the weights of the embedding */
} att_language_model_info;

/* folder: weights in model.safetensors, or in the files that model.safetensors.index.json lists. Also the path of a
 * .gguf file of llama.cpp, or a folder with one and no config.json: its architecture is llama, qwen2 or qwen3; its
 * weights, F32, F16, BF16, Q8_0, Q4_0 or Q4_1, become f32. */
ATT_API att_status att_language_model_open(att_ctx *ctx, const char *folder, att_language_model **out);
ATT_API void att_language_model_free(att_language_model *m);
ATT_API att_status att_language_model_describe(const att_language_model *m, att_language_model_info *info);

/* What n sequences have had so far: the caches of all layers. dtype, of keys and values: ATT_F32, ATT_F16 or ATT_BF16,
 * which take half the memory. */
typedef struct att_language_state att_language_state;
ATT_API att_status att_language_state_new(const att_language_model *m, int64_t n, att_dtype dtype,
                                          att_language_state **out);
ATT_API void att_language_state_free(att_language_state *s);
/* Tokens of a sequence so far; -1 where there is no such one. */
ATT_API int64_t att_language_state_length(const att_language_state *s, int64_t sequence);
/* As att_cache_truncate and att_cache_select, in all layers. After an error the state cannot be used. */
ATT_API att_status att_language_state_truncate(att_language_state *s, int64_t sequence, int64_t length);
ATT_API att_status att_language_state_select(att_language_state *s, int64_t n, const int64_t *from);

/* Logits of the token after each of n sequences, concatenated: ids [offsets[n]], offsets [n + 1] ascending from 0 ->
 * [offsets[n], vocabulary]; with last_only after the last token of each sequence alone -> [n, vocabulary], where none
 * may be empty. state or NULL: the sequences follow what the state has, which then has them, too; f32 gives the bits of
 * a full pass. Errors: more tokens than the model has positions. After an error truncate the state. */
ATT_API att_var *att_language_model_apply(att_tape *t, const att_language_model *m, const int32_t *ids,
                                          const int64_t *offsets, int64_t n, att_language_state *state, bool last_only);

/* ---- 2 Conversion ------------------------------------------------------- */

typedef struct att_gguf_options {
    size_t size;
    att_dtype dtype; /* of the weights: ATT_F16, ATT_BF16; 0: f32 */
} att_gguf_options;
/* Writes the model in a .gguf file (or in a folder with one) as a folder that `transformers` opens: config.json,
 * generation_config.json, model.safetensors, tokenizer.json, tokenizer_config.json, and chat_template.jinja if the file
 * has a template. The folder appears completely or not at all: it is written as FOLDER.unfinished. options or NULL:
 * defaults. Errors: a folder that is not empty; what opening the model and its tokenizer may find; a setting that
 * config.json cannot say. */
ATT_API att_status att_gguf_convert(att_ctx *ctx, const char *file, const char *folder,
                                    const att_gguf_options *options);

#ifdef __cplusplus
}
#endif
#endif
