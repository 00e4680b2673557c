/* attend_learn.h - neural network layers with automatic differentiation, on top of attend.h.
 *
 * att_param a weight: a view of the caller's data, its packed copy, and its gradient
 *   att_tape       records operations; owns their results and what backward needs
 *   att_var        the result of an operation on a tape
 *
 * Chapters: 1 Parameters, 2 Tapes, 3 Gradients, 4 Operations, 5 Hooks and extension. Optimizers are in
 * attend_optimizer.h.
 *
 * Operations compute at once (eager mode). An operation that fails returns NULL; an operation that is passed NULL
 * returns NULL; att_var_value returns the first error. So a layer needs no check after each line. attend.h states how
 * arguments that may be NULL are marked; any other NULL is an error of the tape.
 *
 *     att_var *h = att_linear(t, x, w1, b1, ATT_ACTIVATION_GELU_ERF, NULL);
 *     att_var *y = att_linear(t, h, w2, b2, ATT_ACTIVATION_IDENTITY, x);       // + residual x
 *
 * A variable lives until its scope ends. Matrices are [rows, features], f32, dense.
 *
 * On a tape with `record` set, the same lines have gradients:
 *
 *     att_var *y = att_linear(t, att_input(t, &x), w, b, ATT_ACTIVATION_TANH, NULL);
 *     att_tape_backward(t, y, &dy);                                 // dy: dLoss/dy, in y's shape
 *     const float *dw = att_param_grad(w)->data;                    // [out, in], as w
 *
 * Gradients have the same bits for any number of threads, on one instruction set.
 *
 * Threads: several threads may use an att_param at once, but only one at a time an att_tape. Freeing an object must not
 * overlap with its use. */
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

/* Makes a parameter: a view of the caller's data (rank 1 or more; f32, f16 or bf16; not copied, must outlive the
 * parameter) and a copy packed for the running instruction set, which is made at first use. For att_linear the packed
 * copy of f16 or bf16 has 16 bits, too. */
ATT_API att_status att_param_new(att_ctx *ctx, const att_tensor *value, att_param **out);
ATT_API void att_param_free(att_param *p);
ATT_API const att_tensor *att_param_value(const att_param *p);
/* Discards the packed copy, which is then made again at the next use. Call it after the data has changed. No other
 * thread may use p meanwhile. */
ATT_API void att_param_invalidate(att_param *p);
/* Returns the gradient, in the shape of the parameter, f32, dense: the sum over all backward calls since
 * att_param_zero_grad. Its data is NULL if no backward has reached p since. The memory belongs to p, from first use to
 * att_param_free, or to an optimizer (att_optimizer_gradients). While a backward adds to it, no other backward may add
 * to it, and no thread may read it. */
ATT_API const att_tensor *att_param_grad(const att_param *p);
ATT_API void att_param_zero_grad(att_param *p);
/* Freezes a parameter: backward computes no gradient of it, and its att_param_grad stays NULL. A variable that depends
 * only on frozen parameters and constants requires no gradient, so backward does no work for it, and a tape that
 * records keeps nothing for it. A new parameter is not frozen. Set it before the forward pass and do not change it
 * until after the backward; optimizers read it once, in att_optimizer_add. p or NULL: false. */
ATT_API void att_param_set_frozen(att_param *p, bool frozen);
ATT_API bool att_param_frozen(const att_param *p);
/* Returns whether optimizers apply weight decay to p. It is true for a new parameter. In att_nn_params it is false for
 * parameters of one dimension, biases and weights of norms, and for those that models exclude, such as embeddings of
 * positions. p or NULL: false. */
ATT_API bool att_param_weight_decay(const att_param *p);
ATT_API void att_param_set_weight_decay(att_param *p, bool decay); /* p or NULL */
/* States that the value is a view of a file that is mapped into memory for reading. Its pages are then released to the
 * system (att_release_mapped) as soon as an operation has made a copy of it, as products do at their first use of a
 * parameter, so that its numbers are in memory once. It is false for a new parameter. p or NULL. */
ATT_API void att_param_set_mapped(att_param *p, bool mapped);
/* Returns the bytes of the copies of the value, in other layouts and types, that operations have made and that p keeps.
 * p or NULL: 0. Other threads may compute meanwhile. */
ATT_API size_t att_param_copies(const att_param *p);

/* How a new parameter is initialized. For a shape [out, in, ...], fan_in is in and fan_out is out, each times the
 * product of the other dimensions. */
