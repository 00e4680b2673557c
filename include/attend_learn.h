/* attend_learn.h - layers with gradients, on attend.h.
 *
 *   att_param      a weight: the caller's numbers, packed for the instruction set, and their gradient
 *   att_tape       a run of operations: its variables, and what a backward needs
 *   att_var        a result on a tape
 *   att_optimizer  what changes weights by their gradients
 *
 * Chapters: 1 Parameters, 2 Tapes, 3 Gradients, 4 Operations, 5 Optimizers, 6 Look and extend.
 *
 * An operation computes at once. When one fails it returns NULL; operations given NULL return NULL, and
 * att_var_value says what went wrong first: so layers are written without a check in every line. What may be
 * NULL is said as in attend.h; any other NULL is itself an error of the tape.
 *
 *     att_var *h = att_linear(t, x, w1, b1, ATT_GELU_ERF, NULL);
 *     att_var *y = att_linear(t, h, w2, b2, ATT_IDENTITY, x);       // + residual x
 *
 * Variables live until their scope ends. Matrices are [rows, features], f32, dense.
 *
 * On a tape that records, the same lines have gradients (of the loss by each number: Rumelhart et al. 1986):
 *
 *     att_var *y = att_linear(t, att_input(t, &x), w, b, ATT_TANH, NULL);
 *     att_tape_backward(t, y, &dy);                                 // dy: the loss's derivatives by y, in y's shape
 *     const float *dw = att_param_grad(w)->data;                    // [out, in], as w
 *
 * On one instruction set they have the same bits for any number of threads.
 *
 * Threads: an att_param may be used by several threads at once, an att_tape or att_optimizer by
 * one at a time. Closing or freeing must not overlap with use.
 */
#ifndef ATTEND_LEARN_H
#define ATTEND_LEARN_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_tape att_tape;
typedef struct att_var att_var;
typedef struct att_param att_param;

/* ---- 1 Parameters ------------------------------------------------------- */

/* A parameter: a view of the caller's numbers (rank 1 or more, f32, f16 or bf16; not copied, must outlive it) and a
 * copy packed for the running instruction set, made at first use. */
ATT_API att_status att_param_new(att_ctx *ctx, const att_tensor *value, att_param **out);
ATT_API void att_param_free(att_param *p);
ATT_API const att_tensor *att_param_value(const att_param *p);
/* Call after the numbers have changed: what was packed is packed again. Not while others use p. */
ATT_API void att_param_invalidate(att_param *p);
/* Its gradient, in its shape, f32 and dense: the sum over all backwards since it was cleared; data NULL where none has
 * reached it since. Its memory, of the context, is made at first use and stays until att_param_free. While a backward
 * adds to a parameter no other one may, nor may it be asked. */
ATT_API const att_tensor *att_param_grad(const att_param *p);
ATT_API void att_param_zero_grad(att_param *p);

/* ---- 2 Tapes: variables and scopes -------------------------------------- */

typedef struct att_tape_event att_tape_event;
typedef struct att_tape_config {
    size_t size;
    void (*hook)(void *user, const att_tape_event *event); /* called after each operation, or NULL: see Look */
    void *hook_user;
    bool record; /* keep what att_tape_backward needs until the reset, whatever scopes end */
    /* Look at what each operation makes, its backward too: the first number that is not finite is an error, whose
     * sentence has the scope and the operation. To find where a NaN comes from; it costs time. */
    bool detect_anomaly;
} att_tape_config;

/* cfg or NULL: defaults. */
ATT_API att_status att_tape_new(att_ctx *ctx, const att_tape_config *cfg, att_tape **out);
ATT_API void att_tape_free(att_tape *t);
/* Forgets all variables and the error; the next run gets its memory in one piece. */
ATT_API void att_tape_reset(att_tape *t);

/* A scope has a name (for att_tape_event) and frees at its end all variables made in it but the one given, keep or
 * NULL: att_scope s = att_scope_begin(t, "layer.0");  ...  return att_scope_end(t, s, y);   */
typedef struct att_scope {
    size_t mark;
    int depth;
} att_scope;
ATT_API att_scope att_scope_begin(att_tape *t, const char *name);
ATT_API att_var *att_scope_end(att_tape *t, att_scope s, att_var *keep);
/* Frees the same of the innermost scope, which stays open: for (...) x = att_scope_reset(t, s, layer(t, x)); keep or
 * NULL, as there. */
ATT_API att_var *att_scope_reset(att_tape *t, att_scope s, att_var *keep);

