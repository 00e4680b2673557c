/* Variables, scopes, parameters: what the operations stand on.
 *
 * One operation a file, in three parts:
 *   forward    checks its shapes, computes at once into a new variable, ends with att_tape_done
 *   backward   adds to its inputs' gradients; comes with learning, beside the forward
 *   reference  the same in double, for the tests; the kernels' own are in kernel/reference.c
 *
 * Whatever fails calls att_tape_fail, which keeps the first sentence and returns NULL; every operation returns NULL
 * when the tape has failed or an input is NULL. */
#ifndef ATT_TAPE_H
#define ATT_TAPE_H

#include "base/base.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

/* Marks are the arena's after the allocation; 0 for the caller's numbers. What is above a scope's mark dies with it. */
struct att_var {
    att_tensor value; /* f32, dense */
    size_t made;      /* this struct */
    size_t data_made; /* the numbers */
};

typedef struct att_tape_scope att_tape_scope;

struct att_tape {
    att_ctx *ctx;
    att_arena arena;
    const att_tape_scope *scope; /* innermost, NULL outside of all */
    att_status status;           /* the first failure since the last reset */
    char error[512];
    void (*watch)(void *user, const att_event *event);
    void *watch_user;
};

/* False when an operation need not start: the tape has failed, or the caller has cancelled. */
bool att_tape_ready(att_tape *t);
/* A new variable with numbers of its own, not yet written. */
att_var *att_tape_var(att_tape *t, int rank, const int64_t *dim);
/* A new variable on the numbers of another one. */
att_var *att_tape_view(att_tape *t, const att_var *of, int rank, const int64_t *dim);
/* The end of an operation: shows y to the watch. plan and args are those of "attend", else NULL. */
att_var *att_tape_done(att_tape *t, const char *op, att_var *y, const att_plan *plan, const att_attention_args *args);

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

/* ---- parameters (param.c); NULL: error set */

/* value [n, k] in GEMM panels */
const float *att_param_packed(att_param *p);
/* value as dense f32: itself where it is that, else a copy */
const float *att_param_floats(att_param *p);
/* One row of value [n, features] as f32 -> y [features] */
void att_param_row(const att_param *p, int64_t row, float *y);

#endif
