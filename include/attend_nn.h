/* attend_nn.h - the layers of a Transformer, on top of attend_learn.h: the parts of torch.nn that it needs.
 *
 *   att_nn_params     parameters by name: loaded, or initialized as PyTorch's layers are
 *   att_nn_linear, att_nn_norm, att_nn_attention, att_nn_encoder_layer ...     layers
 *
 * Chapters: 1 Parameters by name, 2 Dropout, 3 Small layers, 4 Attention, 5 Layers of a Transformer, 6 Recurrent
 * layers, 7 Convolution.
 *
 * A layer is a struct of parameters. att_nn_NAME_new requests them by names that begin with the layer's, and returns
 * the layer; att_nn_NAME_apply computes its formula on a tape:
 *
 *     att_nn_params_new(ctx, NULL, &p);
 *     const att_nn_layer_config c = {.size = sizeof c, .width = 512, .heads = 8, .intermediate = 2048};
 *     for (int i = 0; i < 6; i++)
 *         layer[i] = att_nn_encoder_layer_new(p, att_nn_number("layer", i).text, &c);
 *     if (att_nn_params_status(p)) ...                              // once: the first error of all requests
 *     for (int i = 0; i < 6; i++)
 *         x = att_nn_encoder_layer_apply(t, layer[i], x, &call);    // x [tokens, 512]
 *
 * Layers belong to their att_nn_params and are freed with it. After the first error of an att_nn_params, functions that
 * make layers return NULL; functions that apply a layer return NULL if it is NULL. A name has at most 95 characters.
 *
 * In all layers x is [tokens, features]: ragged sequences, one after the other. Threads: layers do not change once they
 * are made (except batch normalization in training), so several threads may apply them, each on its own tape. Only the
 * library makes structs of layers, which may get fields at their end, except att_nn_linear, which does not change. */
#ifndef ATTEND_NN_H
#define ATTEND_NN_H

#include "attend_optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Parameters by name ----------------------------------------------- */

/* Owns parameters, by name, and layers: what PyTorch calls a state dict. */
typedef struct att_nn_params att_nn_params;

typedef struct att_nn_params_config {
    size_t size;
    /* Sets *value to the tensor of this name (f32, f16 or bf16), whose data must exist until the parameters are freed.
     * dim [rank] is the required shape. A *value of another shape is an error, except that [1, n] is accepted for [n].
     * Returns ATT_OK or att_fail(...). */
    att_status (*load)(void *user, const char *name, int rank, const int64_t *dim,
                       att_tensor *value); /* [object] or NULL: parameters are initialized */
    /* Initializes a new parameter, value f32, dense, instead of the layer's default. Returns ATT_OK or an error.
     */
    att_status (*initialize)(void *user, const char *name, const att_init *init,
                             const att_tensor *value); /* [object] or NULL: att_initialize(value, init, seed, name) */
    void *user;                                        /* [object] or NULL */
    bool trainable; /* parameters are f32 copies of what load returns, for an optimizer; without load they always are */
    uint64_t seed;  /* of the initialization */
    /* Patterns of names of parameters that are frozen (att_param_set_frozen). '*' stands for any characters, and a
     * pattern that matches a name up to a dot matches everything below it: "layer.0" is the whole layer, "*.bias" all
     * biases, "*" everything. A frozen parameter is a view of what load returns, in its type, instead of an f32 copy.
     * Running statistics of batch normalization are frozen with its weight and bias. If a pattern matches nothing,
     * att_nn_params_optimize returns an error. */
    const char *const *freeze; /* [object] [n_freeze] or NULL: none */
    int64_t n_freeze;
} att_nn_params_config;

/* Makes an owner of parameters. config or NULL: new parameters with seed 0. */
ATT_API att_status att_nn_params_new(att_ctx *ctx, const att_nn_params_config *config, att_nn_params **out);
/* Frees parameters and layers. p or NULL. */
ATT_API void att_nn_params_free(att_nn_params *p);
/* Returns the first error since p was made; att_error then returns its sentence. */
ATT_API att_status att_nn_params_status(const att_nn_params *p);
/* Returns the number of parameters, and parameter i with its name, in the order of the first requests; NULL if i is out
 * of range. name or NULL. */
