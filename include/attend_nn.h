/* attend_nn.h - the layers of a Transformer, on top of attend_learn.h: what torch.nn has of them.
 *
 *   att_nn_params     parameters by name: loaded, or initialized as PyTorch's layers are
 *   att_nn_linear, att_nn_norm, att_nn_attention, att_nn_encoder_layer ...     layers
 *
 * Chapters: 1 Parameters by name, 2 Dropout, 3 Small layers, 4 Attention, 5 Layers of a Transformer, 6 Recurrent
 * layers, 7 Convolution.
 *
 * A layer is a struct of parameters. att_nn_NAME_new requests them by names that begin with the layer's, and returns
 * the layer; att_nn_NAME_apply is its formula on a tape:
 *
 *     att_nn_params_new(ctx, NULL, &p);
 *     const att_nn_layer_config c = {.size = sizeof c, .width = 512, .heads = 8, .intermediate = 2048};
 *     for (int i = 0; i < 6; i++)
 *         layer[i] = att_nn_encoder_layer_new(p, att_nn_number("layer", i).text, &c);
 *     if (att_nn_params_status(p)) ...                              // once: the first error of all requests
 *     for (int i = 0; i < 6; i++)
 *         x = att_nn_encoder_layer_apply(t, layer[i], x, &call);    // x [tokens, 512]
 *
 * Layers belong to their att_nn_params and are freed with it. After the first error of an att_nn_params the functions
 * that make layers return NULL, and those that apply a layer return NULL for NULL. A name has at most 95 characters.
 *
 * x is [tokens, features] in all layers: ragged sequences, one after the other. Threads: layers do not change once they
 * are made (but for batch normalization in training), so several threads may apply them, each on its own tape. Structs
 * of layers are made by the library alone and may get fields at their end, but for att_nn_linear, which stays. */
#ifndef ATTEND_NN_H
#define ATTEND_NN_H

#include "attend_optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Parameters by name ----------------------------------------------- */

/* What PyTorch calls a state dict, and the owner of parameters and layers. */
typedef struct att_nn_params att_nn_params;

typedef struct att_nn_params_config {
    size_t size;
    /* Sets *value to the tensor of this name (f32, f16 or bf16), whose data stays until the parameters are freed; dim
     * [rank] is the shape that is needed. *value of another shape is an error, but [1, n] will do for [n]. Returns
     * ATT_OK or att_fail(...). */
    att_status (*load)(void *user, const char *name, int rank, const int64_t *dim,
                       att_tensor *value); /* [object] or NULL: parameters are initialized */
    /* Initializes a new parameter, value f32, dense, in place of the layer's own default; returns ATT_OK or an error.
     */
    att_status (*initialize)(void *user, const char *name, const att_init *init,
                             const att_tensor *value); /* [object] or NULL: att_initialize(value, init, seed, name) */
    void *user;                                        /* [object] or NULL */
    bool trainable; /* f32 copies of what load gives, for an optimizer; without load all parameters are */
    uint64_t seed;  /* of the initialization */
    /* Patterns of names of parameters that are frozen (att_param_set_frozen): '*' stands for any characters, and what
     * matches a name up to a dot matches all below it: "layer.0" is the whole layer, "*.bias" all biases, "*"
     * everything. A frozen parameter is a view of what load gives, in its type, instead of an f32 copy. Running
     * statistics of batch normalization go with its weight and bias. One that matches nothing is an error of
     * att_nn_params_optimize. */
    const char *const *freeze; /* [object] [n_freeze] or NULL: none */
    int64_t n_freeze;
} att_nn_params_config;

/* config or NULL: new parameters with seed 0. */
ATT_API att_status att_nn_params_new(att_ctx *ctx, const att_nn_params_config *config, att_nn_params **out);
/* Frees parameters and layers. p or NULL. */
ATT_API void att_nn_params_free(att_nn_params *p);
/* The first error since p was made; att_error then has its sentence. */
ATT_API att_status att_nn_params_status(const att_nn_params *p);
/* The number of parameters, and parameter i, in the order of the first requests, with its name; NULL if out of range.
 * name or NULL. */