/* A variable of the caller's numbers (not copied). A constant has no gradient, and nothing is spent on what it would
 * be.
 */
ATT_API att_var *att_input(att_tape *t, const att_tensor *x);
ATT_API att_var *att_constant(att_tape *t, const att_tensor *x);
/* A parameter as a variable, in its shape: what reaches its gradient is added to the parameter's. */
ATT_API att_var *att_parameter(att_tape *t, att_param *p);
/* The view of a variable's numbers, or the first error since the last reset. */
ATT_API att_status att_var_value(att_tape *t, const att_var *v, att_tensor *out);

/* ---- 3 Gradients -------------------------------------------------------- */

/* Gradients of sum(dv * v), by the variables that v was made of and, added to what is there, by each parameter. dv:
 * f32, dense, in v's shape; dv or NULL: ones. Once between two resets. Parameters, the numbers of att_input and
 * att_constant and tensors in the args of att_attend must be there still, unchanged; ids, offsets and other arrays need
 * not, an operation that records copies them. Errors: t does not record, or has failed; v is none of its variables; the
 * shape of dv; a second time. After one, out of memory or cancelled too, all gradients are as they were, and it may be
 * called again.
 */
ATT_API att_status att_tape_backward(att_tape *t, const att_var *v, const att_tensor *dv);
/* Keeps v's gradient for att_var_grad, as those of att_input are; the memory of others is used again during the
 * backward. Called before v is used and before the backward; returns v. */
ATT_API att_var *att_retain_grad(att_tape *t, att_var *v);
/* The view of a variable's gradient, in its shape, until the reset; a view of a variable, as att_split_heads makes, has
 * one with it. Errors: there was no backward; what it began at does not depend on v; v's gradient was not kept. */
ATT_API att_status att_var_grad(att_tape *t, const att_var *v, att_tensor *out);

/* y = apply(user, t, x), which a backward runs again: what it made lives only while it runs, so of a long row of such
 * functions memory holds what goes between them and one of them, and a step costs one more forward (Chen et al. 2016).
 * Values and gradients keep their bits. apply uses no variables but x [n] and its own, and gives one of its own; user
 * [user_bytes] is copied, what it points to stays unchanged until the backward.
 *
 *     static att_var *layer(const void *user, att_tape *t, att_var *const *x) { ...  return y; }
 *     for (int i = 0; i < layers; i++)
 *         x = att_recompute(t, layer, &l[i], sizeof l[i], &x, 1);
 */
typedef att_var *(*att_recompute_fn)(const void *user, att_tape *t, att_var *const *x);
ATT_API att_var *att_recompute(att_tape *t, att_recompute_fn apply, const void *user, size_t user_bytes,
                               att_var *const *x, int n);

/* ---- 4 Operations ------------------------------------------------------- */

typedef enum att_activation {
    ATT_IDENTITY = 0,
    ATT_RELU,
    ATT_GELU_ERF,  /* x Phi(x)                                            (Hendrycks, Gimpel 2016) */
    ATT_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))       (the same, approximated) */
    ATT_TANH,
    ATT_SILU,   /* x / (1 + e^-x), Swish                                 (Elfwing et al. 2017, Ramachandran et al. 2017)
                 */
    ATT_SIGMOID /* 1 / (1 + e^-x) */
} att_activation;

typedef enum att_pooling { ATT_POOL_MEAN = 0, ATT_POOL_CLS, ATT_POOL_MAX } att_pooling;

/* activation(x weight^T + bias) + residual: x [rows, in], weight [out, in], bias [out] or NULL,
 * residual [rows, out] or NULL -> [rows, out]. Each row's bits depend on that row alone. */
ATT_API att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act,
                            att_var *residual);
/* The largest numbers in each row of x weight^T + bias, x [rows, in], weight [out, in], bias [out] or NULL: what a
 * search asks of a vocabulary. They are the numbers that att_linear gives, to the last bit, and of equals those of the
 * first columns. Nothing is recorded. Errors: shapes; a column in except that is not there; memory. */
typedef struct att_top_column {
    int64_t column; /* -1: there is none above -inf */
    float value;    /* then -inf */
} att_top_column;
/* Columns that are not among them */
typedef struct att_excluded_columns {
    const int32_t *column; /* [n] */
    int64_t n;
    bool in_log_sum; /* excluded columns still count in log_sum */
} att_excluded_columns;
/* The largest of each row, out [rows]; bias or NULL, except or NULL. A byte of each weight is read, which gives
 * bounds of all numbers; only those that may be the largest are computed. value: NaN where one that was computed is
 * NaN. */
