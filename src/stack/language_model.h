/* Causal language models of any architecture. A table has the architectures; one of them reads a model's settings,
 * makes its layers and embeds its tokens. */
#ifndef ATT_STACK_LANGUAGE_MODEL_H
#define ATT_STACK_LANGUAGE_MODEL_H

#include "attend_language.h"
#include "model/model.h"
#include "model/trace.h"

/* x = embed(ids); each layer: x = layer(x); logits = norm(x) head^T. The struct of an architecture begins with it. */
struct att_language_model {
    att_model model;
    att_language_model_info info;       /* by configure and build */
    att_param *head;                    /* [vocabulary, hidden]; NULL: of a base model, which has none */
    const att_nn_encoder_layer **layer; /* [info.layers] */
    const att_nn_norm *norm;
    bool causal; /* by build: each token attends to those before it; false: to all, of a base model alone */
};

typedef struct att_language_architecture {
    att_model_kind kind; /* whose struct begins with an att_language_model */
    /* Embeds ids [offsets[n]] of n sequences, which continue the sequences of the state, or NULL. Returns [offsets[n],
     * hidden].
     */
    att_var *(*embed)(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                      const att_language_state *state);
    bool without_head; /* its models are base models: they have no output layer, and hidden states alone */
} att_language_architecture;

/* All architectures have their kind as the first member. */
static inline const att_language_architecture *att_language_architecture_of(const att_language_model *m)
{
    return (const att_language_architecture *)(const void *)m->model.kind;
}

extern const att_language_architecture att_gpt2, att_llama;
extern const att_model_kind *const att_language_kinds[]; /* of all architectures, up to NULL */
/* Prepares a model. `prepare` of all kinds. */
att_var *att_language_model_prepare(att_tape *t, const void *model);

/* ---- base models (language_base.c): AutoModel of `transformers` */

extern const att_language_architecture att_gpt2_base, att_llama_base;
extern const att_model_kind *const att_language_base_kinds[];
att_var *att_language_base_prepare(att_tape *t, const void *model);
/* Opens a base model as a part of `outer`: see att_model_open_inside. */
att_status att_language_base_open_inside(const att_model *outer, const char *folder,
                                         const att_model_extension *extension, att_language_model **out);
/* Hidden states of n sequences after the last norm: ids [offsets[n]], offsets [n + 1] -> [offsets[n], hidden]. Of any
 * language model. NULL on error: as att_language_model_apply. */
att_var *att_language_base_apply(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n);
/* The part of a trace that a language model is, of n tokens */
att_trace_part att_language_trace_part(const att_language_model *m, int64_t n);
/* Writes FOLDER/model.safetensors of a model that was opened for training, as AutoModel writes it. dtype 0: f32.
 * Errors: an architecture whose matrices are parts of those of the file, GPT-2 and Phi-3. */
att_status att_language_base_write(const att_language_model *m, const char *folder, att_dtype dtype);

/* ---- during build (language_layers.c)
 *
 * info.layers layers of these settings, layer.0 and so on, and the norm before the output layer. */
void att_language_model_layers(att_language_model *m, const att_nn_layer_config *layer);

/* The output layer, which is the embedding if info.tied; an error if the file has another one, too. Of a base model:
 * nothing. */
att_status att_language_model_build_head(att_language_model *m, att_param *embedding);

/* Makes the plan of attention in a layer: causal, with the window of the model's info. */
att_status att_language_model_plan(const att_language_model *m, att_dtype dtype, att_plan **out);

/* ---- apply (language_model.c) */

/* The last layer's output of all tokens, whose ids and offsets have been checked -> [offsets[n], hidden]. s: the
 * caller's scope, which then has that alone. */
att_var *att_language_model_layers_apply(att_tape *t, att_scope s, const att_language_model *m, const int32_t *ids,
                                         const int64_t *offsets, int64_t n, att_language_state *state);

/* Computes logits as att_language_model_apply does, but only those after the last `last[b]` tokens of each sequence;
 * last [n], each in [0, its tokens]. Returns [sum of last, vocabulary]. */
att_var *att_language_model_rows(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n, att_language_state *state, const int64_t *last);

/* ---- the state of decoding (language_state.c) */

/* Returns whether the caches have f32, so that decoding has the bits of a full pass. */
bool att_language_state_exact(const att_language_state *s);
int64_t att_language_state_sequences(const att_language_state *s);
/* Returns whether s is a state of this model. */
bool att_language_state_fits(const att_language_state *s, const att_language_model *m);
/* Returns the arguments of a layer besides x, with the state's cache of that layer. s NULL: no cache. */
att_nn_layer_call att_language_state_call(const att_language_state *s, int64_t layer, const att_attention_args *args);

#endif
