/* Layers: plain structs of parameters, each with an apply that reads like its formula.
 *
 * A layer asks a loader for its parameters by name; the loader owns what it gave. As on the tape, the first failure
 * stays in the loader and everything after it is NULL, so that loading has no checks. */
#ifndef ATT_NN_H
#define ATT_NN_H

#include "attend_learn.h"

/* ---- where parameters come from */

typedef struct att_nn_loader att_nn_loader;
struct att_nn_loader {
    att_status status; /* the first failure; its sentence is att_error's */
    /* The parameter of that name and shape, owned by the loader. */
    att_status (*get)(att_nn_loader *s, const char *name, int rank, const int64_t *dim, att_param **out);
};

/* "layer.3" and "attention" -> "layer.3.attention" */
typedef struct att_nn_name {
    char text[96];
} att_nn_name;
att_nn_name att_nn_join(const char *prefix, const char *name);
/* "layer" and 3 -> "layer.3" */
att_nn_name att_nn_number(const char *name, int64_t i);

/* prefix.name, of n or of rows x columns numbers; NULL after a failure */
att_param *att_nn_vector(att_nn_loader *s, const char *prefix, const char *name, int64_t n);
att_param *att_nn_matrix(att_nn_loader *s, const char *prefix, const char *name, int64_t rows, int64_t columns);
/* prefix.name of any shape */
att_param *att_nn_param(att_nn_loader *s, const char *prefix, const char *name, int rank, const int64_t *dim);

/* Dropout in training (Srivastava et al. 2014): which numbers of a place of the model it takes follows from
 * the seed and the place, a sequence's id and the position. */
typedef struct att_nn_dropout {
    float p;
    uint64_t seed; /* another one each step */
    const att_positions *at;
    const uint32_t *sequence_ids; /* [at->n] */
} att_nn_dropout;
/* x with some of it dropped, + residual (NULL: 0); dropout NULL or of p = 0: nothing is dropped. */
att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *dropout, uint64_t place, att_var *x,
                              att_var *residual);
/* The number of a place, from its name. */
uint64_t att_nn_place(const char *prefix, const char *name);

/* ---- sequences, one after the other */

/* As att_require for a function that gives a variable: false where t or one of given [n] is NULL, and the tape fails.
 */
bool att_nn_given(att_tape *t, const char *what, const att_named *given, size_t n);

/* Are there n sequences of ids [offsets[n]], offsets [n + 1] ascending from 0, each of at most max_positions tokens? If
 * not the tape fails with a sentence that calls them `what`. */
bool att_nn_sequences_fit(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                          int64_t max_positions);

/* ---- layers; x is [tokens, features], ragged: all sequences one after the other */

typedef struct att_nn_linear {
    att_param *weight; /* [out, in] */
    att_param *bias;   /* [out] */
} att_nn_linear;
static inline att_nn_linear att_nn_linear_load(att_nn_loader *s, const char *prefix, int64_t in, int64_t out)
{
    att_param *weight = att_nn_matrix(s, prefix, "weight", out, in);
    return (att_nn_linear){weight, att_nn_vector(s, prefix, "bias", out)};
}
/* f(x W^T + b) + residual; residual may be NULL */
static inline att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f,
                                           att_var *residual)
{
    return att_linear(t, x, l->weight, l->bias, f, residual);
}
/* dropout(x W^T + b) + residual */
att_var *att_nn_linear_dropout(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                               const att_nn_dropout *dropout, uint64_t place);

typedef struct att_nn_embedding {
    att_param *weight; /* [n, features] */
} att_nn_embedding;
static inline att_nn_embedding att_nn_embedding_load(att_nn_loader *s, const char *prefix, int64_t n, int64_t features)
{
    return (att_nn_embedding){att_nn_matrix(s, prefix, "weight", n, features)};
}
/* ids [count] -> [count, features] */
static inline att_var *att_nn_embedding_apply(att_tape *t, const att_nn_embedding *l, const int32_t *ids, int64_t count)
{
    return att_embedding(t, l->weight, ids, count);
}

typedef struct att_nn_layer_norm {
    att_param *gamma, *beta; /* [features] */
    float eps;
} att_nn_layer_norm;
static inline att_nn_layer_norm att_nn_layer_norm_load(att_nn_loader *s, const char *prefix, int64_t features,
                                                       float eps)
{
    att_param *gamma = att_nn_vector(s, prefix, "gamma", features);
    return (att_nn_layer_norm){gamma, att_nn_vector(s, prefix, "beta", features), eps};
}
static inline att_var *att_nn_layer_norm_apply(att_tape *t, const att_nn_layer_norm *l, att_var *x)
{
    return att_layer_norm(t, x, l->gamma, l->beta, l->eps);
}
/* LayerNorm(x) if norm, else x */
static inline att_var *att_nn_norm_if(att_tape *t, bool norm, const att_nn_layer_norm *l, att_var *x)
{
    return norm ? att_nn_layer_norm_apply(t, l, x) : x;
}