ATT_API att_status att_linear_argmax(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                     const att_excluded_columns *except, att_top_column *out);
/* The n largest of each row, out [rows][n], and the logarithm of the sum of e^x over the row, log_sum [rows]: NaN where
 * a number is NaN or +inf; bias or NULL, except or NULL. The whole [rows, out] is never held. */
ATT_API att_status att_linear_topk(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                   const att_excluded_columns *except, int64_t n, att_top_column *out, double *log_sum);
/* Rows of table [n, features] by ids[count], each in [0, n) -> [count, features]. */
ATT_API att_var *att_embedding(att_tape *t, att_param *table, const int32_t *ids, int64_t count);
/* a x b of matrices [m, k] and [k, n], stored [k, m] and [n, k] where transposed -> [m, n]. */
ATT_API att_var *att_matmul(att_tape *t, att_var *a, att_var *b, bool transpose_a, bool transpose_b);
/* a + b, same shapes, or b's dimensions are the last of a's: a bias, say, added to each row. */
ATT_API att_var *att_add(att_tape *t, att_var *a, att_var *b);
/* a times b, number by number, same shapes. */
ATT_API att_var *att_mul(att_tape *t, att_var *a, att_var *b);
/* The sum of that over the last dimension: the dot products of rows, [rows, features] -> [rows]; of a vector: [1]. */
ATT_API att_var *att_dot(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_scale(att_tape *t, att_var *x, float factor);
/* n variables behind each other along dimension dim (negative: from the end), where alone they may differ. */
ATT_API att_var *att_concat(att_tape *t, int n, att_var *const *x, int dim);
/* [first, first + count) of dimension dim (negative: from the end). */
ATT_API att_var *att_slice(att_tape *t, att_var *x, int dim, int64_t first, int64_t count);
/* x [n, ...] at ids[count], each in [0, n), which may repeat -> [count, ...]. */
ATT_API att_var *att_gather(att_tape *t, att_var *x, const int32_t *ids, int64_t count);
/* (x - mean) / sqrt(variance + eps) * gamma + beta over the last dimension (Ba et al. 2016). */
ATT_API att_var *att_layer_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, float eps);
/* x / sqrt(mean of the squares + eps) * gamma over the last dimension (Zhang, Sennrich 2019). */
ATT_API att_var *att_rms_norm(att_tape *t, att_var *x, att_param *gamma, float eps);
/* Softmax over the last dimension, as att_tensor_softmax. */
ATT_API att_var *att_softmax(att_tape *t, att_var *x);
/* An activation alone. */
ATT_API att_var *att_activate(att_tape *t, att_var *x, att_activation act);
/* [tokens, heads * dim] -> [tokens, heads, dim], and back. Views: no copy. */
ATT_API att_var *att_split_heads(att_tape *t, att_var *x, int64_t heads);
ATT_API att_var *att_merge_heads(att_tape *t, att_var *x);
/* Where tokens stand in their sequences. */
typedef struct att_positions {
    size_t size;
    const int64_t *position_ids; /* [tokens], or NULL: one by one; else by */
    const int64_t *offsets;      /* [n + 1], ascending from 0: sequence b is rows [offsets[b], offsets[b + 1]) */
    int64_t n;
    const int64_t *starts; /* [n]: positions of their first tokens; or NULL: 0 */
} att_positions;

/* x [tokens, features] dropped, + residual or NULL: a number becomes 0 with probability p, else 1 / (1 - p) times as
 * much (Srivastava et al. 2014). Which ones depends on the seed, the sequence's id, position and feature alone: as in
 * attention, see att_attention_args.dropout_seed, Philox4x32-10 with
 *     key (low, high word of the seed), counter (feature, position / 4, 2^32 - 1, sequence id)
 * makes four words, and a number is kept where word position % 4 >= round(p 2^32). at: by offsets; ids [at->n]. Give
 * each place of a model a seed of its own. */
ATT_API att_var *att_dropout(att_tape *t, att_var *x, att_var *residual, float p, uint64_t seed,
                             const att_positions *at, const uint32_t *sequence_ids);

/* Pair i of sinusoidal positions is sin and cos of position / base^(2 i / features), to the last bit of a float or two
 * at any position (Vaswani et al. 2017, section 3.5). */
