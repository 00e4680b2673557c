/* attend_learn.h - neural network layers with automatic differentiation, on top of attend.h.
 *
 *   att_param      a weight: a view of the caller's data, its packed copy, and its gradient
 *   att_tape       records operations; owns their results and what backward needs
 *   att_var        the result of an operation on a tape
 *
 * Chapters: 1 Parameters, 2 Tapes, 3 Gradients, 4 Operations, 5 Hooks and extension. Optimizers are in
 * attend_optimizer.h.
 *
 * Operations compute at once (eager mode). An operation that fails returns NULL; an operation that is given NULL
 * returns NULL; att_var_value returns the first error. So a layer needs no check after each line. Arguments that may be
 * NULL are marked as in attend.h; any other NULL is an error of the tape.
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
 * Threads: an att_param may be used by several threads at once, an att_tape by one thread at a time.
 * Freeing an object must not overlap with its use. */
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

/* A parameter: a view of the caller's data (rank 1 or more; f32, f16 or bf16; not copied, must outlive the parameter)
 * and a copy packed for the running instruction set, which is made at first use; that of f16 or bf16 for att_linear
 * stays 16 bits. */
ATT_API att_status att_param_new(att_ctx *ctx, const att_tensor *value, att_param **out);
ATT_API void att_param_free(att_param *p);
ATT_API const att_tensor *att_param_value(const att_param *p);
/* Call this after the data has changed: the packed copy is made again at the next use. No other thread may use p
 * meanwhile. */
ATT_API void att_param_invalidate(att_param *p);
/* The gradient, in the shape of the parameter, f32, dense: the sum over all backward calls since att_param_zero_grad.
 * Its data is NULL if no backward has reached p since. The memory is p's, from first use to att_param_free, or an
 * optimizer's (att_optimizer_gradients). While a backward adds to p, no other may, nor may the gradient be read. */
ATT_API const att_tensor *att_param_grad(const att_param *p);
ATT_API void att_param_zero_grad(att_param *p);
/* A frozen parameter does not learn: backward computes no gradient of it, and its att_param_grad stays NULL. A variable
 * that depends on frozen parameters and constants alone requires no gradient, so that backward does no work for it, and
 * a tape that records keeps nothing for it. False at first. Set it before the forward pass, and let it stay until the
 * backward; optimizers ask for it once, in att_optimizer_add. p or NULL: false. */
ATT_API void att_param_set_frozen(att_param *p, bool frozen);
ATT_API bool att_param_frozen(const att_param *p);
/* Is it for weight decay? Optimizers that p is added to decay it only if so. A new parameter is; of those of
 * att_nn_params, biases and weights of norms, which have one dimension, are not, nor are what models set: embeddings of
 * positions and the like. p or NULL: false. */
ATT_API bool att_param_weight_decay(const att_param *p);
ATT_API void att_param_set_weight_decay(att_param *p, bool decay); /* p or NULL */
/* Is the value a view of a file that is mapped into memory for reading? Then its pages are given back to the system
 * (att_release_mapped) as soon as an operation has made a copy of it, as products do at their first use of a parameter,
 * so that its numbers are in memory once. False at first. p or NULL. */
ATT_API void att_param_set_mapped(att_param *p, bool mapped);
/* Bytes of the copies of the value, in other layouts and types, that operations have made; they stay with p. p or NULL:
 * 0. May be called while others compute. */
ATT_API size_t att_param_copies(const att_param *p);

/* How a new parameter begins. fan_in and fan_out are the numbers of inputs and outputs that an element is one of: of
 * [out, in, ...] in and out times what the other dimensions make together. */
typedef enum att_init_kind {
    ATT_INIT_CONSTANT = 0,     /* value; so all zero is zeros */
    ATT_INIT_UNIFORM,          /* in +-value */
    ATT_INIT_NORMAL,           /* standard deviation value */
    ATT_INIT_TRUNCATED_NORMAL, /* the same, at most two standard deviations from 0 */
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
    double gain;             /* of those with fans; 0: 1, for Kaiming sqrt(2) (ReLU) */
    int64_t fan_in, fan_out; /* 0: by x's shape */
} att_init;
/* Fills x (f32, dense). Element i depends on seed, name and i alone: the same on all machines, for any number of
 * threads. init or NULL: zeros. Errors: type or strides; a fan of a shape of less than two dimensions that is not
 * given; numbers that are not finite. */