ATT_API int64_t att_nn_params_count(const att_nn_params *p);
ATT_API att_param *att_nn_params_at(const att_nn_params *p, int64_t i, const char **name);
/* Are they for training: f32, in memory of their own that an optimizer may change? Those of a model that was opened for
 * inference are not. p or NULL: false. */
ATT_API bool att_nn_params_trainable(const att_nn_params *p);
/* The parameter of this name; NULL: there is none. */
ATT_API att_param *att_nn_params_find(const att_nn_params *p, const char *name);
/* The parameter prefix.name of this shape, made at its first request (later ones share it, as tied weights do); init or
 * NULL: zeros. For layers of one's own. NULL after an error. */
ATT_API att_param *att_nn_params_request(att_nn_params *p, const char *prefix, const char *name, int rank,
                                         const int64_t *dim, const att_init *init);
/* Adds all parameters to an optimizer, which p must outlive. Those of one dimension, biases and weights of norms, are
 * without weight decay, unless att_param_set_weight_decay states otherwise. Errors: those of att_optimizer_add; they
 * are not trainable; a pattern of `freeze` that matches none of the parameters requested so far, with the names nearest
 * to it. */
ATT_API att_status att_nn_params_optimize(const att_nn_params *p, att_optimizer *o);
/* Memory that is freed with p, zeroed, for layers of one's own. NULL after an error. */
ATT_API void *att_nn_params_alloc(att_nn_params *p, size_t bytes);

/* Names: "layer.3" and "attention" to "layer.3.attention"; "layer" and 3 to "layer.3". */
typedef struct att_nn_name {
    char text[96];
} att_nn_name;
ATT_API att_nn_name att_nn_join(const char *prefix, const char *name);
ATT_API att_nn_name att_nn_number(const char *name, int64_t i);

/* ---- 2 Dropout ---------------------------------------------------------- */

/* Dropout of one training step (Srivastava et al. 2014). A mask depends on the seed, the layer's name, the sequence's
 * id and the position. */
typedef struct att_nn_dropout {
    size_t size;
    float p;
    uint64_t seed;                /* another one for each step */
    const att_positions *at;      /* [call] of the rows of x, by offsets */
    const uint32_t *sequence_ids; /* [call] [at->n] */
} att_nn_dropout;
/* dropout(x) + residual; dropout or NULL: none; residual or NULL: none. dropout_id: by att_nn_dropout_id. */
ATT_API att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *dropout, uint64_t dropout_id, att_var *x,
                                      att_var *residual);
/* The id of a dropout layer, a hash of prefix.name; 0 where one is NULL. */
ATT_API uint64_t att_nn_dropout_id(const char *prefix, const char *name);

/* ---- 3 Small layers ----------------------------------------------------- */

typedef struct att_nn_linear { /* stays as it is: programs make some, too */
    att_param *weight;         /* [out, in] */
    att_param *bias;           /* [out] or NULL */
} att_nn_linear;
typedef struct att_nn_linear_options {
    size_t size;
    bool no_bias;
} att_nn_linear_options;
/* name.weight and name.bias; as PyTorch's Linear, uniform in +-1 / sqrt(in). options or NULL: defaults. */
ATT_API const att_nn_linear *att_nn_linear_new(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                               const att_nn_linear_options *options);
/* f(x weight^T + bias) + residual: x [tokens, in] -> [tokens, out]; residual [tokens, out] or NULL */
ATT_API att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f,
                                     att_var *residual);

typedef enum att_nn_norm_kind {
    ATT_NN_NORM_LAYER = 0, /* (x - mean) / sqrt(variance + eps) weight + bias (Ba et al. 2016) */
    ATT_NN_NORM_RMS        /* x / sqrt(mean(x^2) + eps) weight (Zhang, Sennrich 2019) */
} att_nn_norm_kind;
typedef struct att_nn_norm {
    att_nn_norm_kind kind;
    float eps;
    att_param *weight, *bias; /* [features]; bias of layer norm alone */
} att_nn_norm;
/* name.weight, ones, and name.bias, zeros. eps 0: 1e-5 */
ATT_API const att_nn_norm *att_nn_norm_new(att_nn_params *p, const char *name, att_nn_norm_kind kind, int64_t features,
                                           float eps);