typedef enum att_init_kind {
    ATT_INIT_CONSTANT = 0,     /* all elements are value; so a struct of zeros means zeros */
    ATT_INIT_UNIFORM,          /* in +-value */
    ATT_INIT_NORMAL,           /* standard deviation value */
    ATT_INIT_TRUNCATED_NORMAL, /* standard deviation value, truncated at two standard deviations from 0 */
    ATT_INIT_FAN_IN_UNIFORM,   /* in +-gain / sqrt(fan_in): PyTorch's Linear and Conv2d */
    ATT_INIT_XAVIER_UNIFORM,   /* in +-gain sqrt(6 / (fan_in + fan_out))                  (Glorot, Bengio 2010) */
    ATT_INIT_XAVIER_NORMAL,    /* standard deviation gain sqrt(2 / (fan_in + fan_out))    (the same) */
    ATT_INIT_KAIMING_UNIFORM,  /* in +-gain sqrt(3 / fan_in)                              (He et al. 2015) */
    ATT_INIT_KAIMING_NORMAL    /* standard deviation gain / sqrt(fan_in)                  (the same) */
} att_init_kind;
typedef struct att_init {
    size_t size;
    att_init_kind kind;
    double value;
    double gain;             /* for the kinds with fans; 0: 1, for Kaiming sqrt(2) (ReLU) */
    int64_t fan_in, fan_out; /* 0: by x's shape */
} att_init;
/* Initializes x (f32, dense). Element i depends only on seed, name and i: it is the same on all machines, for any
 * number of threads. init or NULL: zeros. Errors: type or strides; x has fewer than two dimensions and a fan is needed
 * but not given; numbers that are not finite. */
ATT_API att_status att_initialize(att_ctx *ctx, const att_tensor *x, const att_init *init, uint64_t seed,
                                  const char *name);

/* ---- 2 Tapes: variables and scopes -------------------------------------- */

/* What the products of linear layers compute in: att_linear, forward and backward, and what selects from or averages
 * over its result without storing it (att_linear_argmax, att_linear_topk, att_linear_cross_entropy).
 *
 * In bf16, weights of f32, f16 or bf16 and activations are rounded to bf16, to nearest even, and numbers below 2^-126
 * in magnitude become 0; products of two are exact, and sums, biases, activations, residuals, results and gradients are
 * f32. Weights are packed once, in 16 bits a number, and activations are rounded in each product. What bf16 cannot
 * hold, numbers above 3.3895e38, becomes infinite. A row has the same bits alone and in any batch, for any number of
 * threads; docs/ATTENTION.md states the order of sums, which depends on the instruction set. Quantized weights are
 * multiplied as they are in either; all other operations compute in f32. It is mixed precision as in PyTorch's
 * autocast, except that results between layers stay f32. */
typedef enum att_compute {
    ATT_COMPUTE_F32 = 0,
    ATT_COMPUTE_BF16, /* on avx512bf16 and amx */
    ATT_COMPUTE_AUTO  /* BF16 where the processor multiplies it faster than f32: on amx, and on avx512bf16 unless the
                       * processor is Intel's, whose vectors need twice the time for it; otherwise F32 */
} att_compute;
ATT_API const char *att_compute_name(att_compute c); /* "f32", "bf16", "auto"; NULL: c is not an att_compute */
/* Chooses what to compute in: sets *out to ATT_COMPUTE_F32 or ATT_COMPUTE_BF16, by the context's instruction set and
 * the processor, never by timing. It asks the system for AMX tiles where they are used. If these are refused, AUTO
 * becomes F32 on Intel's processors, BF16 is computed in vectors, and a note (att_config) reports it. Errors: wanted is
 * not an att_compute; ATT_ERR_UNSUPPORTED: wanted is BF16, and the instruction set does not multiply it. */
ATT_API att_status att_compute_choose(att_ctx *ctx, att_compute wanted, att_compute *out);

typedef struct att_tape_event att_tape_event;
typedef struct att_tape_config {
    size_t size;
    void (*hook)(void *user, const att_tape_event *event); /* [object] or NULL: called after each operation, and at the
                                                            * end of scopes; see chapter 5 */
    void *hook_user;                                       /* [object] of both */
    bool record; /* keep what att_tape_backward needs until the reset, even past the end of scopes */
    /* Check the result of each operation, forward and backward: the first value that is not finite is an error that
     * names the scope and the operation (PyTorch's set_detect_anomaly). For finding the origin of a NaN; slow. */
    bool detect_anomaly;
    att_status (*before_attend)(void *user, const char *scope, const att_plan **plan,
                                att_attention_args *args); /* [object] or NULL: called before each att_attend, whose
                                                            * plan and args it may change: see chapter 5 */
    att_compute compute; /* what linear layers compute in; errors as in att_compute_choose */
} att_tape_config;

/* cfg or NULL: defaults. */
ATT_API att_status att_tape_new(att_ctx *ctx, const att_tape_config *cfg, att_tape **out);
ATT_API void att_tape_free(att_tape *t);
/* Frees all variables and clears the error. The tape keeps the memory, as one block, for the next run. */
ATT_API void att_tape_reset(att_tape *t);
/* Returns what the linear layers of a tape compute in, ATT_COMPUTE_F32 or ATT_COMPUTE_BF16. t or NULL: F32. */
ATT_API att_compute att_tape_compute(const att_tape *t);
/* Returns the bytes of memory of a tape. */
ATT_API size_t att_tape_bytes(const att_tape *t);
/* Frees memory that no variable uses: all of it after a reset. */
ATT_API void att_tape_trim(att_tape *t);

