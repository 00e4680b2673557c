/* GRU: h' = (1 - z) m + z h, m = tanh(W_m x + b_m + r (U_m h + c_m)), for a batch of sequences */
#include "tape/recurrent.h"

const att_operation att_operation_gru = {.name = "gru", .backward = att_recurrent_back};

att_var *att_gru(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                 att_recurrent_state *last)
{
    static const att_cell cell = {.op = &att_operation_gru, .gates = 3};
    return att_recurrent_apply(t, &cell, x, offsets, n, options, last);
}