/* x [..., features] -> the same shape */
ATT_API att_var *att_nn_norm_apply(att_tape *t, const att_nn_norm *l, att_var *x);

typedef struct att_nn_embedding {
    att_param *weight; /* [n, features] */
} att_nn_embedding;
/* name.weight; as PyTorch's Embedding, normal with mean 0 and standard deviation 1. Learned positions are one, too: see
 * att_learned_positions; sinusoidal ones have no parameters: att_sinusoidal. */
ATT_API const att_nn_embedding *att_nn_embedding_new(att_nn_params *p, const char *name, int64_t n, int64_t features);
/* ids [count], each in [0, n) -> [count, features] */
ATT_API att_var *att_nn_embedding_apply(att_tape *t, const att_nn_embedding *l, const int32_t *ids, int64_t count);

/* ---- 4 Attention -------------------------------------------------------- */

/* Normalization of queries and keys before the score. */
typedef enum att_nn_qk_norm {
    ATT_NN_QK_NORM_NONE = 0,
    ATT_NN_QK_NORM_HEAD, /* each head's row, weights [head_dim] (Qwen3, Gemma 3, ViT-22B) */
    ATT_NN_QK_NORM_ROW   /* the whole row, weights [heads * head_dim] (OLMo 2) */
} att_nn_qk_norm;

typedef struct att_nn_attention_config {
    size_t size;
    int64_t width;        /* features of x and of the result */
    int64_t source_width; /* of what keys and values are made of; 0: width */
    int64_t heads;        /* with a plan: by that */
    int64_t kv_heads;     /* 0: heads */
    int64_t head_dim;     /* 0: width / heads */
    bool causal;          /* a key's position is at most the query's; the last query is at the last key */
    float dropout;        /* of attention weights, in training */
    /* Any attention: score, modifiers, masks. Its heads and dimensions replace the fields above. */
    const att_plan *plan;          /* [object] or NULL: scaled dot products */
    const att_plan *training_plan; /* [object] the same with dropout, or NULL: plan */
    bool no_query_bias, no_key_bias, no_value_bias, no_output_bias;
    att_nn_qk_norm qk_norm;
    att_nn_norm_kind qk_norm_kind;
    float qk_norm_eps;                /* 0: 1e-5 */
    const att_rotary_options *rotary; /* [call] of queries and keys, after their norm, its frequencies [object]; or
                                       * NULL: none */
    bool no_output; /* Concat(head_1, ..., head_h) is the result, without dropout of its own, instead of W^O: as many
                       features as `width` (SASRec: Kang, McAuley 2018) */
    /* Parameters of the plan's stages that layers share, in the order of args.param; NULL: one of its own, or none.
     * A table of relative positions is one (Raffel et al. 2020). */
    att_param *const *shared; /* [call] [n_shared] */
    int n_shared;
} att_nn_attention_config;

typedef struct att_nn_attention {
    const char *name;                                  /* of its scope: the last part of its name */
    const att_nn_linear *query, *key, *value, *output; /* output NULL: no_output */
    const att_nn_norm *query_norm, *key_norm;          /* or NULL */
    const att_rotary_options *rotary;                  /* or NULL */
    const att_plan *plan, *training_plan;
    int64_t heads, kv_heads, head_dim;
    att_param *const *param; /* [n_params] of the plan's stages, in the order of args.param: shared ones, those of its
                                score, and those per head of a known shape; NULL: by args */
    int n_params;
    att_nn_qk_norm qk_norm;
    uint64_t dropout_id, weights_dropout_id;
} att_nn_attention;
/* name.query, name.key, name.value, name.output: linear layers (PyTorch's MultiheadAttention has the first three as
 * rows of in_proj_weight); name.query_norm, name.key_norm; name.PARAM for parameters of the plan's stages. Initialized
 * as PyTorch's: the first three as one Xavier-uniform matrix, biases 0. */