ATT_API att_status att_initialize(att_ctx *ctx, const att_tensor *x, const att_init *init, uint64_t seed,
                                  const char *name);

/* ---- 2 Tapes: variables and scopes -------------------------------------- */

typedef struct att_tape_event att_tape_event;
typedef struct att_tape_config {
    size_t size;
    void (*hook)(void *user, const att_tape_event *event); /* [object] or NULL: called after each operation, and at the
                                                            * end of scopes: see chapter 5 */
    void *hook_user;                                       /* [object] of both */
    bool record; /* keep what att_tape_backward needs until the reset, even past the end of scopes */
    /* Check the result of each operation, forward and backward: the first value that is not finite is an error that
     * names the scope and the operation (PyTorch's set_detect_anomaly). For finding the origin of a NaN; slow. */
    bool detect_anomaly;
    att_status (*before_attend)(void *user, const char *scope, const att_plan **plan,
                                att_attention_args *args); /* [object] or NULL: called before each att_attend, whose
                                                            * plan and args it may change: see chapter 5 */
} att_tape_config;

/* cfg or NULL: defaults. */
ATT_API att_status att_tape_new(att_ctx *ctx, const att_tape_config *cfg, att_tape **out);
ATT_API void att_tape_free(att_tape *t);
/* Frees all variables and clears the error. The memory stays with the tape, as one block, for the next run. */
ATT_API void att_tape_reset(att_tape *t);
/* Bytes of memory that it has. */
ATT_API size_t att_tape_bytes(const att_tape *t);
/* Gives back memory that no variable uses: all of it after a reset. */
ATT_API void att_tape_trim(att_tape *t);

/* A scope has a name, for error messages and hooks. att_scope_end frees all variables made in the scope except `keep`,
 * which moves to the enclosing scope; keep or NULL.
 *   att_scope s = att_scope_begin(t, "layer.0");  ...  return att_scope_end(t, s, y); */
typedef struct att_scope {
    size_t mark;
    int depth;
} att_scope;
ATT_API att_scope att_scope_begin(att_tape *t, const char *name);
ATT_API att_var *att_scope_end(att_tape *t, att_scope s, att_var *keep);
/* Frees the same variables, but the scope, which must be the innermost, stays open; keep or NULL.
 *   for (...) x = att_scope_reset(t, s, layer(t, x)); */
ATT_API att_var *att_scope_reset(att_tape *t, att_scope s, att_var *keep);

/* A variable that is a view of the caller's data (not copied). A constant has no gradient, and backward does no work
 * for it, nor for what depends on constants and frozen parameters alone. */
ATT_API att_var *att_input(att_tape *t, const att_tensor *x);
ATT_API att_var *att_constant(att_tape *t, const att_tensor *x);
/* A parameter as a variable, in its shape. Its gradient is added to the parameter's; of a frozen one it is a constant.
 */
ATT_API att_var *att_parameter(att_tape *t, att_param *p);
/* The value of a variable, as a view; or the first error since the last reset. */
ATT_API att_status att_var_value(att_tape *t, const att_var *v, att_tensor *out);

/* ---- 3 Gradients -------------------------------------------------------- */

/* Reverse-mode differentiation: computes the gradients of sum(dv * v) by every variable that v depends on, and adds
 * those by parameters to att_param_grad. dv: f32, dense, in v's shape; dv or NULL: ones. At most once between two
 * resets. Parameters, the data of att_input and att_constant and the tensors in the args of att_attend must still
 * exist, unchanged. Arrays such as ids and offsets need not: a recording operation copies them. Errors: t does not
 * record or has failed; v is not a variable of t; the shape of dv; a second call. After an error (out of memory and
 * cancelled included) all gradients are unchanged and the call may be repeated. */
ATT_API att_status att_tape_backward(att_tape *t, const att_var *v, const att_tensor *dv);
/* Keeps v's gradient for att_var_grad; otherwise only inputs have one after backward (PyTorch's retain_grad). Call it
 * before v is used and before the backward. Returns v. */
