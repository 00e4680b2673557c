/* What causal language models have in common. A table has the architectures; one of them reads a model's settings,
 * makes its layers and embeds its tokens. */
#ifndef ATT_STACK_LANGUAGE_MODEL_H
#define ATT_STACK_LANGUAGE_MODEL_H

#include "attend_language.h"
#include "model/model.h"

/* x = embed(ids); each layer: x = layer(x); logits = norm(x) head^T. The struct of an architecture begins with it. */
struct att_language_model {
    att_model model;
    att_language_model_info info;       /* by configure and build */
    att_param *head;                    /* [vocabulary, hidden] */
    const att_nn_encoder_layer **layer; /* [info.layers] */
    const att_nn_norm *norm;
};

typedef struct att_language_architecture {
    att_model_kind kind; /* whose struct begins with an att_language_model */
    /* Embeds ids [offsets[n]] of n sequences, which follow those that the state, or NULL, has -> [offsets[n], hidden]
     */
    att_var *(*embed)(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                      const att_language_state *state);
} att_language_architecture;

extern const att_language_architecture att_gpt2, att_llama;
extern const att_model_kind *const att_language_kinds[]; /* of all architectures, up to NULL */
/* The `prepare` of all kinds */
att_var *att_language_model_prepare(att_tape *t, const void *model);

/* ---- during build (language_layers.c)
 *
 * info.layers layers of these settings, layer.0 and so on, and the norm before the output layer. */
void att_language_model_layers(att_language_model *m, const att_nn_layer_config *layer);

/* The output layer, which is the embedding if info.tied; an error if the file has another one, too. */
att_status att_language_model_build_head(att_language_model *m, att_param *embedding);

/* The plan of attention in a layer: causal, with the window of the model's info. */
att_status att_language_model_plan(const att_language_model *m, att_dtype dtype, att_plan **out);

/* ---- logits (language_model.c) */

/* As att_language_model_apply, but of each sequence the logits after its last `last[b]` tokens alone, last [n], each in
 * [0, its tokens] -> [sum of last, vocabulary] */
att_var *att_language_model_rows(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n, att_language_state *state, const int64_t *last);

/* ---- the state of decoding (language_state.c) */

/* Do the caches have f32, so that decoding has the bits of a full pass? */
bool att_language_state_exact(const att_language_state *s);
int64_t att_language_state_sequences(const att_language_state *s);
/* Is it a state of this model? */
bool att_language_state_fits(const att_language_state *s, const att_language_model *m);
/* What a layer is applied to besides x, with the state's cache of that layer; s NULL: none */
att_nn_layer_call att_language_state_call(const att_language_state *s, int64_t layer, const att_attention_args *args);

#endif