ATT_API int64_t att_nn_params_count(const att_nn_params *p);
ATT_API att_param *att_nn_params_at(const att_nn_params *p, int64_t i, const char **name);
/* Returns whether the parameters are for training: f32, in their own memory, which an optimizer may change. Those of a
 * model that was opened for inference are not. p or NULL: false. */
ATT_API bool att_nn_params_trainable(const att_nn_params *p);
/* Returns the parameter of this name; NULL if there is none. */
ATT_API att_param *att_nn_params_find(const att_nn_params *p, const char *name);
/* Returns the parameter prefix.name of this shape, for a program's own layers. The first request makes it; later ones
 * share it, as tied weights do. init or NULL: zeros. Returns NULL after an error. */
ATT_API att_param *att_nn_params_request(att_nn_params *p, const char *prefix, const char *name, int rank,
                                         const int64_t *dim, const att_init *init);
/* Adds all parameters to an optimizer; p must outlive it. Parameters of one dimension, biases and weights of norms,
 * have no weight decay unless att_param_set_weight_decay set it. Errors: those of att_optimizer_add; the parameters are
 * not trainable; a pattern of `freeze` that matches none of the parameters requested so far (the message lists the most
 * similar names). */
ATT_API att_status att_nn_params_optimize(const att_nn_params *p, att_optimizer *o);
/* Returns zeroed memory that is freed with p, for a program's own layers. NULL after an error. */
ATT_API void *att_nn_params_alloc(att_nn_params *p, size_t bytes);

/* Join names: "layer.3" and "attention" to "layer.3.attention"; "layer" and 3 to "layer.3". */
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
    uint64_t seed;                /* a different one for each step */
    const att_positions *at;      /* [call] positions of the rows of x, given by offsets */
    const uint32_t *sequence_ids; /* [call] [at->n] */
} att_nn_dropout;
/* Computes dropout(x) + residual. dropout or NULL: none; residual or NULL: none. dropout_id comes from
 * att_nn_dropout_id. */
ATT_API att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *dropout, uint64_t dropout_id, att_var *x,
                                      att_var *residual);
/* Returns the id of a dropout layer, a hash of prefix.name; 0 if either is NULL. */
ATT_API uint64_t att_nn_dropout_id(const char *prefix, const char *name);

/* ---- 3 Small layers ----------------------------------------------------- */

typedef struct att_nn_linear { /* stays as it is: programs make it, too */
    att_param *weight;         /* [out, in] */
    att_param *bias;           /* [out] or NULL */
} att_nn_linear;
typedef struct att_nn_linear_options {
    size_t size;
    bool no_bias;
} att_nn_linear_options;
/* Makes a linear layer with name.weight and name.bias, both initialized uniformly in +-1 / sqrt(in), as PyTorch's
 * Linear. options or NULL: defaults. */
ATT_API const att_nn_linear *att_nn_linear_new(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                               const att_nn_linear_options *options);
/* Computes f(x weight^T + bias) + residual: x [tokens, in] -> [tokens, out]; residual [tokens, out] or NULL. */
ATT_API att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f,
                                     att_var *residual);

typedef enum att_nn_norm_kind {
    ATT_NN_NORM_LAYER = 0,    /* (x - mean) / sqrt(variance + eps) weight + bias (Ba et al. 2016) */
    ATT_NN_NORM_RMS,          /* x / sqrt(mean(x^2) + eps) weight (Zhang, Sennrich 2019) */
    ATT_NN_NORM_LAYER_NO_BIAS /* (x - mean) / sqrt(variance + eps) weight (ModernBERT: Warner et al. 2024) */
} att_nn_norm_kind;
typedef struct att_nn_norm {
    att_nn_norm_kind kind;
    float eps;
    att_param *weight, *bias; /* [features]; bias is for ATT_NN_NORM_LAYER only, else NULL */
} att_nn_norm;
/* Makes a norm with name.weight, initialized with ones, and for ATT_NN_NORM_LAYER name.bias, with zeros. eps 0: 1e-5.
 */
ATT_API const att_nn_norm *att_nn_norm_new(att_nn_params *p, const char *name, att_nn_norm_kind kind, int64_t features,
                                           float eps);