/* Sizes and choices of one layer. */
typedef struct att_nn_layer_config {
    int64_t hidden, heads, intermediate;
    att_activation activation;
    float eps;
    bool norm_first;       /* each half is x + Sublayer(LayerNorm(x)); false: LayerNorm(x + Sublayer(x)) */
    const att_plan *plan;  /* of `heads` heads of hidden / heads, to the tokens themselves; outlives the layer */
    const att_plan *cross; /* the same, of a decoder to the source */
} att_nn_layer_config;

typedef struct att_nn_attention {
    att_nn_linear query, key, value, output;
    const att_plan *plan;
    int64_t heads;
    const char *name; /* of its scope */
    uint64_t place;
} att_nn_attention;
att_nn_attention att_nn_attention_load(att_nn_loader *s, const char *prefix, const char *name,
                                       const att_nn_layer_config *c, const att_plan *plan);
/* Concat(head_1, ..., head_h) W^O + residual, head_i = Attention(x W_i^Q, source W_i^K, source W_i^V), source = x or
 * what x looks at (Vaswani et al. 2017, 3.2.2) */
att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, att_var *source, att_var *residual,
                                const att_attention_args *args, const att_nn_dropout *dropout);
/* The same with keys and values that were made of the source before: a new cache, whose sequence b receives those of
 * tokens [offsets[b], offsets[b + 1]). As many of x look at each sequence. */
att_status att_nn_attention_remember(att_tape *t, const att_nn_attention *l, att_var *source, const int64_t *offsets,
                                     att_cache *memory);
att_var *att_nn_attention_recall(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *memory,
                                 att_var *residual);
/* The same of new tokens to those in a cache, which they join. */
att_var *att_nn_attention_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *cache, att_var *residual);

typedef struct att_nn_feed_forward {
    att_nn_linear inner, outer;
    att_activation activation;
    uint64_t place;
} att_nn_feed_forward;
att_nn_feed_forward att_nn_feed_forward_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c);
/* f(x W_1 + b_1) W_2 + b_2 + residual   (the same, 3.3) */
att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x, att_var *residual,
                                   const att_nn_dropout *dropout);

typedef struct att_nn_encoder_layer {
    att_nn_attention attention;
    att_nn_layer_norm attention_norm;
    att_nn_feed_forward feed_forward;
    att_nn_layer_norm feed_forward_norm;
    bool norm_first;
} att_nn_encoder_layer;
att_nn_encoder_layer att_nn_encoder_layer_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c);
/* dropout of what each half adds; NULL: none */
att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                    const att_attention_args *args, const att_nn_dropout *dropout);

typedef struct att_nn_decoder_layer {
    att_nn_attention attention, cross;
    att_nn_layer_norm attention_norm, cross_norm;
    att_nn_feed_forward feed_forward;
    att_nn_layer_norm feed_forward_norm;
    bool norm_first;
} att_nn_decoder_layer;
att_nn_decoder_layer att_nn_decoder_layer_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c);
/* All tokens at once: args say which belong together, cross which of them look at which of the source. */
att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_var *source,
                                    const att_attention_args *args, const att_attention_args *cross,
                                    const att_nn_dropout *dropout);
/* The next tokens: the earlier ones are in the cache, the source in memory. */
att_var *att_nn_decoder_layer_step(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_cache *cache,
                                   att_cache *memory);

/* Recurrent layers, each on the outputs of the one below, in one direction or in both. */
typedef struct att_nn_recurrent_config {
    int64_t in, units, layers; /* units: of each direction */
    bool bidirectional;
} att_nn_recurrent_config;

enum { ATT_NN_MAX_RECURRENT = 16 }; /* layers times directions */
typedef struct att_nn_recurrent {
    att_var *(*cell)(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                     att_recurrent_state *last);
    att_recurrent layer[ATT_NN_MAX_RECURRENT];
    int64_t layers, directions; /* number i * directions + 1 goes from the end to the start */
    uint64_t place;
} att_nn_recurrent;
/* Names are PyTorch's: prefix.weight_ih_l0, prefix.bias_hh_l1_reverse. */
att_nn_recurrent att_nn_gru_load(att_nn_loader *s, const char *prefix, const att_nn_recurrent_config *c);
att_nn_recurrent att_nn_lstm_load(att_nn_loader *s, const char *prefix, const att_nn_recurrent_config *c);
/* x [tokens, in], offsets [n + 1] -> outputs of the last layer [tokens, directions * units], forwards beside backwards.
 * start and last [layers * directions]: states before the first steps and after the last; NULL: zeros, not wanted. They
 * may be one array. dropout between layers; NULL: none. There is no scope in it, which last would not outlive. */
att_var *att_nn_recurrent_apply(att_tape *t, const att_nn_recurrent *l, att_var *x, const int64_t *offsets, int64_t n,
                                const att_recurrent_state *start, att_recurrent_state *last,
                                const att_nn_dropout *dropout);

#endif
