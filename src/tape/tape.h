/* Tapes: variables, scopes, parameters, and helpers of the operations.
 *
 * Each operation is a file of three parts:
 *   forward    checks shapes, computes at once into a new variable, ends with att_tape_done
 *   backward   adds to the gradients of its inputs and parameters; it and the name are in an att_operation
 *   reference  the same in double, in tests; for kernels in kernel/reference.c
 *
 * A failure calls att_tape_fail, which keeps the first message and returns NULL; every operation returns NULL if the
 * tape has failed or an input is NULL. */
#ifndef ATT_TAPE_H
#define ATT_TAPE_H

#include "attend_learn.h"
#include "base/base.h"
#include "gemm/gemm.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"
#include "util/util.h"
#include "att_lists.h"

typedef struct att_operation att_operation;
typedef struct att_step att_step;

/* Marks are the arena's after the allocation; 0 for the caller's data. A scope frees what is above its mark. */
struct att_var {
    att_tensor value; /* f32, dense */
    size_t made;      /* mark after this struct */
    size_t data_made; /* mark after its values */
    /* On a tape that records: */
    att_var *before;      /* the variable made before it */
    att_var *base;        /* for a view: the variable whose value and gradient it shares; otherwise NULL */
    const att_step *step; /* the step that made it; NULL for the caller's data, and if no gradient is required */
    int readers;          /* number of operations that have it as input */
    bool value_needed;    /* the backward of one of them reads its value, or it has a view */
    bool value_freed;     /* its memory was reused */
    bool unrecorded;      /* the operation that made it has no step, because no gradient is required */
    bool requires_grad;   /* as in PyTorch: it is, or depends on, an att_input or a parameter that is not frozen */
    bool retains_grad;    /* the gradient is kept for att_var_grad */
    bool grad_written;    /* the gradient has been written */
    float *grad;          /* in the shape of value; NULL before a step of backward reaches it, and after its last use */
};

/* A recorded operation. att_tape_done copies the arrays; unused fields are NULL. */
struct att_step {
    const att_operation *op;
    att_var *y;
    att_var *const *in;
    int n_in;
    att_param *const *param;
    int n_param;
    const void *saved; /* [saved_bytes] other data for its backward */
    size_t saved_bytes;
    const char *scope; /* where it ran; set by att_tape_done */
};

struct att_operation {
    const char *name;
    /* Adds to the gradients of s->in and s->param, from s->y->grad, which is final. NULL: y is a view, whose gradient
     * is shared. */
    att_status (*backward)(att_tape *t, const att_step *s);
    bool ignores_y;      /* its backward does not read the value of y */
    unsigned ignores_in; /* bit i: its backward does not read the value of in[i] */
    bool in_place;       /* its backward may write the gradient of in[0] over the value of in[0] */
};

/* All operations, found by the build: X(linear) ... */
#define ATT_OPERATION(name) extern const att_operation att_operation_##name;
ATT_OPERATION_LIST(ATT_OPERATION)
#undef ATT_OPERATION

typedef struct att_tape_scope att_tape_scope;
typedef struct att_tape_free_block att_tape_free_block;

struct att_tape {
    att_ctx *ctx;
    att_arena arena;
    const att_tape_scope *scope; /* innermost; NULL: none */
    att_status status;           /* the first failure since the last reset */
    char error[512];
    void (*hook)(void *user, const att_tape_event *event);
    att_status (*before_attend)(void *user, const char *scope, const att_plan **plan, att_attention_args *args);
    void *hook_user; /* of both */
    bool record;
    bool for_backward;              /* as record, except for functions of att_recompute, whose first run does not
                                     * record */
    bool detect_anomaly;            /* check that values are finite */
    bool bf16;                      /* linear layers compute in bf16 */
    bool has_grads;                 /* a backward is done */
    att_var *last;                  /* the last variable, if recording */
    att_tape_free_block *free_list; /* memory of variables whose values are not needed any more */
    att_param *partials;            /* list of the parameters with partial gradients of this backward */
    size_t own_mark;  /* in a function of att_recompute: it may use only variables above this mark; otherwise 0 */
    bool recomputing; /* such a function runs again, for a backward */
    bool learns;      /* an operation had a parameter that is not frozen; cleared by att_recompute */
};