ATT_API const att_nn_attention *att_nn_attention_new(att_nn_params *p, const char *name,
                                                     const att_nn_attention_config *c);

/* What attention is applied to besides x. */
typedef struct att_nn_attention_call {
    size_t size;
    att_var *source;   /* [call] [source tokens, source_width], for cross-attention, or NULL: x */
    bool same_rows;    /* the source's rows are those of x, one for one, but for a norm */
    att_var *residual; /* [call] [tokens, width], added to the result; or NULL */
    const att_attention_args
        *args; /* [call] sequences (n_sequences, q_offsets, k_offsets), parameters; or NULL: one sequence */
    const att_positions *positions; /* [call] of the rows of x, for rotary encoding, or NULL: by args->q_offsets, after
                                       the tokens of the cache; needed with keep_cache */
    const att_nn_dropout *dropout;  /* [call] or NULL */
    /* Incremental decoding: x has the next tokens, whose keys and values are appended to the cache; keep_cache: they
     * are not, x attends to the cache as it is (cross-attention). */
    att_cache *cache; /* [call] */
    bool keep_cache;
    const att_plan *plan; /* [call] with a cache of another dtype than the layer's plan: the same plan in that; without
                             a cache, with dropout: the same plan with that of attention weights, in place of the
                             layer's; or NULL */
} att_nn_attention_call;
/* Concat(head_1, ..., head_h) W^O + b^O, head_i = Attention(x W_i^Q, source W_i^K, source W_i^V) (Vaswani et al. 2017,
 * 3.2.2): x [tokens, width] -> [tokens, width]. call or NULL: self-attention of one sequence. */
ATT_API att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x,
                                        const att_nn_attention_call *call);
/* Appends the keys and values of the sources to a cache for cross-attention: sequence b is rows [offsets[b],
 * offsets[b + 1]) of source, for each sequence of the cache. */
ATT_API att_status att_nn_attention_cache_source(att_tape *t, const att_nn_attention *l, att_var *source,
                                                 const int64_t *offsets, att_cache *cache);

/* ---- 5 Layers of a Transformer ------------------------------------------ */

typedef enum att_nn_order {
    ATT_NN_ORDER_POST_NORM = 0, /* x = LayerNorm(x + Sublayer(x)) (Vaswani et al. 2017) */
    ATT_NN_ORDER_PRE_NORM,      /* x = x + Sublayer(LayerNorm(x)) (Xiong et al. 2020) */
    ATT_NN_ORDER_QUERY_NORM,    /* q = LayerNorm(x), x = q + Attention(q, x, x), then x = LayerNorm(x), x = x +
                          FeedForward(x)    (SASRec: Kang, McAuley 2018) */
    ATT_NN_ORDER_RESULT_NORM,   /* x = x + LayerNorm(Sublayer(x)) (OLMo 2: Team OLMo 2024) */
    ATT_NN_ORDER_SANDWICH_NORM  /* x = x + LayerNorm(Sublayer(LayerNorm(x))) (CogView: Ding et al. 2021) */
} att_nn_order;

typedef struct att_nn_layer_config {
    size_t size;
    int64_t width, heads, intermediate; /* features of x, of the feed-forward network between its two matrices */
    att_activation activation;          /* of the feed-forward network; 0: ATT_ACTIVATION_RELU */
    bool gated;                         /* f(x W_gate) * (x W_inner): GeGLU, SwiGLU (Shazeer 2020) */
    bool no_bias;                       /* of all linear layers */
    bool causal;                        /* of self-attention; that of a decoder layer always is */
    float attention_dropout;            /* of attention weights */
    att_nn_order order;
    att_nn_norm_kind norm;
    float eps;          /* of the norms; 0: 1e-5 */
    double layer_scale; /* initial value of a factor of each feature of a sublayer's result; 0: none (Touvron et al.
                           2021) */
    const att_nn_attention_config *attention, *cross; /* [call] all else about attention, in place of width, heads,
                                                         no_bias, causal, attention_dropout; or NULL: by these */
    bool inner_dropout; /* of the feed-forward network's activations, too (PyTorch's TransformerEncoderLayer) */
} att_nn_layer_config;