/* Begins and ends a scope, whose name is used in error messages and by hooks. att_scope_end frees all variables made in
 * the scope except `keep`, which moves to the enclosing scope; keep or NULL.
 *   att_scope s = att_scope_begin(t, "layer.0");  ...  return att_scope_end(t, s, y); */
typedef struct att_scope {
    size_t mark;
    int depth;
} att_scope;
ATT_API att_scope att_scope_begin(att_tape *t, const char *name);
ATT_API att_var *att_scope_end(att_tape *t, att_scope s, att_var *keep);
/* Frees all variables made in a scope except `keep`, as att_scope_end does, but leaves the scope open. It must be the
 * innermost scope. keep or NULL.
 *   for (...) x = att_scope_reset(t, s, layer(t, x)); */
ATT_API att_var *att_scope_reset(att_tape *t, att_scope s, att_var *keep);

/* Makes a variable that is a view of the caller's data (not copied). A constant has no gradient, and backward does no
 * work for it, nor for variables that depend only on constants and frozen parameters. */
ATT_API att_var *att_input(att_tape *t, const att_tensor *x);
ATT_API att_var *att_constant(att_tape *t, const att_tensor *x);
/* Makes a variable of a parameter, in its shape. Its gradient is added to the parameter's. If the parameter is frozen,
 * the variable is a constant.
 */
ATT_API att_var *att_parameter(att_tape *t, att_param *p);
/* Returns the value of a variable as a view, or the first error since the last reset. */
ATT_API att_status att_var_value(att_tape *t, const att_var *v, att_tensor *out);

/* ---- 3 Gradients -------------------------------------------------------- */

/* Reverse-mode differentiation: computes the gradients of sum(dv * v) by every variable that v depends on, and adds
 * those by parameters to att_param_grad. dv: f32, dense, in v's shape; dv or NULL: ones. At most once between two
 * resets. Parameters, the data of att_input and att_constant and the tensors in the args of att_attend must still
 * exist, unchanged. Arrays such as ids and offsets need not: a recording operation copies them. Errors: t does not
 * record or has failed; v is not a variable of t; the shape of dv; a second call. After an error (out of memory and
 * cancelled included) all gradients are unchanged and the call may be repeated. */
ATT_API att_status att_tape_backward(att_tape *t, const att_var *v, const att_tensor *dv);
/* Keeps the gradient of v for att_var_grad (PyTorch's retain_grad); otherwise only inputs have one after backward. Call
 * it before v is used. Returns v. */
ATT_API att_var *att_retain_grad(att_tape *t, att_var *v);
/* Returns the gradient of a variable, as a view in its shape, valid until the reset. A view of a variable, such as
 * att_split_heads returns, shares its gradient. Errors: no backward yet; the variable of the backward does not depend
 * on v; the gradient of v was not retained. */
ATT_API att_status att_var_grad(att_tape *t, const att_var *v, att_tensor *out);

/* Activation checkpointing (Chen et al. 2016): computes y = apply(user, t, x) without keeping its intermediate results,
 * which are computed again during backward. Memory holds the inputs of all such functions and the intermediate results
 * of one; a step costs one more forward. Values and gradients have the same bits as without it. apply may use only x
 * [n] and variables that it makes, and returns one of these. user [user_bytes] is copied, and what it points to must
 * not change until the backward.
 *
 *     static att_var *layer(const void *user, att_tape *t, att_var *const *x) { ...  return y; }
 *     for (int i = 0; i < layers; i++)
 *         x = att_recompute(t, layer, &l[i], sizeof l[i], &x, 1); */
typedef att_var *(*att_recompute_fn)(const void *user, att_tape *t, att_var *const *x);
ATT_API att_var *att_recompute(att_tape *t, att_recompute_fn apply, const void *user, size_t user_bytes,
                               att_var *const *x, int n);

/* ---- 4 Operations ------------------------------------------------------- */

typedef enum att_activation {
    ATT_ACTIVATION_IDENTITY = 0,
    ATT_ACTIVATION_RELU,
    ATT_ACTIVATION_GELU_ERF,  /* x Phi(x)                                            (Hendrycks, Gimpel 2016) */
    ATT_ACTIVATION_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))       (the same, approximated) */
    ATT_ACTIVATION_TANH,
    ATT_ACTIVATION_SILU,      /* x / (1 + e^-x), Swish          (Elfwing et al. 2017, Ramachandran et al. 2017) */
    ATT_ACTIVATION_SIGMOID,   /* 1 / (1 + e^-x) */
    ATT_ACTIVATION_QUICK_GELU /* x / (1 + e^(-1.702 x)), of CLIP                       (Hendrycks, Gimpel 2016) */
} att_activation;

typedef enum att_pooling {
    ATT_POOLING_MEAN = 0,
    ATT_POOLING_CLS, /* the first row */
    ATT_POOLING_MAX,
    ATT_POOLING_MEAN_SQRT,     /* the sum / sqrt(number of rows) */
    ATT_POOLING_WEIGHTED_MEAN, /* sum_i i x_i / sum_i i, where rows are counted from 1 */
    ATT_POOLING_LAST           /* the last row */
} att_pooling;