/* Normalizes x [..., features] -> the same shape. */
ATT_API att_var *att_nn_norm_apply(att_tape *t, const att_nn_norm *l, att_var *x);

typedef struct att_nn_embedding {
    att_param *weight; /* [n, features] */
} att_nn_embedding;
/* Makes an embedding with name.weight, initialized normally with mean 0 and standard deviation 1, as PyTorch's
 * Embedding. Learned positions are an embedding, too: see att_learned_positions. Sinusoidal ones have no parameters:
 * see att_sinusoidal. */
ATT_API const att_nn_embedding *att_nn_embedding_new(att_nn_params *p, const char *name, int64_t n, int64_t features);
/* Reads the rows of ids [count], each in [0, n) -> [count, features]. */
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
    int64_t source_width; /* features of the source, from which keys and values are computed; 0: width */
    int64_t heads;        /* if there is a plan, its value replaces this */
    int64_t kv_heads;     /* 0: heads */
    int64_t head_dim;     /* 0: width / heads */
    bool causal;          /* a query attends to keys at positions up to its own; the last query is at the last key */
    float dropout;        /* of attention weights, in training */
    /* A plan with any score, modifiers and masks. Its heads and dimensions replace the fields above. */
    const att_plan *plan;          /* [object] or NULL: scaled dot products */
    const att_plan *training_plan; /* [object] the plan with dropout, or NULL: `plan` */
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
    int64_t window; /* a query attends to the keys of its position and of `window` positions before and after it; 0: to
                     * all (Beltagy et al. 2020). With a plan: by that, as the scale is */
    float scale;    /* of the scores; 0: 1 / sqrt(head_dim) */
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
/* Makes an attention layer with the linear layers name.query, name.key, name.value and name.output (PyTorch's
 * MultiheadAttention has the first three as rows of in_proj_weight), the norms name.query_norm and name.key_norm, and
 * name.PARAM for parameters of the plan's stages. They are initialized as in PyTorch: the first three as one
 * Xavier-uniform matrix, biases with 0. */
ATT_API const att_nn_attention *att_nn_attention_new(att_nn_params *p, const char *name,
                                                     const att_nn_attention_config *c);

/* The arguments of an attention layer besides x. */
typedef struct att_nn_attention_call {
    size_t size;
    att_var *source;   /* [call] [source tokens, source_width], for cross-attention, or NULL: x */
    bool same_rows;    /* each row of the source is the same token as that row of x, perhaps before a norm */
    att_var *residual; /* [call] [tokens, width], added to the result; or NULL */
    const att_attention_args
        *args; /* [call] sequences (n_sequences, q_offsets, k_offsets), parameters; or NULL: one sequence */
    const att_positions *positions; /* [call] positions of the rows of x, for rotary encoding; needed with keep_cache;
                                     * or NULL: counted from args->q_offsets, after the tokens of the cache */
    const att_nn_dropout *dropout;  /* [call] or NULL */
    /* Incremental decoding: x has the next tokens, whose keys and values are appended to the cache. With keep_cache
     * nothing is appended, and x attends to the cache unchanged (cross-attention). */
    att_cache *cache; /* [call] */
    bool keep_cache;
    const att_plan *plan; /* [call] with a cache whose dtype is not that of the layer's plan: the same plan in the
                           * cache's dtype; without a cache, with dropout: the same plan with dropout of attention
                           * weights, instead of the layer's; or NULL */
} att_nn_attention_call;
/* Computes Concat(head_1, ..., head_h) W^O + b^O, head_i = Attention(x W_i^Q, source W_i^K, source W_i^V) (Vaswani et
 * al. 2017, 3.2.2): x [tokens, width] -> [tokens, width]. call or NULL: self-attention of one sequence. */
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
    int64_t width, heads, intermediate; /* features of x; heads; features between the two matrices of the feed-forward
                                         * network */
    att_activation activation;          /* of the feed-forward network; 0: ATT_ACTIVATION_RELU */
    bool gated;                         /* f(x W_gate) * (x W_inner): GeGLU, SwiGLU (Shazeer 2020) */
    bool no_bias;                       /* of all linear layers */
    bool causal;                        /* of self-attention, which in a decoder layer is always causal */
    float attention_dropout;            /* of attention weights */
    att_nn_order order;
    att_nn_norm_kind norm;
    float eps;          /* of the norms; 0: 1e-5 */
    double layer_scale; /* initial value of a trained factor for each feature of a sublayer's result (Touvron et al.
                         * 2021); 0: none */
    const att_nn_attention_config *attention, *cross; /* [call] settings of attention that replace width, heads,
                                                       * no_bias, causal and attention_dropout; or NULL: these */
    bool inner_dropout;     /* apply dropout to the feed-forward network's activations, too (PyTorch's
                             * TransformerEncoderLayer) */
    bool no_attention_norm; /* do not normalize what self-attention is applied to, as in ModernBERT's first layer, which
                             * follows a norm; order is then ATT_NN_ORDER_PRE_NORM or ATT_NN_ORDER_SANDWICH_NORM */
} att_nn_layer_config;