/* Chooses what a tape computes in as att_compute_choose does, without its note (compute.c). */
att_status att_tape_choose_compute(att_ctx *ctx, att_compute wanted, att_compute *out);
/* Returns whether the tape multiplies by a weight in bf16: not if the weight is of integers. */
bool att_tape_in_bf16(const att_tape *t, const att_param *weight);
/* Returns false if an operation must not start: the tape is NULL or has failed, or the call was cancelled. */
bool att_tape_ready(att_tape *t);
/* Makes a new variable with uninitialized values. */
att_var *att_tape_var(att_tape *t, int rank, const int64_t *dim);
/* Makes a new variable in the shape of x. NULL also if x is NULL, or the operation must not start. */
att_var *att_tape_like(att_tape *t, const att_var *x);
/* Makes a view of a variable, sharing value and gradient: of all of it, or of a part from element `at`. */
att_var *att_tape_view(att_tape *t, att_var *of, int rank, const int64_t *dim);
att_var *att_tape_part(att_tape *t, att_var *of, int64_t at, int rank, const int64_t *dim);
/* Saves bytes at p for backward: a copy in the tape's memory if it records, otherwise p itself. NULL: the tape has
 * failed. */
const void *att_tape_save(att_tape *t, const void *p, size_t bytes);
/* Returns whether the operation needs a backward: the tape records, and an input or a parameter that is not frozen
 * requires a gradient. If not, nothing has to be saved for it (record.c). */
bool att_tape_learns(const att_tape *t, const att_step *step);
/* Ends an operation (record.c): checks that y is finite if required, records the step and calls the hook. plan and args
 * are for "attend", otherwise NULL. */
att_var *att_tape_done(att_tape *t, const att_step *step, const att_plan *plan, const att_attention_args *args);
/* Ends an operation without parameters, as att_tape_done does. y or NULL: it has failed */
att_var *att_tape_end(att_tape *t, const att_operation *op, att_var *y, att_var *const *in, int n_in, const void *saved,
                      size_t saved_bytes);
/* Calls the hook, if there is one. plan and args are as for att_tape_done. */
void att_tape_tell(const att_tape *t, const char *op, const att_tensor *output, const att_plan *plan,
                   const att_attention_args *args);

/* Checks for detect_anomaly (detect_anomaly.c): the result of a step, or the gradients that its backward has added to.
 * On failure the tape has failed, or an error is set; either names the operation. */
bool att_tape_check_finite(att_tape *t, const att_step *s);
att_status att_tape_check_finite_grads(const att_tape *t, const att_step *s);

/* Checks that offsets [n + 1] divide the rows of x into sequences. */
bool att_tape_check_offsets(att_tape *t, const char *op, const att_tensor *x, const int64_t *offsets, int64_t n);

/* Returns the path of the innermost scope, "encoder/0"; "": there is none. */
const char *att_tape_scope_path(const att_tape *t);
/* Frees all variables above the mark except keep; on a tape that records, only values that no backward reads. */
att_var *att_tape_release(att_tape *t, size_t mark, att_var *keep);

/* ---- rows (rows.c)
 *
 * The number of rows of x: the product of all dimensions but the last. */
int64_t att_tape_rows(const att_tensor *x);
bool att_same_shape(const att_tensor *a, const att_tensor *b);

/* Calls body(arg, first, last) for ranges of rows, in parallel, with some ten thousand elements each. */
void att_tape_for_rows(att_ctx *ctx, int64_t rows, int64_t features,
                       void (*body)(const void *arg, int64_t first, int64_t last), const void *arg);