/* Computes activation(x weight^T + bias) + residual: x [rows, in], weight [out, in], bias [out] or NULL, residual
 * [rows, out] or NULL -> [rows, out]. The bits of a row depend only on that row. With quantized weights, x is also
 * rounded, to int8 in blocks of 32 with d = largest |x| / 127, and products of blocks are summed as integers. On a tape
 * that records, x is not rounded, and the weights are used as f32. Others are multiplied in the tape's att_compute. */
ATT_API att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act,
                            att_var *residual);
/* An entry of a row of x weight^T + bias, as att_linear_argmax and att_linear_topk return it. These select tokens from
 * the logits of a vocabulary without storing them. Values have the bits of att_linear on the same tape; among equal
 * values the lower column comes first. Nothing is recorded. Errors: shapes; an excluded column out of range; out of
 * memory. */
typedef struct att_top_column {
    int64_t column; /* -1: no value is above -inf */
    float value;    /* -inf if column is -1 */
} att_top_column;
/* Columns that are never returned, such as tokens that must not be generated. */
typedef struct att_excluded_columns {
    size_t size;
    const int32_t *column; /* [call] [n] */
    int64_t n;
    bool in_log_sum;        /* excluded columns still count in log_sum */
    const int64_t *offsets; /* [call] [rows + 1], for att_linear_topk: row r excludes column[offsets[r]] to
                             * column[offsets[r + 1] - 1], ascending; or NULL: every row excludes all of them, in any
                             * order */
} att_excluded_columns;
/* Finds the largest entry of each row, out [rows]; bias or NULL, except or NULL. In f32, unless weights are quantized,
 * it computes bounds of all entries from an int8 copy of the weights, and exact values only of entries that may be the
 * largest. value is NaN if a computed entry is NaN. */
ATT_API att_status att_linear_argmax(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                     const att_excluded_columns *except, att_top_column *out);
/* Finds the n largest entries of each row in descending order, out [rows][n]. If an entry of the row is NaN, the first
 * has column -1 and value NaN. log_sum or NULL: receives the log-sum-exp of each row, log_sum [rows], NaN if an entry
 * is NaN or +inf; NULL is faster. bias or NULL, except or NULL. The [rows, out] matrix is never stored as a whole. */
ATT_API att_status att_linear_topk(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                   const att_excluded_columns *except, int64_t n, att_top_column *out, double *log_sum);
/* Reads rows ids [count] of table [n, features], each id in [0, n) -> [count, features]. */
ATT_API att_var *att_embedding(att_tape *t, att_param *table, const int32_t *ids, int64_t count);
/* Computes dot products of row i of x [rows, features] with rows ids[i][0] to ids[i][count - 1] of table [n, features],
 * each id in [0, n): the scores of some of many classes. ids [rows, count] -> [rows, count]. The rows of the table are
 * not copied. */
ATT_API att_var *att_embedding_dot(att_tape *t, att_var *x, att_param *table, const int32_t *ids, int64_t count);
/* Computes the matrix product a b: a [m, k], or [k, m] if transposed, b [k, n], or [n, k] if transposed -> [m, n].
 * options or NULL. */
ATT_API att_var *att_matmul(att_tape *t, att_var *a, att_var *b, const att_matmul_options *options);
/* Computes a + b, a - b and a b elementwise, with shapes broadcast as in NumPy and PyTorch: dimensions are aligned from
 * the last one, and those of a pair are equal, or one of them is 1 or missing and is repeated. [4, 1, 3] and [5, 3] ->
 * [4, 5, 3]. Gradients are summed over the dimensions in which an operand was broadcast. Errors: two dimensions of a
 * pair differ and neither is 1. */