typedef struct att_nn_feed_forward {
    const att_nn_linear *inner, *outer, *gate; /* gate or NULL */
    att_activation activation;
    uint64_t dropout_id, inner_dropout_id; /* inner_dropout_id 0: none */
} att_nn_feed_forward;
/* Makes a feed-forward network with the linear layers name.inner [intermediate, width], name.outer [width,
 * intermediate] and, if gated, name.gate [intermediate, width]. It uses the fields width, intermediate, activation,
 * gated, no_bias and inner_dropout of c. */
ATT_API const att_nn_feed_forward *att_nn_feed_forward_new(att_nn_params *p, const char *name,
                                                           const att_nn_layer_config *c);
/* Computes f(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, 3.3), or (f(x W_gate) * (x W_1)) W_2, applies dropout and
 * adds residual or NULL: x [tokens, width] -> [tokens, width]. dropout or NULL: none. */
ATT_API att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x, att_var *residual,
                                           const att_nn_dropout *dropout);

/* The arguments of a layer besides x. */
typedef struct att_nn_layer_call {
    size_t size;
    const att_attention_args *args;  /* [call] of self-attention: sequences, masks; or NULL: one sequence */
    att_var *source;                 /* [call] [source tokens, width], for a decoder layer if there is no memory */
    const att_attention_args *cross; /* [call] of cross-attention: offsets of x and of the source; or NULL: one
                                      * sequence */
    const att_positions *positions;  /* [call] positions of the rows of x, for rotary encoding; or NULL: counted from
                                      * args->q_offsets */
    const att_nn_dropout *dropout;   /* [call] of each sublayer's result, and of attention weights; or NULL */
    att_cache *cache;                /* [call] incremental decoding: keys and values of the tokens before x; or NULL */
    att_cache *memory;               /* [call] keys and values of the source (att_nn_attention_cache_source); or NULL */
    const att_plan *plan;            /* [call] att_nn_attention_call.plan of self-attention */
} att_nn_layer_call;

typedef struct att_nn_encoder_layer {
    const att_nn_attention *attention;
    const att_nn_feed_forward *feed_forward;
    const att_nn_norm *attention_norm, *feed_forward_norm; /* NULL: ATT_NN_ORDER_RESULT_NORM, no_attention_norm */
    att_param *attention_scale, *feed_forward_scale;       /* [width], layer scale; or NULL */
    att_nn_order order;
    const att_nn_norm *attention_result_norm, *feed_forward_result_norm; /* or NULL, by the order */
} att_nn_encoder_layer;
/* Makes an encoder layer with name.attention, name.attention_norm, name.feed_forward, name.feed_forward_norm,
 * name.attention_scale and name.feed_forward_scale; the norms of results are name.attention_result_norm and
 * name.feed_forward_result_norm. With `causal` it is the layer of a decoder-only model. Its scopes are attention and
 * feed_forward; the layer itself opens none. */
ATT_API const att_nn_encoder_layer *att_nn_encoder_layer_new(att_nn_params *p, const char *name,
                                                             const att_nn_layer_config *c);
/* Applies an encoder layer: x [tokens, width] -> [tokens, width]. call or NULL: one sequence. After an error the cache
 * may have the new tokens: truncate it. */
ATT_API att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                            const att_nn_layer_call *call);