typedef struct att_sinusoidal_options {
    size_t size;
    bool interleaved; /* sin, cos, sin, cos ... as in the paper; false: all sines, then all cosines (Marian) */
    int64_t append;   /* so many features are put behind x's; 0: they are added to x's */
    double base;      /* 0: 10000 */
} att_sinusoidal_options;
/* x [tokens, features] + sinusoids, or [tokens, features + append]. options or NULL: defaults. */
ATT_API att_var *att_sinusoidal(att_tape *t, att_var *x, const att_positions *at,
                                const att_sinusoidal_options *options);
/* x [tokens, features] + rows of table [most positions, features] (Gehring et al. 2017). */
ATT_API att_var *att_learned_positions(att_tape *t, att_var *x, att_param *table, const att_positions *at);

/* Pair i of each head is turned by the angle position / base^(2 i / dims) (Su et al. 2021). */
typedef struct att_rotary_options {
    size_t size;
    bool interleaved; /* pairs are (0, 1), (2, 3) ... (GPT-J); false: (i, i + dims / 2) (Llama) */
    int64_t dims;     /* even: so many numbers of a head are turned, from the first; 0: all */
    double base;      /* 0: 10000 */
} att_rotary_options;
/* x [tokens, heads, dim], turned. options or NULL: defaults. */
ATT_API att_var *att_rotary(att_tape *t, att_var *x, const att_positions *at, const att_rotary_options *options);

/* Parameters of a plan's stages that are to have gradients: variables, in the shapes of the args' of the same names,
 * which are then left zero. NULL: none, or that of the args. */
typedef struct att_attend_params {
    size_t size;
    att_var *score_param[ATT_MAX_PARAMS];
    att_var *modifier_param[ATT_MAX_STAGES];
} att_attend_params;
/* Attention, ragged, by a plan in f32: q [tokens, heads, head_dim], k and v alike -> [tokens, heads, value_dim]. args
 * gives all else that the plan needs: offsets, masks, parameters, seed; its q, k, v, out and lse are left zero. What of
 * it shall learn is in params or NULL: nothing. The plan must outlive the tape's variables.
 *
 *     att_attend(t, plan, q, k, v, &args, ATT_OPTIONS(att_attend_params, .score_param = {att_parameter(t, w)}));
 */
ATT_API att_var *att_attend(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                            const att_attention_args *args, const att_attend_params *params);
/* Attention of new tokens, as many to each sequence of a cache, which they join first: q [sequences * n, heads,
 * head_dim], k and v alike -> [sequences * n, heads, value_dim]. k and v NULL: to what is there, and none joins. args
 * or NULL: masks and parameters, as for a call with a cache. After an error the cache is as it was. Nothing for a tape
 * that records. */
ATT_API att_var *att_attend_cached(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                                   att_cache *cache, const att_attention_args *args);
/* States of n sequences, [n, units]; cells: those of an LSTM. */
typedef struct att_recurrent_state {
    att_var *hidden, *cell;
} att_recurrent_state;

/* A layer of recurrent units. Weights are PyTorch's, rows by gates in its order: r, z, n of a GRU, i, f, g, o of an
 * LSTM. */
typedef struct att_recurrent {
    size_t size;
    att_param *weight_ih, *weight_hh; /* [gates * units, features] and [gates * units, units] */
    att_param *bias_ih, *bias_hh;     /* [gates * units] or NULL */
    bool reverse;                     /* from the last token of a sequence to its first */
    att_recurrent_state initial;      /* before the first step; NULL: zeros */
} att_recurrent;
/* The hidden state after each token of sequences, x [tokens, features], offsets [n + 1] -> [tokens, units]; and in
 * last or NULL the states after the last step, which of an empty sequence are its start. A sequence has the same
 * bits alone, in any batch, and in parts, of which the next one starts where the last one has ended.
 *
 *     r = sigmoid(W_r x + b_r + U_r h + c_r), z alike, n = tanh(W_n x + b_n + r (U_n h + c_n))
 *     h' = (1 - z) n + z h                                                                    (Cho et al. 2014)
 *
 *     i = sigmoid(W_i x + b_i + U_i h + c_i), f and o alike, g = tanh(W_g x + b_g + U_g h + c_g)
 *     c' = f c + i g, h' = o tanh(c')                        (Hochreiter, Schmidhuber 1997; Gers et al. 2000) */