typedef struct att_nn_feed_forward {
    const att_nn_linear *inner, *outer, *gate; /* gate or NULL */
    att_activation activation;
    uint64_t dropout_id, inner_dropout_id; /* the second 0: none */
} att_nn_feed_forward;
/* name.inner [intermediate, width], name.outer [width, intermediate] and, gated, name.gate, as inner. Of c it uses
 * width, intermediate, activation, gated, no_bias and inner_dropout. */
ATT_API const att_nn_feed_forward *att_nn_feed_forward_new(att_nn_params *p, const char *name,
                                                           const att_nn_layer_config *c);
/* f(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, 3.3), or (f(x W_gate) * (x W_1)) W_2; dropout of that; + residual or
 * NULL: x [tokens, width] -> [tokens, width]. dropout or NULL. */
ATT_API att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x, att_var *residual,
                                           const att_nn_dropout *dropout);

/* What a layer is applied to besides x. */
typedef struct att_nn_layer_call {
    size_t size;
    const att_attention_args *args;  /* [call] of self-attention: sequences, masks; or NULL: one sequence */
    att_var *source;                 /* [call] [source tokens, width], of a decoder layer that has no memory */
    const att_attention_args *cross; /* [call] of cross-attention: offsets of x and the source; or NULL: one sequence */
    const att_positions *positions;  /* [call] of the rows of x, for rotary encoding, or NULL: by args->q_offsets */
    const att_nn_dropout *dropout;   /* [call] of each sublayer's result, and of attention weights; or NULL */
    att_cache *cache;                /* [call] incremental decoding: keys and values of the tokens before x; or NULL */
    att_cache *memory;               /* [call] likewise those of the source (att_nn_attention_cache_source), or NULL */
    const att_plan *plan;            /* [call] att_nn_attention_call.plan, of self-attention */
} att_nn_layer_call;

typedef struct att_nn_encoder_layer {
    const att_nn_attention *attention;
    const att_nn_feed_forward *feed_forward;
    const att_nn_norm *attention_norm, *feed_forward_norm; /* NULL: ATT_NN_ORDER_RESULT_NORM */
    att_param *attention_scale, *feed_forward_scale;       /* [width], layer scale; or NULL */
    att_nn_order order;
    const att_nn_norm *attention_result_norm, *feed_forward_result_norm; /* by the order; or NULL */
} att_nn_encoder_layer;
/* name.attention, name.attention_norm, name.feed_forward, name.feed_forward_norm, name.attention_scale,
 * name.feed_forward_scale; the norms of results are name.attention_result_norm, name.feed_forward_result_norm. With
 * `causal` it is a decoder-only model's layer. Scopes: attention, feed_forward; the layer opens none of its own. */
ATT_API const att_nn_encoder_layer *att_nn_encoder_layer_new(att_nn_params *p, const char *name,
                                                             const att_nn_layer_config *c);
/* x [tokens, width] -> [tokens, width]; call or NULL: one sequence. After an error the cache may have the new tokens:
 * truncate it. */
ATT_API att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                            const att_nn_layer_call *call);

typedef struct att_nn_decoder_layer {
    const att_nn_attention *attention, *cross;
    const att_nn_feed_forward *feed_forward;
    const att_nn_norm *attention_norm, *cross_norm, *feed_forward_norm;
    att_param *attention_scale, *cross_scale, *feed_forward_scale; /* [width], layer scale; or NULL */
    att_nn_order order;
    const att_nn_norm *attention_result_norm, *cross_result_norm, *feed_forward_result_norm; /* by the order; or NULL */
} att_nn_decoder_layer;
/* The names of an encoder layer, and name.cross, name.cross_norm, name.cross_result_norm, name.cross_scale. Scopes:
 * attention, cross, feed_forward. */
