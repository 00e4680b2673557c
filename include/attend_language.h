/* attend_language.h - causal language models, which predict the next token.
 *
 * Chapters: 1 Models, 3 Chat.
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

/* A decoder-only Transformer that predicts the next token: Llama (Touvron et al. 2023) and what is built like it, the
 * classes LlamaForCausalLM, MistralForCausalLM (with a sliding window), Qwen2ForCausalLM and Qwen3ForCausalLM. RMS
 * norm before each sublayer, rotary positions, grouped heads, a gated feed-forward network. */
typedef struct att_language_model att_language_model;

typedef struct att_language_model_info {
    size_t size;
    const char *type; /* "llama", "mistral", "qwen2", "qwen3": valid as long as the model */
    int64_t vocabulary, hidden, layers, heads, kv_heads, head_dim, intermediate, max_positions;
    int64_t window; /* number of tokens that a token attends to, itself included; 0: all before it */
    bool tied;      /* the output layer has the weights of the embedding */
} att_language_model_info;

ATT_API att_status att_language_model_open(att_ctx *ctx, const char *folder, att_language_model **out);
ATT_API void att_language_model_free(att_language_model *m);
ATT_API att_status att_language_model_describe(const att_language_model *m, att_language_model_info *info);

/* What n sequences have had so far: the caches of all layers. dtype: of keys and values; 0: f32. */
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

/* ---- 3 Chat ------------------------------------------------------------- */

/* How a model was trained to read a conversation: what is written around messages. Published models have it as a Jinja
 * program; attend knows these formats: chatml (Qwen 2 and 2.5, SmolLM2), qwen3, llama2, llama3, llama3.1 (3.2, 3.3),
 * mistral-v0.1, mistral-v0.2, mistral-v1, mistral-v3, mistral-tekken, gemma, gemma3, phi3, phi3.5, phi3-v1, phi4-mini and
 * zephyr (TinyLlama). */
typedef struct att_chat_template att_chat_template;

/* Opens the chat template of a model folder (chat_template.jinja, or "chat_template" of tokenizer_config.json, where
 * "default" is used if it is a list) or of a .gguf file. name or NULL: one of the formats above, whatever the folder has.
 * The tokens "<s>" and "</s>" that a template writes are those of the folder, and the line of the system message that it
 * writes where a conversation has none is its own. A template with a date has today's. Errors: a template that is none of
 * these formats; there is none; a name that is unknown. */
ATT_API att_status att_chat_template_open(att_ctx *ctx, const char *folder, const char *name, att_chat_template **out);
ATT_API void att_chat_template_free(att_chat_template *t);
ATT_API const char *att_chat_template_name(const att_chat_template *t); /* "chatml"; NULL if t is NULL */

typedef struct att_chat_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *text; /* [bytes] */
    size_t bytes;
} att_chat_message;

/* The text of a conversation, messages [n], as apply_chat_template of `transformers` writes it. reply: it ends where the
 * answer of the model begins (add_generation_prompt). Errors: no message; an unknown role; roles that do not alternate,
 * or a system message, where the format has no such. */
ATT_API att_status att_chat_render(const att_chat_template *t, const att_chat_message *messages, int64_t n, bool reply,
                                   att_text *out);
ATT_API void att_chat_text_free(const att_chat_template *t, att_text *text);
/* The ids of that text, as `transformers` has them; but in the text of a message no special token is found: "<|im_end|>"
 * in it is text like any other. Special tokens that the tokenizer adds to a text are not added. */
ATT_API att_status att_chat_encode(const att_chat_template *t, const att_tokenizer *tokenizer,
                                   const att_chat_message *messages, int64_t n, bool reply, att_tokens *out);

#ifdef __cplusplus
}
#endif
#endif