typedef struct att_nn_decoder_layer {
    const att_nn_attention *attention, *cross;
    const att_nn_feed_forward *feed_forward;
    const att_nn_norm *attention_norm, *cross_norm, *feed_forward_norm;
    att_param *attention_scale, *cross_scale, *feed_forward_scale; /* [width], layer scale; or NULL */
    att_nn_order order;
    const att_nn_norm *attention_result_norm, *cross_result_norm, *feed_forward_result_norm; /* or NULL, by the order */
} att_nn_decoder_layer;
/* Makes a decoder layer with the names of an encoder layer and name.cross, name.cross_norm, name.cross_result_norm and
 * name.cross_scale. Its scopes are attention, cross and feed_forward. */
ATT_API const att_nn_decoder_layer *att_nn_decoder_layer_new(att_nn_params *p, const char *name,
                                                             const att_nn_layer_config *c);
/* Applies a decoder layer to all tokens at once, or, with cache and memory, to the next ones: x [tokens, width] ->
 * [tokens, width]. With memory, k_offsets of `cross` are ignored. After an error the cache may have the new tokens:
 * truncate it. */
ATT_API att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x,
                                            const att_nn_layer_call *call);

/* ---- 6 Recurrent layers ------------------------------------------------- */

typedef struct att_nn_recurrent_config {
    size_t size;
    int64_t in, units, layers; /* units are per direction; layers times directions is at most ATT_NN_MAX_RECURRENT */
    bool bidirectional, lstm;  /* lstm: false: GRU */
} att_nn_recurrent_config;

enum { ATT_NN_MAX_RECURRENT = 16 };
typedef struct att_nn_recurrent {
    int64_t layers, directions;
    bool lstm;
    const att_recurrent *layer; /* [layers * directions]: i * directions + 1 is the reverse direction of layer i */
    uint64_t dropout_id;
} att_nn_recurrent;
/* Makes stacked GRU or LSTM layers, named as in PyTorch (name.weight_ih_l0, name.bias_hh_l1_reverse), initialized
 * uniformly in +-1 / sqrt(units). */
ATT_API const att_nn_recurrent *att_nn_recurrent_new(att_nn_params *p, const char *name,
                                                     const att_nn_recurrent_config *c);
/* Runs the layers: x [tokens, in], offsets [n + 1] -> outputs of the last layer [tokens, directions * units]. initial
 * [layers * directions] or NULL: states before the first step; NULL: zeros. last [layers * directions] or NULL:
 * receives the states after the last step; it may be the same array as initial. dropout or NULL: applied between
 * layers. The function opens no scope, because `last` must outlive it. */
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
/* Makes a convolution with name.weight and name.bias, both initialized uniformly in +-1 / sqrt(in * kernel
 * height * kernel width), as PyTorch's Conv2d. */
ATT_API const att_nn_conv *att_nn_conv_new(att_nn_params *p, const char *name, const att_nn_conv_config *c);
/* Applies a convolution: x [images, height, width, in] -> [images, new height, new width, out]: see att_conv2d. */
ATT_API att_var *att_nn_conv_apply(att_tape *t, const att_nn_conv *l, att_var *x);

typedef struct att_nn_batch_norm {
    att_param *weight, *bias, *running_mean, *running_var; /* [channels] */
    float eps;
    bool trainable; /* whether the running statistics are its own and may change */
} att_nn_batch_norm;
/* Makes a batch normalization with name.weight (ones), name.bias (zeros), name.running_mean (zeros) and
 * name.running_var (ones). eps 0: 1e-5. */
ATT_API const att_nn_batch_norm *att_nn_batch_norm_new(att_nn_params *p, const char *name, int64_t channels, float eps);
/* Normalizes each channel of x [images, height, width, channels] or [rows, channels] -> the same shape: see
 * att_batch_norm. options or NULL: defaults, not training; eps 0: the layer's. If weight and bias are frozen, training
 * also uses the running statistics and does not change them (PyTorch's eval). Errors: training with parameters that are
 * not trainable. */
ATT_API att_var *att_nn_batch_norm_apply(att_tape *t, const att_nn_batch_norm *l, att_var *x,
                                         const att_batch_norm_options *options);

#ifdef __cplusplus
}
#endif
#endif