ATT_API att_var *att_add(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_sub(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_mul(att_tape *t, att_var *a, att_var *b);
/* Computes the sum or mean over dimension dim (negative: from the end), which is removed: [4, 5, 3], dim 1 -> [4, 3]. A
 * vector, and any x with dim ATT_ALL_DIMS -> [1]. Over no elements both are 0. Errors: x has no such dimension.
 * (PyTorch's sum, mean) */
enum { ATT_ALL_DIMS = -1000 };
ATT_API att_var *att_sum(att_tape *t, att_var *x, int dim);
ATT_API att_var *att_mean(att_tape *t, att_var *x, int dim);
/* Computes e^x and the natural logarithm of each element, to 2 units in the last place. The logarithm of 0 is -inf, and
 * that of a negative number NaN. */
ATT_API att_var *att_exp(att_tape *t, att_var *x);
ATT_API att_var *att_log(att_tape *t, att_var *x);
/* Returns x in shape dim [rank] as a view: nothing is copied. One dimension may be -1 and is then computed. Errors:
 * rank not in [1, 6]; a negative dimension; a different number of elements than x has; -1 together with a 0. (PyTorch's
 * view) */
ATT_API att_var *att_reshape(att_tape *t, att_var *x, int rank, const int64_t *dim);
/* Copies x with two dimensions exchanged (negative: from the end): [4, 5, 3], 0 and -1 -> [3, 5, 4]. Errors: x has no
 * such dimension. (PyTorch's transpose) */
ATT_API att_var *att_transpose(att_tape *t, att_var *x, int dim0, int dim1);
/* Computes dot products over the last dimension: a and b [rows, features] -> [rows]; two vectors -> [1]. */
ATT_API att_var *att_dot(att_tape *t, att_var *a, att_var *b);
/* Multiplies each element by factor, which has no gradient. */
ATT_API att_var *att_scale(att_tape *t, att_var *x, float factor);
/* Concatenates n variables along dimension dim (negative: from the end); all other dimensions are equal. */
ATT_API att_var *att_concat(att_tape *t, int n, att_var *const *x, int dim);
/* Copies elements [first, first + count) of dimension dim (negative: from the end). */
ATT_API att_var *att_slice(att_tape *t, att_var *x, int dim, int64_t first, int64_t count);
/* Copies elements ids [count] of the first dimension of x [n, ...], each id in [0, n), repeats allowed -> [count,
 * ...]. */
ATT_API att_var *att_gather(att_tape *t, att_var *x, const int32_t *ids, int64_t count);
/* Layer normalization: (x - mean) / sqrt(variance + eps) * gamma + beta over the last dimension (Ba et al. 2016). beta
 * or NULL: 0. */
ATT_API att_var *att_layer_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, float eps);
/* RMS normalization: x / sqrt(mean(x^2) + eps) * gamma over the last dimension (Zhang, Sennrich 2019). */
ATT_API att_var *att_rms_norm(att_tape *t, att_var *x, att_param *gamma, float eps);
/* Softmax over the last dimension, like att_tensor_softmax. */
ATT_API att_var *att_softmax(att_tape *t, att_var *x);
/* Applies an activation to each element. */
ATT_API att_var *att_activate(att_tape *t, att_var *x, att_activation act);
/* Split [tokens, heads * dim] -> [tokens, heads, dim] and merge it again, as views: nothing is copied. */
ATT_API att_var *att_split_heads(att_tape *t, att_var *x, int64_t heads);
ATT_API att_var *att_merge_heads(att_tape *t, att_var *x);
/* Positions of tokens: given for each token as position_ids, or counted from the start of each sequence. */
typedef struct att_positions {
    size_t size;
    const int64_t *position_ids; /* [call] [tokens], or NULL: by offsets */
    const int64_t *offsets;      /* [call] [n + 1], ascending from 0: sequence b is rows [offsets[b], offsets[b + 1]) */
    int64_t n;
    const int64_t *starts; /* [call] [n]: position of the first token of each sequence; or NULL: 0 */
} att_positions;

/* Applies dropout (Srivastava et al. 2014), and adds residual or NULL: an element of x [tokens, features] becomes 0
 * with probability p, and otherwise 1 / (1 - p) times as much. The mask depends only on the seed, the sequence's id,
 * the position and the feature, in the same way as in attention (att_attention_args.dropout_seed): Philox4x32-10 with
 *   key (low, high word of the seed), counter (feature, position / 4, 2^32 - 1, sequence id)
 * yields four words, and an element is kept if word position % 4 >= round(p 2^32). at must have offsets; sequence_ids
 * [at->n]. Use a different seed for each dropout layer of a model. */
ATT_API att_var *att_dropout(att_tape *t, att_var *x, att_var *residual, float p, uint64_t seed,
                             const att_positions *at, const uint32_t *sequence_ids);

/* Sinusoidal position encoding: pair i is sin and cos of position / base^(2 i / features), accurate to one or two units
 * in the last place of a float at any position (Vaswani et al. 2017, section 3.5). */
typedef struct att_sinusoidal_options {
    size_t size;
    bool interleaved; /* sin, cos, sin, cos ... as in the paper; false: all sines, then all cosines (Marian) */
    int64_t append;   /* number of features appended to x; 0: the encoding is added to x */
    double base;      /* 0: 10000 */
} att_sinusoidal_options;
/* Adds the encoding to x [tokens, features], or appends it -> [tokens, features + append]. options or NULL:
 * defaults. */
ATT_API att_var *att_sinusoidal(att_tape *t, att_var *x, const att_positions *at,
                                const att_sinusoidal_options *options);
/* Adds rows of table [max positions, features], one for each position, to x [tokens, features] (Gehring et al.
 * 2017). */
ATT_API att_var *att_learned_positions(att_tape *t, att_var *x, att_param *table, const att_positions *at);

/* Rotary position encoding: pair i of each head is rotated by the angle position / base^(2 i / dims) (Su et al. 2021),
 * or position * frequencies[i]. */
typedef struct att_rotary_options {
    size_t size;
    bool interleaved;          /* pairs are (0, 1), (2, 3) ... (GPT-J); false: (i, i + dims / 2) (Llama) */
    int64_t dims;              /* even: only the first dims features of a head are rotated; 0: all */
    double base;               /* 0: 10000 */
    const double *frequencies; /* [call] [dims / 2], radians per position: Llama 3, YaRN; or NULL: by base */
    double factor;             /* of sin and cos: YaRN's attention factor (Peng et al. 2023); 0: 1 */
} att_rotary_options;
/* Rotates x [tokens, heads, dim]. options or NULL: defaults. */
ATT_API att_var *att_rotary(att_tape *t, att_var *x, const att_positions *at, const att_rotary_options *options);

/* Parameters of a plan's stages that receive gradients. */
typedef struct att_attend_params {
    size_t size;
    att_var *const *param; /* [call] [n_params], in the order of args.param; each or NULL: the args have the parameter,
                            * if there is one. Where there is a variable, the entry of args.param is zero or left out */
    int n_params;
} att_attend_params;
/* Computes ragged attention by a plan in f32: q [tokens, heads, head_dim], k [tokens, kv_heads, key_dim], v [tokens,
 * kv_heads, value_dim] -> [tokens, heads, value_dim]. args has everything else that the plan needs: offsets, masks,
 * parameters, seed; its q, k, v, out and lse are left zero. params or NULL: variables that receive gradients, in place
 * of parameters of args; NULL: none. The plan must outlive the result and its backward.
 *
 *     att_var *const param[] = {att_parameter(t, w)};
 *     att_attend(t, plan, q, k, v, &args, ATT_OPTIONS(att_attend_params, .param = param, .n_params = 1)); */
ATT_API att_var *att_attend(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                            const att_attention_args *args, const att_attend_params *params);
/* Computes incremental attention with a cache: appends n tokens to each sequence of the cache, then attends. q
 * [sequences * n, heads, head_dim], k and v [sequences * n, kv_heads, dim] -> [sequences * n, heads, value_dim]. If k
 * and v are NULL, it attends to the cache unchanged. q may have another n than k and v.
 *
 * args or NULL: masks and parameters, as for an attention call with a cache. If it has n_sequences (that of the cache)
 * and q_offsets, the batch is ragged: sequence b has rows [q_offsets[b], q_offsets[b + 1]) of q, k and v, which may be
 * none. If it has k_offsets, too, these are the rows of k and v, for example if only the last token of a prompt
 * attends.
 *
 * The dtype of plan and cache is the type in which keys and values are stored. If it is f16 or bf16, k, v, q and the
 * result are rounded to it, and the bits are those of att_forward on tensors of that type; att_cache in attend.h states
 * which ones equal a full pass. After an error the cache is unchanged. Error: the tape records. */
ATT_API att_var *att_attend_cached(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                                   att_cache *cache, const att_attention_args *args);
/* State of a recurrent layer for n sequences, each [n, units]; cell is for LSTM only. */
typedef struct att_recurrent_state {
    att_var *hidden, *cell;
} att_recurrent_state;

/* A recurrent layer. Weights are in PyTorch's layout, rows grouped by gate: r, z, n for a GRU and i, f, g, o for an
 * LSTM. */
typedef struct att_recurrent {
    size_t size;
    att_param *weight_ih, *weight_hh; /* [call] [gates * units, features] and [gates * units, units] */
    att_param *bias_ih, *bias_hh;     /* [call] [gates * units] or NULL */
    bool reverse;                     /* process each sequence from its last token to its first */
    att_recurrent_state initial;      /* state before the first step; NULL: zeros */
} att_recurrent;
/* Runs a recurrent layer over ragged sequences: x [tokens, features], offsets [n + 1] -> the hidden state after each
 * token, [tokens, units]. last or NULL: receives the state after the last step (for an empty sequence its initial
 * state). A sequence has the same bits alone, in any batch, and when it is processed in parts that are linked by
 * `initial` and `last`.
 *
 *     r = sigmoid(W_r x + b_r + U_r h + c_r), z with its own weights, n = tanh(W_n x + b_n + r (U_n h + c_n))
 *     h' = (1 - z) n + z h                                                                    (Cho et al. 2014)
 *
 *     i = sigmoid(W_i x + b_i + U_i h + c_i), f and o with their own weights, g = tanh(W_g x + b_g + U_g h + c_g)
 *     c' = f c + i g, h' = o tanh(c')                        (Hochreiter, Schmidhuber 1997; Gers et al. 2000) */
ATT_API att_var *att_gru(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                         att_recurrent_state *last);
ATT_API att_var *att_lstm(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                          att_recurrent_state *last);
/* Pools each sequence into one row, without its first `skip` rows: x [tokens, features], offsets [n + 1] ->
 * [n, features]. ATT_POOLING_WEIGHTED_MEAN counts the skipped rows, too. If no row remains, the result is 0, but
 * ATT_POOLING_CLS gives the sequence's first row. An empty sequence gives 0. These are the poolings of
 * sentence-transformers. Errors: shapes; offsets; skip is negative. */
ATT_API att_var *att_pool(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, att_pooling kind, int64_t skip);
/* Divides each row by max(its Euclidean norm, eps) (PyTorch's F.normalize: eps = 1e-12). */
ATT_API att_var *att_normalize(att_tape *t, att_var *x, float eps);

typedef struct att_cross_entropy_options {
    size_t size;
    float label_smoothing; /* in [0, 1): weight spread evenly over all classes (Szegedy et al. 2016) */
    int64_t classes;       /* the first columns of logits that take part; 0: all */
    bool sum;              /* reduction: true: sum over rows, false: mean */
    int64_t *count;        /* [call] receives the number of rows with a target; or NULL */
} att_cross_entropy_options;
/* Computes the cross entropy -log softmax(logits)[target], summed or averaged over the rows with a target -> [1].
 * logits [rows, classes]; targets [rows]; a row with a negative target is ignored. Backward may overwrite the logits
 * with their gradient. options or NULL: defaults. */
ATT_API att_var *att_cross_entropy(att_tape *t, att_var *logits, const int32_t *targets,
                                   const att_cross_entropy_options *options);
/* Computes the cross entropy of att_linear's logits x weight^T + bias without storing them, for many classes. x [rows,
 * features], weight [classes, features], bias [classes] or NULL; targets and options as for att_cross_entropy, options
 * or NULL: defaults. The result equals that of the two operations except for rounding. Logits are computed in blocks,
 * and again in backward: four matrix products of that size instead of three. Scratch memory is at most 5 MB + 6
 * KB * features, and 2 KB * features more if weight is not f32. */
ATT_API att_var *att_linear_cross_entropy(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                          const int32_t *targets, const att_cross_entropy_options *options);
typedef struct att_binary_cross_entropy_options {
    size_t size;
    bool sum;       /* reduction: true: sum over targets, false: mean */
    int64_t *count; /* [call] receives the number of targets that are not ignored; or NULL */
} att_binary_cross_entropy_options;
/* Computes the binary cross entropy -t log s - (1 - t) log(1 - s), s = sigmoid(logit), summed or averaged -> [1].
 * targets has the shape of logits and is in [0, 1]; negative targets are ignored. options or NULL: defaults. */
ATT_API att_var *att_binary_cross_entropy(att_tape *t, att_var *logits, const float *targets,
                                          const att_binary_cross_entropy_options *options);
typedef struct att_mean_squared_error_options {
    size_t size;
    bool sum; /* reduction: true: sum over elements, false: mean */
} att_mean_squared_error_options;
/* Computes (a - b)^2, summed or averaged over all elements -> [1]. Both have gradients. options or NULL: defaults.
 * Errors: a and b have different shapes. (PyTorch's MSELoss) */
ATT_API att_var *att_mean_squared_error(att_tape *t, att_var *a, att_var *b,
                                        const att_mean_squared_error_options *options);

/* Images are [images, height, width, channels]. */
typedef struct att_conv_options {
    size_t size;
    int64_t stride[2];  /* vertical, horizontal; 0: 1 */
    int64_t padding[2]; /* zeros above and below, left and right; less than the kernel's height and width */
} att_conv_options;
/* Computes a 2-D convolution (LeCun et al. 1989; PyTorch's Conv2d): x [images, height, width, in], weight [out, in,
 * kernel height, kernel width], bias [out] or NULL -> [images, new height, new width, out], where new height =
 * (height + 2 padding[0] - kernel height) / stride[0] + 1, and new width accordingly. options or NULL: defaults. */
ATT_API att_var *att_conv2d(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                            const att_conv_options *options);
typedef struct att_batch_norm_options {
    size_t size;
    bool training;   /* normalize by the statistics of x, and update the running statistics; false: normalize by the
                      * running statistics */
    double momentum; /* weight of x in the running statistics; 0: 0.1 */
    double eps;      /* 0: 1e-5 */
} att_batch_norm_options;
/* Batch normalization (Ioffe, Szegedy 2015; PyTorch's BatchNorm2d): computes (x - mean) /
 * sqrt(variance + eps) * gamma + beta for each channel of x [images, height, width, channels] or [rows, channels].
 * running_mean and running_var [channels], dense, are the caller's: f32, or outside training f16 or bf16. Training
 * replaces them by (1 - momentum) * running + momentum * the statistic of x, with the variance over n - 1; inside
 * att_recompute this happens once. options or NULL: defaults. Errors: training with fewer than two values per
 * channel. */
ATT_API att_var *att_batch_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta,
                                const att_tensor *running_mean, const att_tensor *running_var,
                                const att_batch_norm_options *options);
