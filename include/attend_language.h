/* attend_language.h - causal language models, which predict the next token.
 *
 * Chapters: 1 Models, 2 Generation, 3 Chat, 4 Evaluation, 5 Conversion.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
#ifndef ATTEND_LANGUAGE_H
#define ATTEND_LANGUAGE_H

#include "attend_model.h"
#include "attend_trace.h"

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

/* A model is a folder whose weights are in model.safetensors, or in the files that model.safetensors.index.json lists.
 * It may also be a .gguf file of llama.cpp, or a folder with one and no config.json: its architecture must be gpt2,
 * llama, olmo2, phi3, qwen2 or qwen3, and its weights F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0,
 * Q3_K, Q2_K, IQ4_NL or IQ4_XS. */
/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_language_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                           att_language_model **out);
ATT_API void att_language_model_free(att_language_model *m);
ATT_API att_status att_language_model_describe(const att_language_model *m, att_language_model_info *info);
ATT_API att_status att_language_model_weights(const att_language_model *m, att_model_weights *weights);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_language_model_params(const att_language_model *m);

/* The state of n sequences: the caches of all layers. dtype is that of keys and values: ATT_F32, or ATT_F16 or
 * ATT_BF16, which use half the memory. */
typedef struct att_language_state att_language_state;
ATT_API att_status att_language_state_new(const att_language_model *m, int64_t n, att_dtype dtype,
                                          att_language_state **out);
ATT_API void att_language_state_free(att_language_state *s);
/* Returns the bytes of memory of its caches (att_cache_bytes). s or NULL: 0. */
ATT_API size_t att_language_state_bytes(const att_language_state *s);
/* Returns the number of tokens of a sequence; -1 if there is no such sequence. */
ATT_API int64_t att_language_state_length(const att_language_state *s, int64_t sequence);
/* Truncate a sequence and select sequences in all layers, as att_cache_truncate and att_cache_select do. After an error
 * the state must not be used. */
ATT_API att_status att_language_state_truncate(att_language_state *s, int64_t sequence, int64_t length);
ATT_API att_status att_language_state_select(att_language_state *s, int64_t n, const int64_t *from);

typedef struct att_language_model_options {
    size_t size;
    bool last_only; /* only logits after the last token of each sequence, so none may be empty */
} att_language_model_options;
/* Computes logits of the next token after each token of n sequences, concatenated: ids [offsets[n]], offsets [n + 1]
 * ascending from 0 -> [offsets[n], vocabulary], with last_only [n, vocabulary]. state or NULL: the sequences continue
 * those of the state and are appended to it; f32 has the bits of a full pass. options or NULL: defaults. Errors: more
 * tokens than the model has positions. After an error truncate the state. */
ATT_API att_var *att_language_model_apply(att_tape *t, const att_language_model *m, const int32_t *ids,
                                          const int64_t *offsets, int64_t n, att_language_state *state,
                                          const att_language_model_options *options);

/* Applies the last norm and the output layer to hidden states: x [rows, hidden] -> logits [rows, vocabulary]. Applied
 * to the result of a layer before the last one, it is the logit lens (nostalgebraist 2020). */
ATT_API att_var *att_language_model_head(att_tape *t, const att_language_model *m, att_var *x);

/* Computes the loss of a causal language model without storing the logits: the cross entropy of targets [offsets[n]],
 * each the token that follows that of ids -> [1]. ids, offsets [n + 1], n and errors are as for
 * att_language_model_apply. Negative targets are ignored. options or NULL: as in att_cross_entropy. */
ATT_API att_var *att_language_model_loss(att_tape *t, const att_language_model *m, const int32_t *ids,
                                         const int64_t *offsets, int64_t n, const int32_t *targets,
                                         const att_cross_entropy_options *options);

/* ---- 2 Generation ------------------------------------------------------- */

/* A language model with the tokenizer and the generation settings of its folder. Read-only: many threads may use it at
 * once. */
typedef struct att_text_generator att_text_generator;

/* A bias, which is added to the logit of a token: -infinity forbids the token, and 100 makes it almost certain. */
typedef struct att_logit_bias {
    int32_t id;
    float bias; /* -infinity, or in [-100, 100] */
} att_logit_bias;

