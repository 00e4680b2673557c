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
    const att_step *step; /* what made it; NULL for the caller's numbers */
    float *grad;          /* as value; NULL until a backward reaches it */
};

enum { ATT_MAX_INPUTS = 3 + ATT_MAX_PARAMS + ATT_MAX_STAGES }; /* those of attend */

/* An operation that was done; what it does not have is NULL. */
struct att_step {
    const att_operation *op;
    att_var *y;
    att_var *in[ATT_MAX_INPUTS];
    att_param *param[2];
    const void *kept; /* what else its backward needs: att_tape_done copies kept_bytes of it */
    size_t kept_bytes;
};

struct att_operation {
    const char *name;
    /* Adds to the gradients of s->in and s->param, from that of s->y; all are there, and s->y has the last word. */
    att_status (*backward)(att_tape *t, const att_step *s);
};

/* All of them, found by the build: X(linear) ... */
#define ATT_OPERATION(name) extern const att_operation att_operation_##name;
ATT_OPERATION_LIST(ATT_OPERATION)
#undef ATT_OPERATION

typedef struct att_tape_scope att_tape_scope;

struct att_tape {
    att_ctx *ctx;
    att_arena arena;
    const att_tape_scope *scope; /* innermost, NULL outside of all */
    att_status status;           /* the first failure since the last reset */
    char error[512];
    void (*watch)(void *user, const att_event *event);
    void *watch_user;
    bool record;
    bool has_grads; /* a backward is done */
    att_var *last;  /* made last, where it records */
};

/* False when an operation need not start: the tape has failed, or the caller has cancelled. */
bool att_tape_ready(att_tape *t);
/* A new variable with numbers of its own, not yet written. */
att_var *att_tape_var(att_tape *t, int rank, const int64_t *dim);
/* A new variable on the numbers of another one. */
att_var *att_tape_view(att_tape *t, const att_var *of, int rank, const int64_t *dim);
/* bytes at p, for a backward: a copy in the tape's memory where it records, else p. NULL: the tape has failed. */
const void *att_tape_keep(att_tape *t, const void *p, size_t bytes);
/* The end of an operation: records it and shows y to the watch. plan and args are those of "attend", else NULL. */
att_var *att_tape_done(att_tape *t, const att_step *step, const att_plan *plan, const att_attention_args *args);

/* How many rows x has: the product of all dimensions but the last. */
int64_t att_tape_rows(const att_tensor *x);

/* "[16, 384]", for messages. */
typedef struct att_shape {
    char text[ATT_SHAPE_TEXT];
} att_shape;
att_shape att_shape_of(const att_tensor *x);

/* body(arg, first, last) over the rows, in ranges of some ten thousand numbers: less is not worth a thread. */
void att_tape_for_rows(att_ctx *ctx, int64_t rows, int64_t features,
                       void (*body)(const void *arg, int64_t first, int64_t last), const void *arg);

/* body(arg, first, last) over the columns, in ranges of 64: for sums over rows, in ascending order. */
void att_tape_for_columns(att_ctx *ctx, int64_t columns, void (*body)(const void *arg, int64_t first, int64_t last),
                          const void *arg);

/* ---- for backwards (backward.c) */

/* Numbers that are there until the step's backward returns. NULL: error set */
float *att_tape_scratch(att_tape *t, size_t count);
/* y [count] += x [count] */
void att_tape_sum(att_ctx *ctx, int64_t count, const float *x, float *y);
/* dx [count] = dy [count] f'(x [count]); dx may be dy (activate.c) */
void att_tape_activate_back(att_ctx *ctx, int activation, int64_t count, const float *x, const float *dy, float *dx);

/* ---- parameters (param.c); NULL: error set */

/* value [n, k] in GEMM panels */
const float *att_param_packed(att_param *p);
/* value as dense f32: itself where it is that, else a copy */
const float *att_param_floats(att_param *p);
/* One row of value [..., features], counted through all dimensions before, as f32 -> y [features] */
void att_param_row(const att_param *p, int64_t row, float *y);

/* A backward's part of the gradient: begun, which more than one step may, it is all zero and added to at
 * att_param_part; ended, it is added to the gradient, or if not good forgotten. */
att_status att_param_grad_begin(att_param *p);
float *att_param_part(const att_param *p); /* as value, dense */
void att_param_grad_end(att_param *p, bool good);

#endif