/* The arguments of most such bodies: y from a and b, row by row. */
typedef struct att_row_job {
    const att_kernels *k;
    int64_t features; /* numbers of a row */
    const float *a, *b;
    float *y;
    float number; /* a number that all rows share */
} att_row_job;

/* Calls body(arg, first, last) for ranges of 64 columns: for sums over rows in ascending order. */
void att_tape_for_columns(att_ctx *ctx, int64_t columns, void (*body)(const void *arg, int64_t first, int64_t last),
                          const void *arg);

/* ---- positions (positions.c); NULL: the tape has failed */

bool att_tape_check_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *at);
/* Returns the position of each row of x, [tokens] */
const int64_t *att_tape_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *at);

/* Describes a table of factor sin and factor cos of position * frequency i, 0 <= i < pairs = ceil(features / 2). */
typedef struct att_sinusoid_table {
    int64_t features;
    double base;
    const double *frequencies; /* [pairs], or NULL: 1 / base^(2 i / features) */
    double factor;
    bool interleaved; /* rows are sin, cos, sin, cos ...; false: all sines, then all cosines */
} att_sinusoid_table;
/* Returns pointers to a row of 2 pairs values for each position [tokens]; a row's bits depend only on the position. */
const float *const *att_tape_sinusoids(att_tape *t, const char *op, const int64_t *position, int64_t tokens,
                                       const att_sinusoid_table *w);

/* ---- strided copies and products
 *
 * y (+)= x for blocks of n elements, x_stride and y_stride apart (blocks.c) */
void att_tape_blocks(att_ctx *ctx, int64_t blocks, int64_t n, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, bool add);
/* Returns dim as a nonnegative index (negative: from the end), the number of blocks before it and the elements of one
 * of its indices; -1: no such dimension. */
int att_tape_dim(const att_tensor *x, int dim, int64_t *outer, int64_t *inner);

/* ---- sums, each in an order of the shapes alone (reductions.c)
 *
 * y [outer, inner] = sums of x [outer, n, inner] over n / divisor */
void att_tape_sum_dim(att_ctx *ctx, int64_t outer, int64_t n, int64_t inner, double divisor, const float *x, float *y);
/* Computes y = sum of x [n] / divisor, in ascending order, in double. */
void att_tape_total(att_ctx *ctx, int64_t n, const float *x, int64_t divisor, float *y);
/* Adds x [count] to y [count]. */
void att_tape_sum(att_ctx *ctx, int64_t count, const float *x, float *y);
/* Adds the rows of x [rows, columns] to y [columns], in ascending order. */
void att_tape_sum_rows(att_ctx *ctx, int64_t rows, int64_t columns, const float *x, float *y);

/* ---- elementwise operations on two operands
 *
 * Shapes are broadcast as in NumPy: dimensions are aligned from the last one, and of each pair one is the other or 1
 * (broadcast.c). */

/* Computes y [n] = f(a [n], b [n]); y may be an operand. */
typedef void att_binary(const att_kernels *k, int64_t n, const float *a, const float *b, float *y);
att_binary att_binary_add, att_binary_sub, att_binary_mul, att_binary_div;
/* Computes y = f(a, b), where y has the shape of the result; tensors are dense and may be of rank 0. */
void att_tape_binary(att_ctx *ctx, att_binary *f, const att_tensor *a, const att_tensor *b, const att_tensor *y);
/* Computes the forward of an operation that saves nothing: checks shapes, computes f(a, b) and ends. */
att_var *att_tape_binary_operation(att_tape *t, const att_operation *op, att_binary *f, att_var *a, att_var *b);
/* Adds dy, in the shape of y, to the gradient of x if x requires one: summed over dimensions in which x is broadcast,
 * in an order that depends only on the shapes. */
