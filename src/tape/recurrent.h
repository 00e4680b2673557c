/* The common part of GRU and LSTM: batched time steps, forward and backward. */
#ifndef ATT_TAPE_RECURRENT_H
#define ATT_TAPE_RECURRENT_H

#include "tape/tape.h"

/* The differences between GRU and LSTM. */
typedef struct att_cell {
    const att_operation *op;
    int64_t gates;
    bool has_cell; /* there is a cell state beside the hidden state (LSTM); false: GRU */
} att_cell;

/* Runs the whole operation, arguments unchecked; the backward of its step is att_recurrent_back. */
att_var *att_recurrent_apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                             const att_recurrent *options, att_recurrent_state *last);
att_status att_recurrent_back(att_tape *t, const att_step *s);

#endif