/* How the next token is chosen, as in `transformers` and vLLM. These steps follow one another: the bias; the repetition
 * penalty (Keskar et al. 2019) for each id in the prompt or the generated text; the presence and the frequency penalty,
 * as OpenAI's interface defines them, for each id in the generated text. If `sample`, then temperature, top-k, top-p,
 * min-p, and a random token of those that remain; otherwise the most probable token. */
typedef struct att_sampling {
    size_t size;
    bool sample;
    float temperature;        /* divides the logits; 0: 1 */
    int64_t top_k;            /* only the k most probable tokens, and those as probable as the k-th; 0: all */
    float top_p;              /* only the most probable tokens whose probabilities sum to this or just beyond; 0: 1 */
    float min_p;              /* only tokens with this share of the largest probability; 0: all */
    float repetition_penalty; /* positive logits are divided by it, negative ones multiplied; 0: 1 */
    /* In [-2, 2]. The presence penalty is subtracted once from the logit of a token in the generated text, the
     * frequency penalty once for each occurrence. */
    float presence_penalty, frequency_penalty;
    const att_logit_bias *bias; /* [call] [n_bias], fewer than the vocabulary; biases of the same id are added */
    int64_t n_bias;
} att_sampling;

/* A generator is opened from a folder of a language model. Errors: those of opening the model and the tokenizer; the
 * tokenizer has more tokens than the model; a setting of generation_config.json (or, if it is missing, of config.json)
 * that is not supported and would change the text. */
/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_text_generator_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                           att_text_generator **out);
ATT_API void att_text_generator_free(att_text_generator *g);
ATT_API const att_language_model *att_text_generator_model(const att_text_generator *g);
/* Returns the parameters of its model: see attend_model.h. */
ATT_API const att_nn_params *att_text_generator_params(const att_text_generator *g);
ATT_API const att_tokenizer *att_text_generator_tokenizer(const att_text_generator *g);
/* Returns the folder's settings with every value filled in: temperature 1 and top_k 50 if it has none, as in
 * `transformers`. */
ATT_API att_status att_text_generator_sampling(const att_text_generator *g, att_sampling *out);

/* A generated token. text [bytes] is the text that becomes complete with it: whole characters, without an end that may
 * be the beginning of a stop string. The last token of a sequence has all remaining text. */
typedef struct att_generated_token {
    size_t size;
    int64_t sequence; /* 0 for the call's first prompt; in a session the number from att_generation_add */
    int64_t position; /* number of tokens before it, including the prompt's */
    int32_t id;
    float log_probability; /* NaN without options.log_probabilities */
    const char *text;      /* valid until the callback returns; not zero-terminated */
    size_t bytes;
    bool last;                          /* the last token of its sequence */
    const int32_t *top_ids;             /* [options.top], as in att_generated; valid until the callback returns */
    const float *top_log_probabilities; /* [options.top] */
} att_generated_token;

typedef struct att_generate_options {
    size_t size;
    int64_t max_tokens;           /* of each sequence; 0: up to the model's positions */
    const att_sampling *sampling; /* [call] or NULL: the most probable token */
    uint64_t seed;                /* of sampling: a random token depends only on the seed, the number of its sequence,
                                   * its position and the logits */
    int64_t first_sequence;       /* number of the first sequence: for prompts in several calls */
    const char *const *stop; /* [call] [n_stop]: a sequence ends before the first of these texts, or at a special token
                              * of this name */
    int64_t n_stop;
    /* A state that already has the first tokens of each prompt, but not its last token; the rest is computed.
     * Afterwards it has the prompt and the generated tokens except the last one; after an error, what was computed
     * before. or NULL: the whole prompt is computed. */
    att_language_state *state; /* [call] */
    /* Prompt lookup decoding (Saxena 2023): if the last tokens occurred before, at most this many of the tokens that
     * followed them there are verified in one pass. The tokens are the same as without it; a state must be of f32. 0:
     * off. */
    int64_t lookup;
    bool log_probabilities; /* natural logarithms, of the model's own distribution: before bias, penalties and sampling
                             * settings */
    /* Also of the prompt's tokens. All of them are then computed, and what other sequences have of it is not used; all
     * logits of a part of it, 256 tokens in att_generate, are in memory at once. */
    bool prompt_log_probabilities;
    int64_t top;     /* return ids and log probabilities of this many most probable tokens, too; at most 256; 0: none */
    bool ignore_eos; /* an end token does not end a sequence */
    /* Receives each token of a sequence, in order; if it returns false, the sequence ends. NULL: not called. */
    bool (*token)(void *user, const att_generated_token *token); /* [call]; in a session [object], the sequence */
    void *user;                                                  /* [call]; in a session [object] */
} att_generate_options;