att_status att_tape_broadcast_back(att_tape *t, const att_tensor *y, const float *dy, att_var *x);
/* Adds f(y->grad, z) to the gradient of x in the same way. */
att_status att_tape_binary_back(att_tape *t, const att_var *y, att_binary *f, const att_tensor *z, att_var *x);
/* Computes att_matmul_strided with scratch memory of the tape (product.c). */
att_status att_tape_product(att_tape *t, const att_matmul_args *args);

/* Checks that x [rows, in], weight [out, in] and bias [out] or NULL make a linear layer (linear.c) */
bool att_tape_check_linear(att_tape *t, const char *op, const att_tensor *x, const att_param *weight,
                           const att_param *bias);
/* Replaces *except by a copy of this library's size, unless it is NULL; false: the tape has failed (topk.c). */
bool att_tape_read_excluded(att_tape *t, const char *op, const att_excluded_columns **except,
                            att_excluded_columns *copy);
/* Checks the arguments of argmax and topk, and sets the value of x; false: the tape has failed (topk.c). */
bool att_tape_check_topk(att_tape *t, const char *op, att_var *x, const att_param *weight, const att_param *bias,
                         const att_excluded_columns *except, const att_top_column *out, att_tensor *value);
/* The entries to select from each row of a product, and where to write them: see att_linear_topk. */
typedef struct att_top_columns {
    const float *bias;                  /* [columns of the product] or NULL */
    const att_excluded_columns *except; /* or NULL */
    int64_t count;
    att_top_column *out; /* [rows][count] */
    double *log_sum;     /* [rows] or NULL */
} att_top_columns;
/* Finds the largest of m rows of x weight^T + bias, x [m, columns of weight]; false: error set (topk.c) */
bool att_tape_topk(att_tape *t, int64_t m, const float *x, att_param *weight, const att_top_columns *what);

/* ---- windows on images (conv_windows.c) */

/* Pairs are vertical, horizontal */
typedef struct att_window {
    int64_t images, channels;
    int64_t size[2], kernel[2], stride[2], padding[2];
    int64_t out[2]; /* number of windows */
} att_window;
/* Finds the windows of x [images, height, width, channels]; false: the tape has failed. */
bool att_tape_window(att_tape *t, const char *op, const att_tensor *x, const int64_t kernel[2], const int64_t stride[2],
                     const int64_t padding[2], att_window *w);

/* ---- functions of the caller's own (function.c) */

/* Makes a checked copy; an error names the call. */
att_status att_function_read(const att_function *function, const char *call, att_function *f);
att_status att_function_forward(att_ctx *ctx, const att_function *f, const void *user, const att_tensor *x,
                                const att_tensor *y);
att_status att_function_backward(att_ctx *ctx, const att_function *f, const void *user, const att_tensor *x,
                                 const att_tensor *y, const att_tensor *dy, const att_tensor *dx);

/* ---- for backward (backward.c) */

/* Runs the steps of all variables that were made since t->last was NULL, backwards, from dy of `from` (NULL: ones).
 * Partial gradients of parameters are in the list t->partials. */
att_status att_tape_run_backward(att_tape *t, att_var *from, const float *dy);

/* Returns the gradient of x (grad.c), to which the caller adds; it is zeroed if it was not written yet. NULL: x is NULL
 * or requires none. */
float *att_tape_grad(att_var *x);
/* Returns the gradient of x for an operation that can write as well as add: if *add is false it must write all
 * elements. */
float *att_tape_grad_for_write(att_var *x, bool *add);
/* Returns whether the gradient of x has been written. */
bool att_tape_begun(const att_var *x);
/* Returns memory for dx, which the caller must write completely: the gradient itself, or if that was written before,
 * scratch memory, which att_tape_dx_end adds. NULL: error set. */
