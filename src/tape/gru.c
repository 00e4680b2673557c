/* GRU: h' = (1 - z) m + z h, m = tanh(W_m x + b_m + r (U_m h + c_m)), for a batch of sequences */
#include "tape/recurrent.h"

static void step(const att_kernels *k, int64_t units, const float *product, const float *h, const float *c,
                 float *gates, float *y)
{
    (void)c;
    k->gru(units, product, h, gates, y);
}

/* ---- backward */

static void step_back(const att_kernels *k, int64_t units, const float *gates, const float *h, const float *c,
                      float *dh, float *dc, float *d, float *dproduct)
{
    (void)c, (void)dc;
    k->gru_back(units, gates, h, dh, d, dproduct);
}

/* The reset gate multiplies the product before m. */
static void to_product(const att_kernels *k, int64_t units, const float *gates, float *d)
{
    k->mul(units, d + 2 * units, gates, d + 2 * units);
}

const att_operation att_operation_gru = {.name = "gru", .backward = att_recurrent_back};

/* ---- forward */

att_var *att_gru(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                 att_recurrent_state *last)
{
    static const att_cell cell = {
        .op = &att_operation_gru, .gates = 3, .forward = step, .backward = step_back, .to_product = to_product};
    return att_recurrent_apply(t, &cell, x, offsets, n, options, last);
}