typedef enum att_generation_end {
    ATT_GENERATION_EOS = 1,   /* an end token, which is the last element of tokens */
    ATT_GENERATION_STOP,      /* a stop string, which tokens include but text does not */
    ATT_GENERATION_LENGTH,    /* max_tokens */
    ATT_GENERATION_CONTEXT,   /* prompt and tokens fill all positions of the model */
    ATT_GENERATION_CALLBACK,  /* options.token returned false */
    ATT_GENERATION_CANCELLED, /* unfinished: the context's cancel flag, or att_generation_finish */
} att_generation_end;

typedef struct att_generated { /* att_generated_free frees the arrays */
    att_text text; /* without special tokens; it continues the prompt's text, including a space at its start, if any */
    att_tokens tokens;
    float *log_probabilities; /* [tokens.count]; NULL without options.log_probabilities */
    att_generation_end end;
    /* The most probable tokens at each position of `tokens`, by descending probability, then by ascending id; NULL
     * without options.top */
    int32_t *top_ids;             /* [tokens.count, options.top] */
    float *top_log_probabilities; /* [tokens.count, options.top] */
    /* Log probabilities of the prompt; NULL without options.prompt_log_probabilities. They are NaN, with ids -1, for
     * its first token, which nothing predicts, and for tokens that were not computed because the call was cancelled. */
    float *prompt_log_probabilities;     /* [tokens of the prompt] */
    int32_t *prompt_top_ids;             /* [tokens of the prompt, options.top]; NULL without options.top */
    float *prompt_top_log_probabilities; /* [tokens of the prompt, options.top]; NULL without options.top */
    int64_t cached; /* tokens of the prompt that were not computed because a state or another sequence had them */
    void *reserved[2];
    int64_t reserved_number[2];
} att_generated;

/* Continues n prompts, concatenated: ids [offsets[n]], offsets [n + 1] ascending from 0 -> out [n]. They are computed
 * together, and each has the same tokens whatever else is in the call, and for any number of threads. The function runs
 * the steps of a session (att_generation) with its defaults: a prompt is computed in parts that end at multiples of 256
 * of its tokens, on which its bits depend with a state of bf16. options or NULL: defaults. Errors: an empty prompt; a
 * prompt with as many tokens as the model has positions, or more; a state that does not fit; invalid sampling values;
 * an empty stop string; logits that are not finite; out of memory. After an error out is empty, except after
 * ATT_ERR_CANCELLED: it then has what was generated, and must be freed. */
ATT_API att_status att_generate(const att_text_generator *g, int64_t n, const int32_t *ids, const int64_t *offsets,
                                const att_generate_options *options, att_generated *out);
ATT_API void att_generated_free(att_ctx *ctx, att_generated *generated);

/* A session of generations, which can be added and removed at any time. Each step computes what all its sequences need
 * next, in one pass:
 *
 *     att_generation_new(g, NULL, &s);
 *     att_generation_add(s, ids, n, &options, &number);     // at any time between steps
 *     while (!att_generation_step(s, &active) && active > 0)
 *         continue;                                         // options.token has each token; others may join and leave
 *     att_generation_finish(s, number, &text);
 *
 * A sequence has the tokens, the text and the bits of log probabilities that att_generate returns for its prompt alone,
 * whatever else is in the session, for any number of threads. Prompts are computed in parts, so that a long one does
 * not delay the others. A part ends at a multiple of prompt_tokens of its own prompt. A step computes whole parts, at
 * most prompt_tokens tokens of all prompts together, and one token (with lookup several) of each other sequence.
 * Prompts that begin with the same tokens share keys and values of these; in bf16, where keys and values depend on how
 * a prompt is split, they share only whole parts. Only one thread at a time may use a session. */
