/* What the GRU and the LSTM have in common: sequences side by side through time, and back. */
#ifndef ATT_TAPE_RECURRENT_H
#define ATT_TAPE_RECURRENT_H

#include "tape/tape.h"

/* In what they differ. Functions do one step of one sequence; shapes are those of kernel/recurrent.c. */
typedef struct att_cell {
    const att_operation *op;
    int64_t gates;
    bool has_cell; /* beside the hidden state */
    /* y from gates and product; h, c: the states before */
    void (*forward)(const att_kernels *k, int64_t units, const float *product, const float *h, const float *c,
                    float *gates, float *y);
    void (*backward)(const att_kernels *k, int64_t units, const float *gates, const float *h, const float *c, float *dh,
                     float *dc, float *d, float *dproduct);
    /* From derivatives by the input's part, d [gates][units], to those by the product; NULL: they are the same. */
    void (*to_product)(const att_kernels *k, int64_t units, const float *gates, float *d);
} att_cell;

/* The whole operation, of arguments not yet checked; its step's backward is att_recurrent_back. */
att_var *att_recurrent_apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                             const att_recurrent *options, att_recurrent_state *last);
att_status att_recurrent_back(att_tape *t, const att_step *s);

#endif
