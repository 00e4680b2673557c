/* The common part of GRU and LSTM: batched time steps, forward and backward. */
#ifndef ATT_TAPE_RECURRENT_H
#define ATT_TAPE_RECURRENT_H

#include "tape/tape.h"

/* What is special about a cell. Functions compute one step of one sequence; shapes as in kernel/recurrent.c. */
typedef struct att_cell {
    const att_operation *op;
    int64_t gates;
    bool has_cell; /* has a cell state besides the hidden state */
    /* y from gates and product; h, c: the states before */
    void (*forward)(const att_kernels *k, int64_t units, const float *product, const float *h, const float *c,
                    float *gates, float *y);
    void (*backward)(const att_kernels *k, int64_t units, const float *gates, const float *h, const float *c, float *dh,
                     float *dc, float *d, float *dproduct);
    /* Converts derivatives by the input's part of the gates, d [gates][units], to derivatives by the product; NULL:
     * they are equal. */
    void (*to_product)(const att_kernels *k, int64_t units, const float *gates, float *d);
} att_cell;

/* The whole operation, arguments unchecked; the backward of its step is att_recurrent_back. */
att_var *att_recurrent_apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                             const att_recurrent *options, att_recurrent_state *last);
att_status att_recurrent_back(att_tape *t, const att_step *s);

#endif