typedef struct att_generation att_generation;

typedef struct att_generation_options {
    size_t size;
    att_dtype dtype;       /* of keys and values: ATT_F32, or ATT_F16 or ATT_BF16, which use half the memory */
    int64_t max_sequences; /* in the session, including those that have ended; 0: 64; at most 65,536 */
    int64_t max_tokens;    /* of all these sequences together, including tokens that each may still generate. Keys and
                            * values need memory for this many, in pages of 256 for each sequence. 0: no limit */
    int64_t prompt_tokens; /* of a step; 0: 256. With a dtype of bf16 the bits depend on it; those of att_generate are
                            * those of 256 */
    int64_t kept_tokens;   /* number of tokens to keep of sequences that have ended or were removed, in addition to
                            * max_tokens, for prompts that begin with the same tokens: at most max_sequences sequences,
                            * the most recently used ones. 0: none */
} att_generation_options;

/* Makes a session. options or NULL: defaults. Errors: a number out of range; a dtype that is not supported; out of
 * memory. */
ATT_API att_status att_generation_new(const att_text_generator *g, const att_generation_options *options,
                                      att_generation **out);
ATT_API void att_generation_free(att_generation *s);

/* Adds a prompt, ids [n], without computing anything. *number receives the number of the sequence, 0, 1, ...; -1 after
 * an error. options or NULL: as in att_generate; the session copies them, including stop strings and biases.
 * options.state must be NULL; options.first_sequence, on which random tokens depend, is used as it is. Errors: those of
 * att_generate; ATT_ERR_ARGUMENT if the sequence needs more than max_tokens; ATT_ERR_BUSY if other sequences must be
 * finished or removed first. After an error the session is unchanged. */
ATT_API att_status att_generation_add(att_generation *s, const int32_t *ids, int64_t n,
                                      const att_generate_options *options, int64_t *number);
/* Computes what all sequences need next. *active receives the number of sequences that have not ended after the step.
 * The calling thread calls the token callbacks, in the order in which sequences were added; they must not use the
 * session. A callback that returns false ends its sequence. After ATT_ERR_CANCELLED nothing has changed, and the next
 * step continues. After any other error the session has failed: it adds and computes nothing more, but
 * att_generation_finish still returns what was generated. */
ATT_API att_status att_generation_step(att_generation *s, int64_t *active);
/* Writes what a sequence has generated to *out, which att_generated_free frees, and removes the sequence from the
 * session. If it has not ended, its end is ATT_GENERATION_CANCELLED. Errors: no such sequence; out of memory, and then
 * the sequence stays. */
ATT_API att_status att_generation_finish(att_generation *s, int64_t number, att_generated *out);
/* Removes a sequence, whether it has ended or not. Error: no such sequence. */
ATT_API att_status att_generation_remove(att_generation *s, int64_t number);

typedef struct att_generation_info {
    size_t size;
    int64_t sequences; /* in the session, including those that have ended */
    int64_t active;    /* that have not ended */
    int64_t computed;  /* tokens that all steps have computed together, of prompts and of texts */
    size_t bytes;      /* of keys and values, including those of kept beginnings */
} att_generation_info;
ATT_API att_status att_generation_describe(const att_generation *s, att_generation_info *info);
/* Sets the tokens of prompts in a step, options.prompt_tokens, from the next step on: so a server holds the time that a
 * step takes, by the speed that it measures. Errors: not in [1, 2^31 - 1]; a session of bf16, in which bits would
 * depend on it. */
ATT_API att_status att_generation_set_prompt_tokens(att_generation *s, int64_t tokens);