typedef enum att_resize_mode {
    ATT_RESIZE_BILINEAR = 0,
    ATT_RESIZE_BICUBIC /* cubic convolution (Keys 1981), a = -0.75, or -0.5 with antialias */
} att_resize_mode;
typedef struct att_resize_options {
    size_t size;
    att_resize_mode mode;
    bool antialias;   /* if an axis becomes smaller, its filter becomes wider by the same factor */
    int64_t out[2];   /* new height, new width; 0: by factor */
    double factor[2]; /* scale factors: new height = floor(height * factor); 0: by out */
} att_resize_options;
/* Resamples x [images, height, width, channels] -> [images, new height, new width, channels], as PyTorch's interpolate
 * does with align_corners = False: the center of new row i is at (i + 0.5) height / new height in the old image, or at
 * (i + 0.5) / factor. Position tables of vision Transformers use it with bicubic and `out`. */
ATT_API att_var *att_resize(att_tape *t, att_var *x, const att_resize_options *options);
typedef struct att_pool_options {
    size_t size;
    int64_t kernel[2];  /* height, width */
    int64_t stride[2];  /* 0: as kernel */
    int64_t padding[2]; /* excluded from the mean */
} att_pool_options;
/* Computes max or mean pooling (ATT_POOLING_MAX, ATT_POOLING_MEAN) of each channel; shapes as in att_conv2d. */
ATT_API att_var *att_pool2d(att_tape *t, att_var *x, att_pooling kind, const att_pool_options *options);

