/* Layers: plain structs of parameters, each with an apply that reads like its formula.
 *
 * A load asks a source for its parameters by name; a source owns what it gave. As on the tape, the first failure
 * stays in the source and everything after it is NULL, so loads have no checks. */
#ifndef ATT_NN_H
#define ATT_NN_H

#include "attend_learn.h"

/* ---- where parameters come from */

typedef struct att_nn_source att_nn_source;
struct att_nn_source {
    att_status status; /* the first failure; its sentence is att_error's */
    /* The parameter of that name and shape, owned by the source. */
    att_status (*get)(att_nn_source *s, const char *name, int rank, const int64_t *dim, att_param **out);
};

/* "layer.3" and "attention" -> "layer.3.attention" */
typedef struct att_nn_name {
    char text[96];
} att_nn_name;
att_nn_name att_nn_join(const char *prefix, const char *name);

/* prefix.name, of n or of rows x columns numbers; NULL after a failure */
att_param *att_nn_vector(att_nn_source *s, const char *prefix, const char *name, int64_t n);
att_param *att_nn_matrix(att_nn_source *s, const char *prefix, const char *name, int64_t rows, int64_t columns);

/* ---- layers; x is [tokens, features], ragged: all sequences one after the other */

typedef struct att_nn_linear {
    att_param *weight; /* [out, in] */
    att_param *bias;   /* [out] */
} att_nn_linear;
att_nn_linear att_nn_linear_load(att_nn_source *s, const char *prefix, int64_t in, int64_t out);
/* f(x W^T + b) + residual; residual may be NULL */
att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f, att_var *residual);

typedef struct att_nn_embedding {
    att_param *weight; /* [n, features] */
} att_nn_embedding;
att_nn_embedding att_nn_embedding_load(att_nn_source *s, const char *prefix, int64_t n, int64_t features);
/* ids [count] -> [count, features] */
att_var *att_nn_embedding_apply(att_tape *t, const att_nn_embedding *l, const int32_t *ids, int64_t count);

typedef struct att_nn_layer_norm {
    att_param *gamma, *beta; /* [features] */
    float eps;
} att_nn_layer_norm;
att_nn_layer_norm att_nn_layer_norm_load(att_nn_source *s, const char *prefix, int64_t features, float eps);
att_var *att_nn_layer_norm_apply(att_tape *t, const att_nn_layer_norm *l, att_var *x);

/* Sizes and choices of one encoder layer. */
typedef struct att_nn_encoder_config {
    int64_t hidden, heads, intermediate;
    att_activation activation;
    float eps;
    const att_plan *plan; /* of `heads` heads of hidden / heads; outlives the layer */
} att_nn_encoder_config;

typedef struct att_nn_attention {
    att_nn_linear query, key, value, output;
    const att_plan *plan;
    int64_t heads;
} att_nn_attention;
att_nn_attention att_nn_attention_load(att_nn_source *s, const char *prefix, const att_nn_encoder_config *c);
/* Concat(head_1, ..., head_h) W^O + x, head_i = Attention(x W_i^Q, x W_i^K, x W_i^V)   (Vaswani et al. 2017, 3.2.2) */
att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, const att_attention_args *args);

typedef struct att_nn_feed_forward {
    att_nn_linear inner, outer;
    att_activation activation;
} att_nn_feed_forward;
att_nn_feed_forward att_nn_feed_forward_load(att_nn_source *s, const char *prefix, const att_nn_encoder_config *c);
/* f(x W_1 + b_1) W_2 + b_2 + x   (the same, 3.3) */
att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x);

/* Each half: LayerNorm(x + Sublayer(x)), the norm last, as in the paper and in BERT. */
typedef struct att_nn_encoder_layer {
    att_nn_attention attention;
    att_nn_layer_norm attention_norm;
    att_nn_feed_forward feed_forward;
    att_nn_layer_norm feed_forward_norm;
} att_nn_encoder_layer;
att_nn_encoder_layer att_nn_encoder_layer_load(att_nn_source *s, const char *prefix, const att_nn_encoder_config *c);
att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                    const att_attention_args *args);

#endif