ATT_API att_var *att_gru(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                         att_recurrent_state *last);
ATT_API att_var *att_lstm(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                          att_recurrent_state *last);
/* One row a sequence: x [tokens, features], offsets [n + 1] -> [n, features]; an empty sequence gives 0. */
ATT_API att_var *att_pool(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, att_pooling kind);
/* Each row divided by its Euclidean length, or by eps where that is less (PyTorch's F.normalize: eps = 1e-12). */
ATT_API att_var *att_normalize(att_tape *t, att_var *x, float eps);

typedef struct att_cross_entropy_options {
    size_t size;
    float label_smoothing; /* so much of each target, below 1, is shared out evenly to all classes (Szegedy et al. 2016)
                            */
    int64_t classes;       /* only the first so many of a row take part; 0: all */
    bool sum;              /* of rows; false: their mean */
    int64_t *count;        /* becomes the number of rows with a target; or NULL */
} att_cross_entropy_options;
/* -log softmax(logits)[target], summed or averaged over the rows that have a target -> [1]. logits [rows, classes];
 * targets [rows], one below 0: the row does not count. The gradient may be made in the place of the logits, whose
 * numbers are then gone after a backward. options or NULL: defaults. */
ATT_API att_var *att_cross_entropy(att_tape *t, att_var *logits, const int32_t *targets,
                                   const att_cross_entropy_options *options);
/* -t log s - (1 - t) log(1 - s) with s = sigmoid(logit), summed or averaged -> [1]. targets as the logits, from 0 to 1;
 * one below 0 does not count. count or NULL: becomes the number of those that do. */
ATT_API att_var *att_binary_cross_entropy(att_tape *t, att_var *logits, const float *targets, bool sum, int64_t *count);

/* Images are [images, height, width, channels]. */
typedef struct att_conv_options {
    size_t size;
    int64_t stride[2];  /* down and right; 0: 1 */
    int64_t padding[2]; /* zeros above and below, left and right: less than the weights' height and width */
} att_conv_options;
/* y[i, line, column] = bias + the sum of weight [out, in, height, width] times the part of x that begins at line
 * stride[0] line - padding[0] and column stride[1] column - padding[1] (LeCun et al. 1989; as PyTorch's Conv2d):
 * x [images, .., .., in] -> [images, (height of x + 2 padding[0] - height) / stride[0] + 1, the same of widths, out].
 * bias [out] or NULL; options or NULL: defaults. */
ATT_API att_var *att_conv2d(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                            const att_conv_options *options);
typedef struct att_pool_options {
    size_t size;
    int64_t kernel[2];  /* height and width of what is pooled */
    int64_t stride[2];  /* 0: as kernel */
    int64_t padding[2]; /* of nothing: a mean is that of the numbers inside */
} att_pool_options;
/* ATT_POOL_MAX or ATT_POOL_MEAN of each part of x, channel by channel; shapes as att_conv2d's. */
ATT_API att_var *att_pool2d(att_tape *t, att_var *x, att_pooling kind, const att_pool_options *options);

/* ---- 5 Optimizers ------------------------------------------------------- */
/* What learns is added once; a step then changes it by the gradients that backwards have left:
 *
 *     att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .beta2 = 0.98, .eps = 1e-9), &o);
 *     att_optimizer_add(o, weight, NULL);
 *     att_optimizer_add(o, bias, ATT_OPTIONS(att_param_options, .no_weight_decay = true));
 *     for (int64_t step = 1; step <= steps; step++) {
 *         for (int i = 0; i < n; i++) {                             // a step of n batches: gradients add up
 *             att_tape_backward(t, loss(t, next_batch()), NULL);
 *             att_tape_reset(t);
 *         }
 *         att_schedule_rate(&schedule, step, &rate);
 *         att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = rate, .scale = 1.0 / n, .clip = 1), &norm);
 *     }
 *
 * While it steps nobody else uses its parameters. */

typedef struct att_optimizer att_optimizer;

typedef enum att_optimizer_method {
    ATT_ADAMW = 0, /* Adam, and x becomes less by rate decay x      (Loshchilov, Hutter 2019) */
    ATT_ADAM,      /* decay x is added to the gradient              (Kingma, Ba 2015) */
    ATT_SGD        /* the same; m = momentum m + gradient, x -= rate m  (as PyTorch's SGD) */
} att_optimizer_method;

typedef struct att_optimizer_config {
    size_t size;
    att_optimizer_method method;
    double beta1, beta2, eps; /* of Adam; 0: 0.9, 0.999 and 1e-8. Vaswani et al. 2017: 0.9, 0.98 and 1e-9 */
    double momentum;          /* of ATT_SGD */
    double weight_decay;      /* of weights, towards 0 */
} att_optimizer_config;