/* Traces one pass of the model (attend_trace.h) for a text [bytes], which is tokenized like a prompt, or for
 * options.ids if text is NULL: attention, hidden states and logits of any layer. The output is the logits after each
 * token. options or NULL: defaults. Errors: no token, or more than the model has positions; options out of range; both
 * text and ids, or neither; an id that is not in the vocabulary; out of memory; cancelled. */
ATT_API att_status att_language_trace(const att_text_generator *g, const char *text, size_t bytes,
                                      const att_trace_options *options, att_trace **out);

/* ---- 3 Chat ------------------------------------------------------------- */

/* The format of conversations that a model was trained on: the text around messages. Published models have it as a
 * program in Jinja, which attend runs. It reaches nothing of the machine but the clock, and has limits of steps, memory
 * and depth. */
typedef struct att_chat_template att_chat_template;

/* Opens the chat template of a model folder (chat_template.jinja, or "chat_template" of tokenizer_config.json, where
 * "default" is used if it is a list) or of a .gguf file ("tokenizer.chat_template"). name or NULL: the default one;
 * another template of that list, of the folder's additional_chat_templates or of the .gguf file, such as "tool_use";
 * the path of a file that ends in ".jinja"; or one that comes with attend, for models that have none: chatml, gemma,
 * llama2, llama3, mistral-v1, mistral-v3, mistral-tekken, phi3, phi4-mini or zephyr. The model defines the tokens that
 * a template writes, such as "<s>" and "</s>". options or NULL: those of opening the model, whose `read` may return the
 * files. Errors: a template that is not Jinja, or has what chat templates do not use; no template; an unknown name. */
ATT_API att_status att_chat_template_open(att_ctx *ctx, const char *folder, const char *name,
                                          const att_model_options *options, att_chat_template **out);
ATT_API void att_chat_template_free(att_chat_template *t);
/* Returns the name that the template was opened by, or the file or the key of a .gguf file that it is from; NULL if t
 * is NULL. */
ATT_API const char *att_chat_template_name(const att_chat_template *t);
/* Returns the token that ends a message, such as "<|im_end|>", for att_generate_options.stop; NULL if there is none. */
ATT_API const char *att_chat_template_end(const att_chat_template *t);

/* A message of a conversation. A conversation is an array of messages, which must all have the size of the first one.
 * The role is "system", "user", "assistant", "tool", or another that templates use: "developer", "function", "ipython",
 * "tool_results", "tool_response", "observation", "context". */
typedef struct att_chat_message {
    size_t size;
    const char *role; /* [call] */
    const char *text; /* [call] [bytes] */
    size_t bytes;
    const char *more; /* [call] or NULL: a JSON object with further fields, such as {"tool_calls": [{"type": "function",
                       * "function": {"name": "add", "arguments": {"a": 1}}}]}, "tool_call_id", "name" or
                       * "reasoning_content"; "content", such as null, takes the place of text */
} att_chat_message;

/* JSON that a template may read. Its texts are those of messages: they never become special tokens. */
typedef struct att_chat_options {
    size_t size;
    bool reply;            /* end the text where the model's answer begins (add_generation_prompt) */
    const char *tools;     /* [call] or NULL: a list of functions that the model may call, as in OpenAI's interface:
                            * [{"type": "function", "function": {"name": "add", "description": "...", "parameters":
                            * {"type": "object", ...}}}]. If a model has a template "tool_use", it is used. */
    const char *documents; /* [call] or NULL: a list of documents, [{"title": "...", "text": "..."}] */
    const char *variables; /* [call] or NULL: an object of other variables, such as {"enable_thinking": false} */
} att_chat_options;
/* Writes the text of a conversation, messages [n], as apply_chat_template of `transformers` does. options or NULL:
 * defaults. Errors: no message; an unknown role; what should be JSON is not; ATT_ERR_ARGUMENT, the template refuses the
 * conversation (by its raise_exception), such as roles that do not alternate; ATT_ERR_FORMAT, the template fails, or
 * reaches a limit. */
ATT_API att_status att_chat_render(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                                   const att_chat_options *options, att_text *out);
/* Tokenizes the text of a conversation to the ids of `transformers`, except that special tokens are not recognized
 * inside messages: "<|im_end|>" in a message is plain text. Special tokens that the tokenizer adds around a text are
 * not added. options or NULL: defaults. */