/* ---- 5 Hooks and extension --------------------------------------------- */

/* The argument of att_tape_config.hook (PyTorch's forward hook). The hook is called after each operation except
 * att_attend_cached, and when att_scope_end keeps a variable, so that the result of a layer is an event.
 *
 * Names of scopes are listed in attend_model.h for models and in attend_nn.h for layers.
 *
 * Pointers are valid during the call. On a tape that records, the plan and args of att_attend, with the arrays and
 * numbers that they point to (q, k, v, out, lse), are valid until the reset. Exceptions are functions of att_recompute
 * and results that require no gradient, as between frozen parameters. There, and on other tapes, the numbers are valid
 * until the end of the scope in which they were made.
 *
 * On a tape that does not record, a hook may change the numbers of `output`; later operations use the changed ones. For
 * example, setting a head's result to 0 shows what the model computes without it (Michel et al. 2019). Changing a view
 * changes the variable that it views. On a tape that records, numbers must not be changed. A hook may call any function
 * of the library, such as att_weights, but no operation of this tape and not its reset. The hook is not called when
 * backward computes a function of att_recompute again. */
struct att_tape_event {
    size_t size;
    const char *op;                 /* "linear", "attend", ...; "scope": the end of a scope */
    const char *scope;              /* "encoder/layer.3/attention"; with "scope", the one that ends */
    const att_tensor *output;       /* with "scope": what is kept */
    const att_plan *plan;           /* "attend" only: with args, the input of att_weights */
    const att_attention_args *args; /* "attend" only */
};
/* att_tape_config.before_attend (PyTorch's forward pre-hook) receives the plan and the args of an att_attend (not of
 * att_attend_cached) before it is computed. The args include q, k, v and the parameters that are variables, but not yet
 * out and lse. The function may replace *plan, for example by one from att_plan_with, and fields of args, for example
 * args.param by an array with one more parameter, but no tensor of a variable. What it puts there must exist until
 * att_attend returns, or on a tape that records until the reset, except arrays, which the tape copies. If it returns a
 * status other than ATT_OK, that is an error of the tape, with the sentence of att_fail (attend_util.h), if it was
 * called. When backward computes a function of att_recompute again, it calls before_attend again, which must then do
 * the same. */