/* How one parameter learns. */
typedef struct att_param_options {
    size_t size;
    bool frozen;                /* not at all: its gradient is cleared, and counts nowhere */
    bool no_weight_decay;       /* without decay: biases and norms */
    const int64_t *frozen_rows; /* [n_frozen_rows], ascending, of the first dimension: the same of these rows */
    int64_t n_frozen_rows;
} att_param_options;

/* Errors name the field. Moments are zeros. config or NULL: defaults. */
ATT_API att_status att_optimizer_new(att_ctx *ctx, const att_optimizer_config *config, att_optimizer **out);
ATT_API void att_optimizer_free(att_optimizer *o);
/* Adds a parameter, which must outlive o: f32, dense, of numbers that may be written. They are counted from 0 in the
 * order of these calls. options or NULL: defaults. Errors: another type, strides, one that was added before, rows that
 * it does not have. */
ATT_API att_status att_optimizer_add(att_optimizer *o, att_param *param, const att_param_options *options);

typedef struct att_update {
    size_t size;
    double rate;  /* of learning */
    double scale; /* of gradients: 1 / batches or 1 / tokens where they have added up; 0: 1 */
    double clip;  /* the greatest norm; longer gradients are made that long (Pascanu et al. 2013); 0: none */
} att_update;
/* One step of all parameters that have a gradient; then gradients are cleared and what was packed is packed again.
 * norm or NULL: the Euclidean one of all scaled gradients together, before it is clipped. The bits are the same
 * for any number of threads. Errors: a rate that is none; no gradient; one that is not finite, which the sentence names
 * (norm then is not finite either): nothing was changed then, gradients neither. */
ATT_API att_status att_optimizer_step(att_optimizer *o, const att_update *update, double *norm);

/* Its state, for checkpoints: views of numbers that may be read and written between steps. With parameters of the same
 * bits, too, what comes next has the same bits. */
ATT_API att_tensor *att_optimizer_steps(att_optimizer *o); /* i64 [1]: steps that were taken */
/* Moment k of a parameter, in its shape, f32, dense: Adam's m (0) and v (1), momentum's m (0); else NULL. */
ATT_API att_tensor *att_optimizer_moment(att_optimizer *o, int64_t param, int k);

/* Rates grow from 0 to `max_rate` in `warmup` steps, in proportion to the step, and then: */
typedef enum att_schedule_kind {
    ATT_CONSTANT = 0, /* stay */
    ATT_INVERSE_SQRT, /* max_rate sqrt(warmup / step); with max_rate = 1 / sqrt(d_model warmup) Vaswani et al. 2017, eq.
                         3 */
    ATT_COSINE,       /* fall by half a cosine to `min_rate` at `steps`, and stay there (Loshchilov, Hutter 2017) */
    ATT_LINEAR        /* fall in proportion to the step, to `min_rate` at `steps`, and stay there */
} att_schedule_kind;

typedef struct att_schedule {
    size_t size;
    att_schedule_kind kind;
    double max_rate;
    int64_t warmup;  /* steps; 0: none */
    int64_t steps;   /* of ATT_COSINE, with those of warmup */
    double min_rate; /* of ATT_COSINE */
} att_schedule;
/* The rate of a step, of which the first is 1. */
ATT_API att_status att_schedule_rate(const att_schedule *schedule, int64_t step, double *rate);

/* out = the mean of x [n], as of the same parameter in the last n checkpoints: f32, f16 or bf16, dense, all in out's
 * shape; out f32, dense, apart from them or one of them. Summed in double. (Vaswani et al. 2017, section 6.1) */
ATT_API att_status att_average(att_ctx *ctx, const att_tensor *x, int64_t n, const att_tensor *out);

/* ---- 6 Look and extend -------------------------------------------------- */

/* What att_tape_config.hook is shown: pointers are valid during the call. */
struct att_tape_event {
    const char *op;    /* "linear", "attend", ... */
    const char *scope; /* "encoder/layer.3/attention" */
    const att_tensor *output;
    const att_plan *plan;           /* "attend" only: with args, what att_weights needs */
    const att_attention_args *args; /* "attend" only */
};

/* Fails the tape as an operation does: the first sentence stays, with the scope's path in front. Returns NULL. */
ATT_API att_var *att_tape_fail(att_tape *t, att_status s, const char *format, ...) ATT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
