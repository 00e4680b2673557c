/* Variables, scopes, parameters: what the operations stand on.
 *
 * One operation a file, in three parts:
 *   forward    checks its shapes, computes at once into a new variable, ends with att_tape_done
 *   backward   adds to the gradients of its inputs and parameters; entered, with its name, in an att_operation
 *   reference  the same in double, for the tests; the kernels' own are in kernel/reference.c
 *
 * Whatever fails calls att_tape_fail, which keeps the first sentence and returns NULL; every operation returns NULL
 * when the tape has failed or an input is NULL. */
#ifndef ATT_TAPE_H
#define ATT_TAPE_H

#include "attend_learn.h"
#include "base/base.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"
#include "att_lists.h"

typedef struct att_operation att_operation;
typedef struct att_step att_step;

/* Marks are the arena's after the allocation; 0 for the caller's numbers. What is above a scope's mark dies with it. */
struct att_var {
    att_tensor value; /* f32, dense */
    size_t made;      /* this struct */
    size_t data_made; /* the numbers */
    /* Of a tape that records: */
    att_var *before;      /* the one made before it */
    att_var *base;        /* of a view: what it is a view of, in whose gradient its own is; else NULL */
    const att_step *step; /* what made it; NULL for the caller's numbers, and where it does not learn */
    int readers;          /* operations that were given it */
    bool needed;          /* the backward of one of them reads its numbers, or a view is of it */
    bool gone;            /* its numbers are others' now */
    bool learns;          /* it may have a gradient: a parameter leads to it, or numbers that the caller lets learn */
    bool keeps_grad;      /* the caller may ask for the gradient after the backward */
    bool begun;           /* something has been written to the gradient */
    float *grad;          /* as value; NULL until a backward reaches it, and again when it is no longer needed */
};

/* An operation that was done. att_tape_done copies the arrays; NULL in one is what it was not given. */
struct att_step {
    const att_operation *op;
    att_var *y;
    att_var *const *in;
    int n_in;
    att_param *const *param;
    int n_param;
    const void *saved; /* [saved_bytes] what else its backward needs */
    size_t saved_bytes;
    const char *scope; /* where it was done; set by att_tape_done */
};

struct att_operation {
    const char *name;
    /* Adds to the gradients of s->in and s->param, from s->y->grad, which nothing changes any more. NULL: y is a view,
     * and there is nothing to do. */
    att_status (*backward)(att_tape *t, const att_step *s);
    bool forgets_y;      /* its backward reads no numbers of y */
    unsigned forgets_in; /* bit i: nor any of in[i] */
    bool in_place;       /* its backward may write the gradient of in[0] over the numbers of that */
};

/* All of them, found by the build: X(linear) ... */
#define ATT_OPERATION(name) extern const att_operation att_operation_##name;
ATT_OPERATION_LIST(ATT_OPERATION)
#undef ATT_OPERATION

typedef struct att_tape_scope att_tape_scope;
typedef struct att_tape_spare att_tape_spare;

struct att_tape {
    att_ctx *ctx;
    att_arena arena;
    const att_tape_scope *scope; /* innermost, NULL outside of all */
    att_status status;           /* the first failure since the last reset */
    char error[512];
    void (*hook)(void *user, const att_tape_event *event);
    void *hook_user;
    bool record;
    bool detect_anomaly;    /* numbers that are not are an error */
    bool has_grads;         /* a backward is done */
    att_var *last;          /* made last, where it records */
    att_tape_spare *spares; /* memory of variables that are gone */
    att_param *adds_to;     /* by a backward: a list */
    size_t own;             /* in a function of att_recompute: what it may use was made above this mark; else 0 */
};

/* False when an operation need not start: the tape has failed or is NULL, or the caller has cancelled. */
bool att_tape_ready(att_tape *t);
/* A new variable with numbers of its own, not yet written. */
att_var *att_tape_var(att_tape *t, int rank, const int64_t *dim);
/* A new variable on the numbers of another one, and on its gradient: on all, or on a part that begins at number `at`.
 */