ATT_API const att_nn_decoder_layer *att_nn_decoder_layer_new(att_nn_params *p, const char *name,
                                                             const att_nn_layer_config *c);
/* All tokens at once, or, with cache and memory, the next ones: x [tokens, width] -> [tokens, width]. With memory,
 * k_offsets of `cross` do not count. After an error the cache may have the new tokens: truncate it. */
ATT_API att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x,
                                            const att_nn_layer_call *call);

/* ---- 6 Recurrent layers ------------------------------------------------- */

typedef struct att_nn_recurrent_config {
    size_t size;
    int64_t in, units, layers; /* units: per direction; layers times directions: at most ATT_NN_MAX_RECURRENT */
    bool bidirectional, lstm;  /* lstm: false: GRU */
} att_nn_recurrent_config;

enum { ATT_NN_MAX_RECURRENT = 16 };
typedef struct att_nn_recurrent {
    int64_t layers, directions;
    bool lstm;
    const att_recurrent *layer; /* [layers * directions]: i * directions + 1 is the reverse direction of layer i */
    uint64_t dropout_id;
} att_nn_recurrent;
/* Stacked GRU or LSTM layers; names as in PyTorch: name.weight_ih_l0, name.bias_hh_l1_reverse; uniform in +-1 /
 * sqrt(units). */
ATT_API const att_nn_recurrent *att_nn_recurrent_new(att_nn_params *p, const char *name,
                                                     const att_nn_recurrent_config *c);
/* x [tokens, in], offsets [n + 1] -> outputs of the last layer [tokens, directions * units]. initial or NULL: zeros,
 * and last or NULL, [layers * directions]: states before the first and after the last step; they may be one array.
 * dropout or NULL, between layers. It opens no scope, because `last` must outlive it. */
ATT_API att_var *att_nn_recurrent_apply(att_tape *t, const att_nn_recurrent *l, att_var *x, const int64_t *offsets,
                                        int64_t n, const att_recurrent_state *initial, att_recurrent_state *last,
                                        const att_nn_dropout *dropout);

/* ---- 7 Convolution ------------------------------------------------------ */

typedef struct att_nn_conv_config {
    size_t size;
    int64_t in, out;   /* channels */
    int64_t kernel[2]; /* height, width */
    int64_t stride[2]; /* 0: 1 */
    int64_t padding[2];
    bool no_bias;
} att_nn_conv_config;
typedef struct att_nn_conv {
    att_param *weight; /* [out, in, kernel height, kernel width] */
    att_param *bias;   /* [out] or NULL */
    int64_t stride[2], padding[2];
} att_nn_conv;
/* name.weight, name.bias; as PyTorch's Conv2d, uniform in +-1 / sqrt(in * kernel height * kernel width). */
ATT_API const att_nn_conv *att_nn_conv_new(att_nn_params *p, const char *name, const att_nn_conv_config *c);
/* x [images, height, width, in] -> [images, ..., ..., out]: see att_conv2d */
ATT_API att_var *att_nn_conv_apply(att_tape *t, const att_nn_conv *l, att_var *x);

typedef struct att_nn_batch_norm {
    att_param *weight, *bias, *running_mean, *running_var; /* [channels] */
    float eps;
    bool trainable; /* are the running statistics its own? */
} att_nn_batch_norm;
/* name.weight, ones, name.bias, zeros, name.running_mean, zeros, name.running_var, ones. eps 0: 1e-5 */
ATT_API const att_nn_batch_norm *att_nn_batch_norm_new(att_nn_params *p, const char *name, int64_t channels, float eps);
/* x [images, height, width, channels] or [rows, channels] -> the same shape, normalized for each channel: see
 * att_batch_norm. options or NULL: defaults, not in training; eps 0: that of the layer. If weight and bias are frozen,
 * training uses the running statistics, too, and does not change them (PyTorch's eval). Errors: training of parameters
 * that are not trainable. */
ATT_API att_var *att_nn_batch_norm_apply(att_tape *t, const att_nn_batch_norm *l, att_var *x,
                                         const att_batch_norm_options *options);

#ifdef __cplusplus
}
#endif
#endif