ATT_API att_var *att_retain_grad(att_tape *t, att_var *v);
/* The gradient of a variable, as a view in its shape, valid until the reset. A view of a variable, such as
 * att_split_heads returns, shares its gradient. Errors: there was no backward; the backward's variable does not depend
 * on v; v's gradient was not retained. */
ATT_API att_status att_var_grad(att_tape *t, const att_var *v, att_tensor *out);

/* Activation checkpointing (Chen et al. 2016): y = apply(user, t, x), whose intermediate results are not kept but
 * computed again during backward. Memory holds the inputs of all such functions and the intermediate results of one; a
 * step costs one more forward. Values and gradients have the same bits as without. apply may use only x [n] and
 * variables that it makes, and returns one of these; user [user_bytes] is copied, and what it points to must stay
 * unchanged until the backward.
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

typedef enum att_pooling { ATT_POOLING_MEAN = 0, ATT_POOLING_CLS, ATT_POOLING_MAX } att_pooling;

/* activation(x weight^T + bias) + residual: x [rows, in], weight [out, in], bias [out] or NULL, residual [rows, out] or
 * NULL -> [rows, out]. The bits of a row depend on that row alone. With quantized weights, x is rounded, too, to int8
 * in blocks of 32, d = largest |x| / 127, and products of blocks are summed as whole numbers; on a tape that records, x
 * is not rounded, and the weights are as if they were f32. */
ATT_API att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act,
                            att_var *residual);
/* An entry of a row of x weight^T + bias, as att_linear_argmax and att_linear_topk return it: these select tokens from
 * the logits of a vocabulary without storing them. Values have the bits of att_linear; of equal values the lower column
 * comes first. Nothing is recorded. Errors: shapes; an excluded column out of range; memory. */
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
    const int64_t *offsets; /* [call] [rows + 1], for att_linear_topk: those of row r are column[offsets[r]] to
                             * column[offsets[r + 1] - 1], ascending; or NULL: all are, in any order, of each row */
} att_excluded_columns;
/* The largest entry of each row, out [rows]; bias or NULL, except or NULL. Unless weights are
 * quantized, bounds of all entries are computed from an int8 copy of them; then only entries whose bound allows it are
 * computed exactly. value is NaN if a computed entry is NaN. */
ATT_API att_status att_linear_argmax(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                     const att_excluded_columns *except, att_top_column *out);
/* The n largest entries of each row in descending order, out [rows][n]; the first has column -1 and value NaN if an
 * entry of the row is NaN. log_sum or NULL, which is faster: the log-sum-exp of each row, log_sum [rows], NaN if an
 * entry is NaN or +inf. bias or NULL, except or NULL. The [rows, out] matrix is never stored as a whole. */
ATT_API att_status att_linear_topk(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                   const att_excluded_columns *except, int64_t n, att_top_column *out, double *log_sum);
/* Rows ids [count] of table [n, features], each id in [0, n) -> [count, features]. */
ATT_API att_var *att_embedding(att_tape *t, att_param *table, const int32_t *ids, int64_t count);
/* Dot products of row i of x [rows, features] and rows ids[i][0] to ids[i][count - 1] of table [n, features], each id
 * in [0, n): scores of a few of many classes. ids [rows, count] -> [rows, count]. The rows are not copied. */
ATT_API att_var *att_embedding_dot(att_tape *t, att_var *x, att_param *table, const int32_t *ids, int64_t count);
/* a b, of matrices [m, k] and [k, n]; a transposed one is stored as [k, m] or [n, k] -> [m, n]; options or NULL. */
ATT_API att_var *att_matmul(att_tape *t, att_var *a, att_var *b, const att_matmul_options *options);
/* a + b, a - b and a b, elementwise, with shapes broadcast as in NumPy and PyTorch: dimensions are aligned from the
 * last one; of each pair both are equal, or one is 1 or missing, and its elements are used for all indices of the
 * other. [4, 1, 3] and [5, 3] -> [4, 5, 3]. Gradients are summed over the dimensions in which an operand was broadcast.
 * Errors: a pair of dimensions that differ where neither is 1. */
