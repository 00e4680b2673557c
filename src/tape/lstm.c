/* LSTM: c' = f c + i g, h' = o tanh(c'), for a batch of sequences */
#include "tape/recurrent.h"

#include <string.h>

static void step(const att_kernels *k, int64_t units, const float *product, const float *h, const float *c,
                 float *gates, float *y)
{
    (void)h;
    k->lstm(units, product, c, gates, y);
}

/* ---- backward */

static void step_back(const att_kernels *k, int64_t units, const float *gates, const float *h, const float *c,
                      float *dh, float *dc, float *d, float *dproduct)
{
    (void)h;
    k->lstm_back(units, gates, c, dh, dc, d);
    memcpy(dproduct, d, (size_t)(4 * units) * sizeof *d);
}

const att_operation att_operation_lstm = {.name = "lstm", .backward = att_recurrent_back};

/* ---- forward */

att_var *att_lstm(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                  att_recurrent_state *last)
{
    static const att_cell cell = {
        .op = &att_operation_lstm, .gates = 4, .has_cell = true, .forward = step, .backward = step_back};
    return att_recurrent_apply(t, &cell, x, offsets, n, options, last);
}