att_var *att_tape_view(att_tape *t, att_var *of, int rank, const int64_t *dim);
att_var *att_tape_part(att_tape *t, att_var *of, int64_t at, int rank, const int64_t *dim);
/* bytes at p, for a backward: a copy in the tape's memory where it records, else p. NULL: the tape has failed. */
const void *att_tape_keep(att_tape *t, const void *p, size_t bytes);
/* The end of an operation: looks at y's numbers where they must be finite, records it and shows y to the watch. plan
 * and args are those of "attend", else NULL. */
att_var *att_tape_done(att_tape *t, const att_step *step, const att_plan *plan, const att_attention_args *args);

/* Where numbers must be finite (detect_anomaly.c): whether those of a step's result are, or the tape has failed; and
 * those that its backward has added to, or an error is set. Both name the operation. */
bool att_tape_made_finite(att_tape *t, const att_step *s);
att_status att_tape_back_finite(const att_tape *t, const att_step *s);

/* Frees all variables above the mark but keep; of a tape that records, the numbers that no backward wants. */
att_var *att_tape_release(att_tape *t, size_t mark, att_var *keep);

/* How many rows x has: the product of all dimensions but the last. */
int64_t att_tape_rows(const att_tensor *x);
bool att_same_shape(const att_tensor *a, const att_tensor *b);

/* "[16, 384]", for messages. */
typedef struct att_shape {
    char text[ATT_SHAPE_TEXT];
} att_shape;
att_shape att_shape_of(const att_tensor *x);

/* Are these [n + 1] the offsets of sequences that are the rows of x? */
bool att_tape_check_offsets(att_tape *t, const char *op, const att_tensor *x, const int64_t *offsets, int64_t n);

/* body(arg, first, last) over the rows, in ranges of some ten thousand numbers: less is not worth a thread. */
void att_tape_for_rows(att_ctx *ctx, int64_t rows, int64_t features,
                       void (*body)(const void *arg, int64_t first, int64_t last), const void *arg);

/* body(arg, first, last) over the columns, in ranges of 64: for sums over rows, in ascending order. */
void att_tape_for_columns(att_ctx *ctx, int64_t columns, void (*body)(const void *arg, int64_t first, int64_t last),
                          const void *arg);

/* ---- positions (positions.c); NULL: the tape has failed */

bool att_tape_check_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *at);
/* The position of each of x's rows, [tokens] */
const int64_t *att_tape_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *at);

/* sin and cos of position / base^(2 i / features), i from 0 to below pairs = ceil(features / 2) */
typedef struct att_waves {
    int64_t features;
    double base;
    bool interleaved; /* a row is sin, cos, sin, cos ...; else all sines, then all cosines */
} att_waves;
/* For each position [tokens] a row of 2 pairs numbers, whose bits depend on the position alone */
const float *const *att_tape_waves(att_tape *t, const char *op, const int64_t *position, int64_t tokens,
                                   const att_waves *w);

/* ---- parts and products

 * y (+)= x, block by block of n numbers, x_stride and y_stride apart (blocks.c) */
void att_tape_blocks(att_ctx *ctx, int64_t blocks, int64_t n, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, bool add);
/* As dim of a tensor of that rank, negative from the end, cut at `at`: blocks before and numbers in each step behind.
 * -1: there is no such dimension. */
int att_tape_dim(const att_tensor *x, int dim, int64_t *before, int64_t *behind);

/* A matrix [rows, columns]: element (i, j) at x[i * down + j * right], one of which is 1. */
typedef struct att_matrix {
    const float *x;
    int64_t down, right;
} att_matrix;
/* c [m, n] = a [m, k] b [k, n], added to what is there if `add`; needs scratch (product.c) */
att_status att_tape_product(att_tape *t, int64_t m, int64_t n, int64_t k, att_matrix a, att_matrix b, bool add,
                            float *c);

/* y = the sum of x [n], in ascending order and in double, / divisor */
void att_tape_total(att_ctx *ctx, int64_t n, const float *x, int64_t divisor, float *y);

