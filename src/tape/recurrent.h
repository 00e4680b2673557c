/* The common part of GRU and LSTM: batched time steps, forward and backward. */
#ifndef ATT_TAPE_RECURRENT_H
#define ATT_TAPE_RECURRENT_H

#include "tape/tape.h"

/* In what they differ */
typedef struct att_cell {
    const att_operation *op;
    int64_t gates;
    bool has_cell; /* beside the hidden state: an LSTM, else a GRU */
} att_cell;

/* The whole operation, arguments unchecked; the backward of its step is att_recurrent_back. */
att_var *att_recurrent_apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                             const att_recurrent *options, att_recurrent_state *last);
att_status att_recurrent_back(att_tape *t, const att_step *s);

#endif