ATT_API att_var *att_add(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_sub(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_mul(att_tape *t, att_var *a, att_var *b);
/* Sum or mean over dimension dim (negative: from the end), which is removed: [4, 5, 3], dim 1 -> [4, 3]; of a vector,
 * and over ATT_ALL_DIMS -> [1]. Over no elements both are 0. Errors: x has no such dimension. (PyTorch's sum, mean) */
enum { ATT_ALL_DIMS = -1000 };
ATT_API att_var *att_sum(att_tape *t, att_var *x, int dim);
ATT_API att_var *att_mean(att_tape *t, att_var *x, int dim);
/* e^x and the natural logarithm of each element, to 2 units in the last place: log 0 = -inf, and NaN below 0. */
ATT_API att_var *att_exp(att_tape *t, att_var *x);
ATT_API att_var *att_log(att_tape *t, att_var *x);
/* x in shape dim [rank]; one dimension may be -1 and is computed. A view: nothing is copied. Errors: rank is not from 1
 * to 6; a negative dimension; another number of elements than x has; -1 beside a 0. (PyTorch's view) */
ATT_API att_var *att_reshape(att_tape *t, att_var *x, int rank, const int64_t *dim);
/* x with two dimensions exchanged (negative: from the end): [4, 5, 3], 0 and -1 -> [3, 5, 4]. A copy. Errors: x has no
 * such dimension. (PyTorch's transpose) */
ATT_API att_var *att_transpose(att_tape *t, att_var *x, int dim0, int dim1);
/* Dot products over the last dimension: [rows, features] -> [rows]; of two vectors -> [1]. */
ATT_API att_var *att_dot(att_tape *t, att_var *a, att_var *b);
ATT_API att_var *att_scale(att_tape *t, att_var *x, float factor);
/* Concatenates n variables along dimension dim (negative: from the end); all other dimensions are equal. */
ATT_API att_var *att_concat(att_tape *t, int n, att_var *const *x, int dim);
/* Elements [first, first + count) of dimension dim (negative: from the end). */
ATT_API att_var *att_slice(att_tape *t, att_var *x, int dim, int64_t first, int64_t count);
/* Elements ids [count] of the first dimension of x [n, ...], each id in [0, n), repeats allowed -> [count, ...]. */
ATT_API att_var *att_gather(att_tape *t, att_var *x, const int32_t *ids, int64_t count);
/* Layer normalization: (x - mean) / sqrt(variance + eps) * gamma + beta over the last dimension (Ba et al. 2016). */
ATT_API att_var *att_layer_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, float eps);
/* RMS normalization: x / sqrt(mean(x^2) + eps) * gamma over the last dimension (Zhang, Sennrich 2019). */
ATT_API att_var *att_rms_norm(att_tape *t, att_var *x, att_param *gamma, float eps);
/* Softmax over the last dimension, like att_tensor_softmax. */
ATT_API att_var *att_softmax(att_tape *t, att_var *x);
/* The activation of each element. */
ATT_API att_var *att_activate(att_tape *t, att_var *x, att_activation act);
/* [tokens, heads * dim] -> [tokens, heads, dim], and the reverse. Views: nothing is copied. */
ATT_API att_var *att_split_heads(att_tape *t, att_var *x, int64_t heads);
ATT_API att_var *att_merge_heads(att_tape *t, att_var *x);
/* Positions of tokens: given one by one as position_ids, or counted from the start of each sequence. */
typedef struct att_positions {
    size_t size;
    const int64_t *position_ids; /* [call] [tokens], or NULL: by offsets */
    const int64_t *offsets;      /* [call] [n + 1], ascending from 0: sequence b is rows [offsets[b], offsets[b + 1]) */
    int64_t n;
    const int64_t *starts; /* [call] [n]: position of the first token of each sequence; or NULL: 0 */
} att_positions;

/* Dropout, + residual or NULL: an element of x [tokens, features] becomes 0 with probability p, else it is scaled by 1
 * / (1 - p) (Srivastava et al. 2014). The mask depends only on the seed, the sequence's id, the position and the
 * feature, in the same way as in attention (att_attention_args.dropout_seed): Philox4x32-10 with
 *   key (low, high word of the seed), counter (feature, position / 4, 2^32 - 1, sequence id)
 * yields four words, and an element is kept if word position % 4 >= round(p 2^32). at: by offsets; sequence_ids
 * [at->n]. Give each dropout layer of a model a seed of its own. */
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
/* x [tokens, features] + encoding, or [tokens, features + append]. options or NULL: defaults. */
ATT_API att_var *att_sinusoidal(att_tape *t, att_var *x, const att_positions *at,
                                const att_sinusoidal_options *options);
/* x [tokens, features] + rows of table [max positions, features] (Gehring et al. 2017). */
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

/* Parameters of a plan's stages that are to have gradients. */
typedef struct att_attend_params {
    size_t size;
    att_var *const *param; /* [call] [n_params], in the order of args.param: each or NULL: none, or that of the args,
                              whose entry is zero or left out where there is a variable */
    int n_params;
} att_attend_params;
/* Attention, ragged, by a plan in f32: q [tokens, heads, head_dim], k and v likewise -> [tokens, heads, value_dim].
 * args gives all else that the plan needs: offsets, masks, parameters, seed; its q, k, v, out and lse are left zero.
 * params or NULL: none, or variables that receive gradients, in place of those of args. The plan outlives these.
 *
 *     att_var *const param[] = {att_parameter(t, w)};
 *     att_attend(t, plan, q, k, v, &args, ATT_OPTIONS(att_attend_params, .param = param, .n_params = 1)); */
ATT_API att_var *att_attend(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                            const att_attention_args *args, const att_attend_params *params);
/* Incremental attention with a cache. Appends n tokens to each sequence of the cache, then attends: q [sequences * n,
 * heads, head_dim], k and v [sequences * n, kv_heads, dim] -> [sequences * n, heads, value_dim]. k and v NULL: attends
 * to the cache as it is, and q may have another n than k and v.
 *
 * args or NULL: masks and parameters, as for an attention call with a cache. With its n_sequences (that of the cache)
 * and q_offsets the batch is ragged: sequence b has rows [q_offsets[b], q_offsets[b + 1]) of q and of k and v, which
 * may be none; with k_offsets, k and v have those rows instead, as where only the last token of a prompt attends.
 *
 * The dtype of plan and cache states how keys and values are stored. Where it is f16 or bf16, k, v, q and the result
 * are rounded to it, and bits are those of att_forward on tensors of that type; see att_cache in attend.h for which
 * equal a full pass. After an error the cache is unchanged. Not for a tape that records. */
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
 * token, [tokens, units]; last or NULL gets the state after the last step (of an empty sequence: its initial state). A
 * sequence has the same bits alone, in any batch, and when it is processed in parts that are linked by `initial` and
 * `last`.
 *
 *     r = sigmoid(W_r x + b_r + U_r h + c_r), z likewise, n = tanh(W_n x + b_n + r (U_n h + c_n))
 *     h' = (1 - z) n + z h                                                                    (Cho et al. 2014)
 *
 *     i = sigmoid(W_i x + b_i + U_i h + c_i), f and o likewise, g = tanh(W_g x + b_g + U_g h + c_g)
 *     c' = f c + i g, h' = o tanh(c')                        (Hochreiter, Schmidhuber 1997; Gers et al. 2000) */
ATT_API att_var *att_gru(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                         att_recurrent_state *last);
ATT_API att_var *att_lstm(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                          att_recurrent_state *last);
/* Pools each sequence into one row: x [tokens, features], offsets [n + 1] -> [n, features]; an empty sequence gives
 * 0. */
ATT_API att_var *att_pool(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, att_pooling kind);
/* Each row divided by max(its Euclidean norm, eps) (PyTorch's F.normalize: eps = 1e-12). */
ATT_API att_var *att_normalize(att_tape *t, att_var *x, float eps);

typedef struct att_cross_entropy_options {
    size_t size;
    float label_smoothing; /* in [0, 1): weight spread evenly over all classes (Szegedy et al. 2016) */
    int64_t classes;       /* the first columns of logits that take part; 0: all */
    bool sum;              /* reduction: true: sum over rows, false: mean */
    int64_t *count;        /* [call] receives the number of rows with a target; or NULL */
} att_cross_entropy_options;
/* Cross entropy: -log softmax(logits)[target], summed or averaged over the rows with a target -> [1]. logits [rows,
 * classes]; targets [rows], negative: the row is ignored. Backward may overwrite the logits with their gradient.
 * options or NULL: defaults. */
ATT_API att_var *att_cross_entropy(att_tape *t, att_var *logits, const int32_t *targets,
                                   const att_cross_entropy_options *options);
/* The cross entropy of att_linear's logits x weight^T + bias, without storing them: for many classes. x [rows,
 * features], weight [classes, features], bias [classes] or NULL; targets as above; options or NULL: defaults. Equals
 * the two operations but for rounding. Logits are computed in blocks, and in backward once more: four matrix products
 * of that size instead of three. Scratch memory is at most 5 MB + 6 KB * features, and 2 KB * features more if weight
 * is not f32. */
ATT_API att_var *att_linear_cross_entropy(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                                          const int32_t *targets, const att_cross_entropy_options *options);
typedef struct att_binary_cross_entropy_options {
    size_t size;
    bool sum;       /* reduction: true: sum over targets, false: mean */
    int64_t *count; /* [call] receives the number of targets that are not ignored; or NULL */
} att_binary_cross_entropy_options;
/* Binary cross entropy with logits: -t log s - (1 - t) log(1 - s), s = sigmoid(logit), summed or averaged -> [1].
 * targets in the shape of logits, in [0, 1]; negative: ignored. options or NULL: defaults. */
ATT_API att_var *att_binary_cross_entropy(att_tape *t, att_var *logits, const float *targets,
                                          const att_binary_cross_entropy_options *options);
typedef struct att_mean_squared_error_options {
    size_t size;
    bool sum; /* reduction: true: sum over elements, false: mean */
} att_mean_squared_error_options;
/* Mean squared error: (a - b)^2, summed or averaged over all elements -> [1]. Both have gradients. options or NULL:
 * defaults. Errors: a and b have different shapes. (PyTorch's MSELoss) */
ATT_API att_var *att_mean_squared_error(att_tape *t, att_var *a, att_var *b,
                                        const att_mean_squared_error_options *options);

/* Images are [images, height, width, channels]. */
typedef struct att_conv_options {
    size_t size;
    int64_t stride[2];  /* vertical, horizontal; 0: 1 */
    int64_t padding[2]; /* zeros above and below, left and right; less than the kernel's height and width */
} att_conv_options;
/* 2-D convolution (LeCun et al. 1989; PyTorch's Conv2d): x [images, height, width, in], weight [out, in, kernel height,
 * kernel width], bias [out] or NULL -> [images, (height + 2 padding[0] - kernel height) / stride[0] + 1, the same for
 * the width, out]. options or NULL: defaults. */
ATT_API att_var *att_conv2d(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                            const att_conv_options *options);
typedef struct att_batch_norm_options {
    size_t size;
    bool training;   /* normalize by the statistics of x and update the running ones; false: by the running ones */
    double momentum; /* weight of x in the running statistics; 0: 0.1 */
    double eps;      /* 0: 1e-5 */
} att_batch_norm_options;
/* Batch normalization (Ioffe, Szegedy 2015; PyTorch's BatchNorm2d): (x - mean) / sqrt(variance + eps) * gamma + beta
 * for each channel: x [images, height, width, channels] or [rows, channels]. running_mean and running_var [channels],
 * dense, are the caller's: f32, or outside training f16 or bf16. Training replaces them by (1 - momentum) * running +
 * momentum * that of x, whose variance is divided by n - 1 there; a function of att_recompute does so once. options or
 * NULL: defaults. Errors: training with less than two values per channel. */
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
 * does with align_corners = False: the center of new line i is at (i + 0.5) height / new height of the old ones, or at
 * (i + 0.5) / factor. For vision Transformers' position tables: bicubic, by out. */
ATT_API att_var *att_resize(att_tape *t, att_var *x, const att_resize_options *options);
typedef struct att_pool_options {
    size_t size;
    int64_t kernel[2];  /* height, width */
    int64_t stride[2];  /* 0: as kernel */
    int64_t padding[2]; /* excluded from the mean */
} att_pool_options;
/* Max or mean pooling (ATT_POOLING_MAX, ATT_POOLING_MEAN) of each channel; shapes as in att_conv2d. */
ATT_API att_var *att_pool2d(att_tape *t, att_var *x, att_pooling kind, const att_pool_options *options);

/* ---- 5 Hooks and extension --------------------------------------------- */

/* The argument of att_tape_config.hook, which is called after each operation but att_attend_cached, and where
 * att_scope_end keeps a variable, so that the result of a layer is an event (PyTorch's forward hook).
 *
 * Names of scopes: those of models are in attend_model.h, those of layers in attend_nn.h.
 *
 * Pointers are valid during the call. What att_attend was given and made, plan, args with its arrays, and the numbers
 * of its q, k, v, out and lse, is valid longer on a tape that records, until the reset, but for functions of
 * att_recompute and where no gradient is required, as between frozen parameters; there, and on other tapes, these
 * numbers are valid until the scope ends that they were made in.
 *
 * On a tape that does not record, a hook may write the numbers of `output`, all or some: what follows is computed with
 * them, as where a head's result is set to 0, to see what the model makes without it (Michel et al. 2019). Those of a
 * view are numbers of what it is a view of. On a tape that records they must stay. A hook may call all of the library,
 * att_weights among it, but no operation of this tape, nor its reset. Where backward computes a function of
 * att_recompute again, the hook is not called. */
struct att_tape_event {
    size_t size;
    const char *op;                 /* "linear", "attend", ...; "scope": the end of a scope */
    const char *scope;              /* "encoder/layer.3/attention"; with "scope", the one that ends */
    const att_tensor *output;       /* with "scope": what is kept */
    const att_plan *plan;           /* "attend" only: with args, the input of att_weights */
    const att_attention_args *args; /* "attend" only */
};
/* att_tape_config.before_attend is given the plan and the args of an att_attend (not of att_attend_cached), as they are
 * to be computed, q, k, v and parameters that are variables included, out and lse not yet. It may replace *plan, as by
 * one that att_plan_with has made, and fields of args: args.param by an array with one more parameter, for example; but
 * not what is a variable's. What it puts there must stay until the att_attend returns, on a tape that records until the
 * reset, arrays excepted, which are saved there. A status other than ATT_OK is an error of the tape, with the sentence
 * of att_fail (attend_util.h), if it was called. It is called again where backward computes a function of att_recompute
 * again, and must then do the same. (PyTorch's forward pre-hook) */

/* The context of a tape; NULL for NULL. */
ATT_API att_ctx *att_tape_ctx(const att_tape *t);
/* Sets the tape's error, as a failing operation does: the first message stays, prefixed by the scope's path. Returns
 * NULL. */
ATT_API att_var *att_tape_fail(att_tape *t, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* The same with a sentence as it is, for languages that cannot call functions of any number of arguments. */
ATT_API att_var *att_tape_fail_text(att_tape *t, att_status s, const char *text);

/* An operation of the caller's own (PyTorch's autograd.Function). Tensors are f32 and dense. A status other than ATT_OK
 * is an error of the tape, with the sentence of att_fail (attend_util.h), if it was called. */
typedef struct att_function {
    size_t size;      /* sizeof(att_function) */
    const char *name; /* [object] */
    /* Writes all of y, from x [n]. */
    att_status (*forward)(const void *user, const att_tensor *x, const att_tensor *y); /* [object] */
    /* Adds the gradient of sum(dy * y) by x[i] to dx[i], in the shape of x[i]; where that is not wanted, dx[i].data is
     * NULL. */
    att_status (*backward)(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                           const att_tensor *dx); /* [object] */
} att_function;
/* y [dim[0], ...], of this rank, = function of x [n]. function and user [user_bytes] are copied; what they point to
 * must stay unchanged until the backward. */
ATT_API att_var *att_apply(att_tape *t, const att_function *function, const void *user, size_t user_bytes,
                           att_var *const *x, int n, int rank, const int64_t *dim);
/* Checks a function, with user or NULL, at x [n], which should be of order 1: whether forward writes all of y, the same
 * each time, whether backward agrees with differences of forward (PyTorch's gradcheck), adds to what was there, and may
 * be asked for the gradient of one input alone. A contradiction is ATT_ERR_ARGUMENT, and the sentence states where,
 * with both values. Calls forward some hundred times. */
ATT_API att_status att_verify_function(att_ctx *ctx, const att_function *function, const void *user,
                                       const att_tensor *x, int n, int rank, const int64_t *dim);

#ifdef __cplusplus
}
#endif
#endif
