/* LSTM: c' = f c + i g, h' = o tanh(c'), for a batch of sequences */
#include "tape/recurrent.h"

const att_operation att_operation_lstm = {.name = "lstm", .backward = att_recurrent_back};

att_var *att_lstm(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                  att_recurrent_state *last)
{
    static const att_cell cell = {.op = &att_operation_lstm, .gates = 4, .has_cell = true};
    return att_recurrent_apply(t, &cell, x, offsets, n, options, last);
}
