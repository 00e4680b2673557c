/* Layers: plain structs of parameters, each with an apply function that reads like its formula.
 *
 * A layer requests its parameters from a loader by name; the loader owns them. The first error stays in the loader, and
 * all later requests return NULL, so loading code needs no checks. */
#ifndef ATT_NN_H
#define ATT_NN_H

#include "attend_learn.h"
#include "attend_util.h"

/* ---- loading parameters */

typedef struct att_nn_loader att_nn_loader;
struct att_nn_loader {
    att_status status; /* the first error; the message is att_error's */
    /* Returns the parameter with this name and shape, owned by the loader. */
    att_status (*get)(att_nn_loader *s, const char *name, int rank, const int64_t *dim, att_param **out);
};

/* Joins "layer.3" and "attention" to "layer.3.attention". */
typedef struct att_nn_name {
    char text[96];
} att_nn_name;
att_nn_name att_nn_join(const char *prefix, const char *name);
/* Joins "layer" and 3 to "layer.3". */
att_nn_name att_nn_number(const char *name, int64_t i);

/* The vector prefix.name [n] or matrix prefix.name [rows, columns]; NULL after an error. */
att_param *att_nn_vector(att_nn_loader *s, const char *prefix, const char *name, int64_t n);
att_param *att_nn_matrix(att_nn_loader *s, const char *prefix, const char *name, int64_t rows, int64_t columns);
/* The parameter prefix.name of any shape. */
att_param *att_nn_param(att_nn_loader *s, const char *prefix, const char *name, int rank, const int64_t *dim);

/* Dropout for one training step (Srivastava et al. 2014). A mask depends on the seed, the dropout layer, the sequence's
 * id and the position. */
typedef struct att_nn_dropout {
    float p;
    uint64_t seed; /* another one for each step */
    const att_positions *at;
    const uint32_t *sequence_ids; /* [at->n] */
} att_nn_dropout;
/* dropout(x) + residual (NULL: none); no dropout if dropout is NULL or p = 0. */
att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *dropout, uint64_t dropout_id, att_var *x,
                              att_var *residual);
/* The id of a dropout layer, from its name. */
uint64_t att_nn_dropout_id(const char *prefix, const char *name);

/* ---- ragged sequences */

/* Like att_require for a function that returns a variable: if t or one of given [n] is NULL, the tape fails and the
 * result is false. */
bool att_nn_given(att_tape *t, const char *what, const att_named *given, size_t n);

/* Checks ids [offsets[n]] and offsets [n + 1] (ascending from 0, at most max_positions tokens each). On failure the
 * tape fails with a message that names the sequences `what`. */
bool att_nn_sequences_fit(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                          int64_t max_positions);

/* ---- layers; x is [tokens, features]: ragged sequences, concatenated */

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
                               const att_nn_dropout *dropout, uint64_t dropout_id);

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

/* Sizes and options of a layer. */
typedef struct att_nn_layer_config {
    int64_t hidden, heads, intermediate;
    att_activation activation;
    float eps;
    bool norm_first;       /* pre-norm: x + Sublayer(LayerNorm(x)); false: post-norm: LayerNorm(x + Sublayer(x)) */
    const att_plan *plan;  /* self-attention with `heads` heads of hidden / heads; must outlive the layer */
    const att_plan *cross; /* likewise, cross-attention of a decoder */
} att_nn_layer_config;

typedef struct att_nn_attention {
    att_nn_linear query, key, value, output;
    const att_plan *plan;
    int64_t heads;
    const char *name; /* of its scope */
    uint64_t dropout_id;
} att_nn_attention;
att_nn_attention att_nn_attention_load(att_nn_loader *s, const char *prefix, const char *name,
                                       const att_nn_layer_config *c, const att_plan *plan);
/* Concat(head_1, ..., head_h) W^O + residual, head_i = Attention(x W_i^Q, source W_i^K, source W_i^V); source is x for
 * self-attention (Vaswani et al. 2017, 3.2.2) */
att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, att_var *source, att_var *residual,
                                const att_attention_args *args, const att_nn_dropout *dropout);
/* Cross-attention in incremental decoding: project_source appends the keys and values of sequence b, tokens
 * [offsets[b], offsets[b + 1]) of source, to a new cache; cross_step attends to that, with the same number of rows of x
 * for each sequence. */
att_status att_nn_attention_project_source(att_tape *t, const att_nn_attention *l, att_var *source,
                                           const int64_t *offsets, att_cache *memory);
att_var *att_nn_attention_cross_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *memory,
                                     att_var *residual);
/* Self-attention in incremental decoding: appends the new tokens x to the cache and attends. */
att_var *att_nn_attention_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *cache, att_var *residual);

typedef struct att_nn_feed_forward {
    att_nn_linear inner, outer;
    att_activation activation;
    uint64_t dropout_id;
} att_nn_feed_forward;
att_nn_feed_forward att_nn_feed_forward_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c);
/* f(x W_1 + b_1) W_2 + b_2 + residual (Vaswani et al. 2017, 3.3) */
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
/* dropout applies to the output of each sublayer; NULL: none */
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
/* All tokens at once: args for self-attention, cross for attention to the source. */
att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_var *source,
                                    const att_attention_args *args, const att_attention_args *cross,
                                    const att_nn_dropout *dropout);
/* The next tokens: cache has the keys and values of the earlier ones, memory those of the source. */
att_var *att_nn_decoder_layer_step(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_cache *cache,
                                   att_cache *memory);

/* Stacked recurrent layers, unidirectional or bidirectional. */
typedef struct att_nn_recurrent_config {
    int64_t in, units, layers; /* units: per direction */
    bool bidirectional, lstm;  /* lstm: false: GRU */
} att_nn_recurrent_config;

enum { ATT_NN_MAX_RECURRENT = 16 }; /* layers times directions */
typedef struct att_nn_recurrent {
    att_var *(*cell)(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                     att_recurrent_state *last);
    att_recurrent layer[ATT_NN_MAX_RECURRENT];
    int64_t layers, directions; /* entry i * directions + 1 is the reverse direction of layer i */
    uint64_t dropout_id;
} att_nn_recurrent;
/* Names as in PyTorch: prefix.weight_ih_l0, prefix.bias_hh_l1_reverse. */
att_nn_recurrent att_nn_recurrent_load(att_nn_loader *s, const char *prefix, const att_nn_recurrent_config *c);
/* x [tokens, in], offsets [n + 1] -> outputs of the last layer [tokens, directions * units]. initial and last [layers *
 * directions]: states before the first and after the last step; NULL: zeros, not wanted; they may be one array. dropout
 * between layers; NULL: none. It opens no scope, because `last` must outlive it. */
att_var *att_nn_recurrent_apply(att_tape *t, const att_nn_recurrent *l, att_var *x, const int64_t *offsets, int64_t n,
                                const att_recurrent_state *start, att_recurrent_state *last,
                                const att_nn_dropout *dropout);

#endif