/* Returns the context of a tape; NULL for NULL. */
ATT_API att_ctx *att_tape_ctx(const att_tape *t);
/* Sets the tape's error, as a failing operation does: the first message is kept, prefixed by the path of scopes.
 * Returns NULL. */
ATT_API att_var *att_tape_fail(att_tape *t, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* Sets the tape's error to a sentence without formatting it, for languages that cannot call variadic functions. */
ATT_API att_var *att_tape_fail_text(att_tape *t, att_status s, const char *text);

/* An operation of the caller's own (PyTorch's autograd.Function). Tensors are f32 and dense. A status other than ATT_OK
 * is an error of the tape, with the sentence of att_fail (attend_util.h), if it was called. */
typedef struct att_function {
    size_t size;      /* sizeof(att_function) */
    const char *name; /* [object] */
    /* Writes all of y, from x [n]. */
    att_status (*forward)(const void *user, const att_tensor *x, const att_tensor *y); /* [object] */
    /* Adds the gradient of sum(dy * y) by x[i] to dx[i], in the shape of x[i]; dx[i].data is NULL if it is not
     * wanted. */
    att_status (*backward)(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                           const att_tensor *dx); /* [object] */
} att_function;
/* Applies a function to x [n] and returns y, of shape dim [rank]. function and user [user_bytes] are copied; what they
 * point to must not change until the backward. */
ATT_API att_var *att_apply(att_tape *t, const att_function *function, const void *user, size_t user_bytes,
                           att_var *const *x, int n, int rank, const int64_t *dim);
/* Checks a function (PyTorch's gradcheck), with user or NULL, at x [n], whose numbers should be of order 1. It checks
 * that forward writes all of y, and the same each time; that backward agrees with differences of forward, adds to
 * existing numbers, and can compute the gradient of one input alone. A contradiction is ATT_ERR_ARGUMENT, and the
 * sentence states where, with both values. It calls forward some hundred times. */
ATT_API att_status att_verify_function(att_ctx *ctx, const att_function *function, const void *user,
                                       const att_tensor *x, int n, int rank, const int64_t *dim);

#ifdef __cplusplus
}
#endif
#endif