ATT_API att_status att_chat_tokenize(const att_chat_template *t, const att_tokenizer *tokenizer,
                                     const att_chat_message *messages, int64_t n, const att_chat_options *options,
                                     att_tokens *out);

/* ---- 4 Evaluation ------------------------------------------------------- */

typedef struct att_perplexity_options {
    size_t size;
    int64_t window;           /* tokens of context, at most max_positions; 0: 1,024, or max_positions if that is less */
    int64_t stride;           /* in [1, window]; 0: window */
    att_progress_fn progress; /* [call] or NULL */
    void *user;               /* [call] */
} att_perplexity_options;

typedef struct att_perplexity {
    size_t size;
    double loss;       /* mean of -log p(token | tokens before it in its window), in nats */
    double perplexity; /* exp(loss) */
    int64_t tokens;    /* number of predicted tokens: all but the first */
    int64_t windows, window, stride;
} att_perplexity;
/* Computes the perplexity of a text, ids [n] with n >= 2, as one sequence. Window k has the tokens [k stride, k
 * stride + window) of the text and predicts the token after each token that no earlier window has, so every token but
 * the first is predicted once. stride = window is the estimate of nanoGPT. A smaller stride, as in the documentation of
 * `transformers`, provides each token with at least window - stride tokens of context, at window / stride times the
 * work. options or NULL: defaults. Errors: fewer than two tokens; an id that the model does not have; options out of
 * range; logits that are not finite; out of memory; cancelled. */
ATT_API att_status att_language_perplexity(const att_language_model *m, const int32_t *ids, int64_t n,
                                           const att_perplexity_options *options, att_perplexity *out);

/* ---- 5 Conversion ------------------------------------------------------- */

typedef struct att_gguf_options {
    size_t size;
    att_dtype dtype;          /* of the weights: ATT_F16, ATT_BF16, and those of att_gguf_write; 0: f32 */
    att_progress_fn progress; /* [call] counts weights that are written; or NULL */
    void *user;               /* [call] */
    bool medium; /* of ATT_Q4_K and ATT_Q5_K: half of the layers have ATT_Q6_K for values and for the output of the
                    feed-forward network, as in llama.cpp's Q4_K_M and Q5_K_M */
} att_gguf_options;
/* Writes a language model (a folder, a .gguf file, or a folder with one) as a folder that `transformers` opens:
 * config.json, model.safetensors, generation_config.json, the files of the tokenizer, and chat_template.jinja if a
 * .gguf file has a template. The folder appears completely or not at all: it is written as FOLDER.unfinished. options
 * or NULL: defaults. Errors: a folder that is not empty; those of opening the model and its tokenizer; a setting that
 * config.json cannot express; a number that is too large for dtype. */
ATT_API att_status att_gguf_convert(att_ctx *ctx, const char *model, const char *folder,
                                    const att_gguf_options *options);

/* Writes a language model as a .gguf file for llama.cpp: matrices as dtype and vectors as f32. dtype is f32, f16, bf16,
 * or a quantized type to which att_tensor_convert converts. With those of blocks of 256 the output layer is ATT_Q6_K.
 * Matrices whose rows are not in whole blocks have another type, as in llama.cpp: ATT_Q5_0 instead of ATT_Q4_K,
 * ATT_Q5_1 instead of ATT_Q5_K, ATT_Q8_0 instead of ATT_Q6_K, f16 instead of those of 32. model: a folder
 * with its tokenizer, of byte level (GPT-2, SmolLM, Llama 3, Qwen 2) or of pieces (Llama 2), and without a
 * sliding window, except Phi-3's; or a .gguf file or a folder with
 * one, whose values are copied except the type. An existing file is replaced; the new one appears completely or not at
 * all. options or NULL: defaults. Errors: those of opening the model and its tokenizer; settings of either that the
 * format cannot express; a number that is too large for dtype; file is the model itself.
 */
ATT_API att_status att_gguf_write(att_ctx *ctx, const char *model, const char *file, const att_gguf_options *options);

#ifdef __cplusplus
}
#endif
#endif