/* For the largest of x weight^T + bias (topk.c): what x is, or false: the tape has failed, or will say so. */
bool att_tape_check_topk(att_tape *t, const char *op, att_var *x, const att_param *weight, const att_param *bias,
                         const att_excluded_columns *except, const att_top_column *out, att_tensor *value);

/* ---- windows on images (window.c) */

/* Of each: down, right */
typedef struct att_window {
    int64_t images, channels;
    int64_t size[2], kernel[2], stride[2], padding[2];
    int64_t out[2]; /* windows */
} att_window;
/* Windows on x [images, height, width, channels]; false: the tape has failed */
bool att_tape_window(att_tape *t, const char *op, const att_tensor *x, const int64_t kernel[2], const int64_t stride[2],
                     const int64_t padding[2], att_window *w);

/* ---- for backwards (backward.c) */

/* A backward from dy, as `from` (NULL: ones), over the variables that were made since t->last was NULL; what it adds to
 * of parameters is in t->adds_to. */
att_status att_tape_back(att_tape *t, att_var *from, const float *dy);

/* Where the gradient of x is added to: zeros where nothing has been written yet. NULL: x is NULL or needs none */
float *att_tape_grad(att_var *x);
/* The same for who can write as well as add: *add tells which; where it is false, all numbers are to be written. */
float *att_tape_grad_put(att_var *x, bool *add);
/* Has something been written to the gradient of x? */
bool att_tape_begun(const att_var *x);
/* Where dx of an x that needs one is to be written, all of it: its gradient, or scratch where that has numbers already;
 * dx_end then adds those. NULL: error set */
float *att_tape_dx(att_tape *t, att_var *x);
void att_tape_dx_end(att_tape *t, att_var *x, const float *dx);
/* Adds dx, as x, to the gradient of x, where it needs one. */
void att_tape_give(att_tape *t, att_var *x, const float *dx);
/* Numbers that are there until the step's backward returns. NULL: error set */
float *att_tape_scratch(att_tape *t, size_t count);
/* y [count] += x [count] */
void att_tape_sum(att_ctx *ctx, int64_t count, const float *x, float *y);
/* y [columns] += the rows of x [rows, columns], in ascending order */
void att_tape_sum_rows(att_ctx *ctx, int64_t rows, int64_t columns, const float *x, float *y);
/* With dz [m, n] by z = x W^T + b: adds dz W to the gradient of x [m, k]; and to that of weight [n, k] dz^T x, to that
 * of bias [n] (NULL: there is none) the sum of dz's rows (linear.c) */
att_status att_tape_input_back(att_tape *t, const float *dz, att_var *x, att_param *weight);
att_status att_tape_weight_back(att_tape *t, int64_t m, const float *dz, const float *x, att_param *weight,
                                att_param *bias);
/* dx [count] = dy [count] f'(x [count]); dx may be dy (activate.c) */
void att_tape_activate_back(att_ctx *ctx, int activation, int64_t count, const float *x, const float *dy, float *dx);

/* ---- parameters (param.c); NULL: error set */

/* value [n, k], or [n, ...] taken for that, in GEMM panels: a copy that stays */
const float *att_param_packed(att_param *p);
/* The same, into y [att_param_packed_count]; false: error set */
size_t att_param_packed_count(const att_param *p);
bool att_param_pack(const att_param *p, float *y);
/* value [n, k] as gemm/bytes.h has it: a copy that stays */
const float *att_param_bytes(att_param *p);
/* value as dense f32: itself where it is that, else a copy */
const float *att_param_floats(att_param *p);
/* One row of value [..., features], counted through all dimensions before, as f32 -> y [features] */
void att_param_row(const att_param *p, int64_t row, float *y);

/* A backward's part of the gradient, as value, dense: begun, which more than one step may, and entered in a list of
 * those, it is added to at att_param_part; ended, all of the list are added to their gradients, or if not good
 * forgotten. */
att_status att_param_grad_begin(att_param *p, att_param **list);
float *att_param_part(att_param *p);
float *att_param_part_put(att_param *p, bool *add); /* as att_tape_grad_put */
void att_param_grads_end(att_param *list, bool good);

#endif