float *att_tape_dx(att_tape *t, att_var *x);
void att_tape_dx_end(att_tape *t, att_var *x, const float *dx);
/* Adds dx, in the shape of x, to the gradient of x if x requires one. */
void att_tape_add_grad(att_tape *t, att_var *x, const float *dx);
/* Returns memory that is valid until the backward of the step returns; NULL: error set. */
float *att_tape_scratch(att_tape *t, size_t count);
/* Computes the backward of z = x W^T + b from dz [m, n]: adds dz W to the gradient of x [m, k], dz^T x to that of
 * weight [n, k], and the sum of the rows of dz to that of bias [n] (or NULL) (linear.c). */
att_status att_tape_input_back(att_tape *t, const float *dz, att_var *x, att_param *weight);
att_status att_tape_weight_back(att_tape *t, int64_t m, const float *dz, const float *x, att_param *weight,
                                att_param *bias);
/* Computes dx [count] = dy [count] f'(x [count]); dx may be dy (activate.c). */
void att_tape_activate_back(att_ctx *ctx, int activation, int64_t count, const float *x, const float *dy, float *dx);

/* ---- parameters (param.c); NULL: error set */

/* Returns the packed copy of value [n, k] (or [n, ...] as a matrix) for GEMM; weights of a convolution [n, channels,
 * height, width] are in the order of its patches, [n, height, width, channels] */
const float *att_param_packed(att_param *p);
/* Returns the packed codes of a matrix of f16 or bf16: half the memory, and a product of few rows reads half as
 * much. */
const uint16_t *att_param_packed_codes(att_param *p);
/* Returns the packed copy of a matrix for products of bf16 (att_bf16_pack), or packs it into y
 * [att_param_pairs_count], without keeping a copy; false: error set. */
const float *att_param_packed_pairs(att_param *p);
size_t att_param_pairs_count(const att_param *p);
bool att_param_pack_pairs(const att_param *p, float *y);
/* Packs the value into y [att_param_packed_count], without keeping a copy; false: error set. */
size_t att_param_packed_count(const att_param *p);
bool att_param_pack(const att_param *p, float *y);
/* value [n, k] as tape/int8_bounds.h has it: a copy that stays */
const float *att_param_int8(att_param *p);
/* Returns the value as dense f32: itself, or a copy that stays, which is for parameters of one dimension and the
 * like. */
const float *att_param_floats(att_param *p);
/* Blocks of rows, of the first dimension, as dense f32, for products that read weights of other types without a whole
 * copy: the number of rows of a block, all of them if the value is f32 and dense; whose scratch memory has this many
 * numbers; rows [first, first + n), of the value itself or converted into scratch. */
int64_t att_param_block(const att_param *p);
size_t att_param_block_count(const att_param *p);
const float *att_param_read_block(const att_param *p, int64_t first, int64_t n, float *scratch);
/* y [n, area, channels] = x [n, channels, area], or back with channels and area exchanged: conv2d's order and a model's
 */
void att_tape_reorder(att_ctx *ctx, int64_t n, int64_t channels, int64_t area, const float *x, float *y);
/* Copies row `row` of value [..., features] as f32 -> y [features]. */
void att_param_row(const att_param *p, int64_t row, float *y);

/* The partial gradient of one backward. begin, which several steps may call, puts the parameter on a list unless it is
 * frozen; gradients are accumulated in att_param_partial, which is NULL for one that is frozen, or NULL; end adds all
 * partial gradients of the list to the gradients, or discards them if not good. */
att_status att_param_grad_begin(att_param *p, att_param **list);
float *att_param_partial(att_param *p);
float *att_param_partial_for_write(att_param *p, bool *add); /* see att_tape_grad_for_write */
void att_param_grads_end(att_param *list, bool good);

/* Moves the gradient to `memory` [count], which belongs to the caller and is zeros from then on while there is no
 * gradient; or, NULL, back to memory of its own, without a gradient. */
void att_param_set_grad_memory(att_param *p, float *memory);
const float *att_param_grad_memory(const att_param *p); /* that of the caller, or NULL */
/* With memory of the caller: if there is no gradient, zeros are one. */
void att_param_set_grad(att_param *p);

#endif
