/* One step of n units of a GRU (Cho et al. 2014, its reset gate after the product) or an LSTM (Hochreiter, Schmidhuber
 * 1997, with the forget gate of Gers et al. 2000), and its derivatives.
 *
 * product [gates][n] is the part of the gates from the previous state. gates [gates + 1][n] has on entry the part from
 * the input; a step replaces it by the gates, and writes one more row that its derivative needs. */
#include "kernel/activation.h"
#include "kernel/kernel.h"

/* ---- GRU: r = sigmoid(in_r + product_r), z = sigmoid(in_z + product_z), m = tanh(in_m + r product_m),
 * y = (1 - z) m + z h. gates: r, z, m and product_m. */

ATT_INLINE void gru_vector(int64_t n, int used, const float *product, const float *h, float *gates, float *y)
{
    const vf r = v_sigmoid(v_add(v_load_n(gates, used), v_load_n(product, used)));
    const vf z = v_sigmoid(v_add(v_load_n(gates + n, used), v_load_n(product + n, used)));
    const vf p = v_load_n(product + 2 * n, used), m = v_tanh(v_fma(r, p, v_load_n(gates + 2 * n, used)));
    v_store_n(gates, r, used);
    v_store_n(gates + n, z, used);
    v_store_n(gates + 2 * n, m, used);
    v_store_n(gates + 3 * n, p, used);
    v_store_n(y, v_fma(z, v_sub(v_load_n(h, used), m), m), used);
}

/* Computes y [n] from h [n]. */
static void gru(int64_t n, const float *product, const float *h, float *gates, float *y)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        gru_vector(n, ATT_LANES, product + i, h + i, gates + i, y + i);
    if (i < n)
        gru_vector(n, (int)(n - i), product + i, h + i, gates + i, y + i);
}

ATT_INLINE void gru_back_vector(int64_t n, int used, const float *gates, const float *h, float *dh, float *d,
                                float *dproduct)
{
    const vf r = v_load_n(gates, used), z = v_load_n(gates + n, used), m = v_load_n(gates + 2 * n, used);
    const vf p = v_load_n(gates + 3 * n, used), dy = v_load_n(dh, used);
    const vf dm = v_mul(v_mul(dy, v_sub(v_set(1), z)), v_tanh_slope(m));
    const vf dz = v_mul(v_mul(dy, v_sub(v_load_n(h, used), m)), v_sigmoid_slope(z));
    const vf dr = v_mul(v_mul(dm, p), v_sigmoid_slope(r));
    v_store_n(d, dr, used);
    v_store_n(d + n, dz, used);
    v_store_n(d + 2 * n, dm, used);
    v_store_n(dproduct, dr, used);
    v_store_n(dproduct + n, dz, used);
    v_store_n(dproduct + 2 * n, v_mul(dm, r), used);
    v_store_n(dh, v_mul(dy, z), used);
}

/* Computes the backward of a GRU step. dh [n] is the gradient by y, and on return that by h, without the part through
 * the product; d, dproduct [3][n]: the gradients by in and product. */
static void gru_back(int64_t n, const float *gates, const float *h, float *dh, float *d, float *dproduct)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        gru_back_vector(n, ATT_LANES, gates + i, h + i, dh + i, d + i, dproduct + i);
    if (i < n)
        gru_back_vector(n, (int)(n - i), gates + i, h + i, dh + i, d + i, dproduct + i);
}

/* ---- LSTM: i, f, o = sigmoid(in + product), g = tanh(in + product), c' = f c + i g, y = o tanh(c').
 * gates: i, f, g, o and c'. */

ATT_INLINE vf preactivation(const float *gate, const float *product, int used)
{
    return v_add(v_load_n(gate, used), v_load_n(product, used));
}

ATT_INLINE void lstm_vector(int64_t n, int used, const float *product, const float *c, float *gates, float *y)
{
    const vf in = v_sigmoid(preactivation(gates, product, used));
    const vf forget = v_sigmoid(preactivation(gates + n, product + n, used));
    const vf candidate = v_tanh(preactivation(gates + 2 * n, product + 2 * n, used));
    const vf out = v_sigmoid(preactivation(gates + 3 * n, product + 3 * n, used));
    const vf cell = v_fma(forget, v_load_n(c, used), v_mul(in, candidate));
    v_store_n(gates, in, used);
    v_store_n(gates + n, forget, used);
    v_store_n(gates + 2 * n, candidate, used);
    v_store_n(gates + 3 * n, out, used);
    v_store_n(gates + 4 * n, cell, used);
    v_store_n(y, v_mul(out, v_tanh(cell)), used);
}

/* Computes y [n] from c [n]. */
static void lstm(int64_t n, const float *product, const float *c, float *gates, float *y)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        lstm_vector(n, ATT_LANES, product + i, c + i, gates + i, y + i);
    if (i < n)
        lstm_vector(n, (int)(n - i), product + i, c + i, gates + i, y + i);
}

ATT_INLINE void lstm_back_vector(int64_t n, int used, const float *gates, const float *c, float *dh, float *dc,
                                 float *d)
{
    const vf in = v_load_n(gates, used), forget = v_load_n(gates + n, used);
    const vf candidate = v_load_n(gates + 2 * n, used), out = v_load_n(gates + 3 * n, used);
    const vf t = v_tanh(v_load_n(gates + 4 * n, used)), dy = v_load_n(dh, used);
    const vf dcell = v_fma(v_mul(dy, out), v_tanh_slope(t), v_load_n(dc, used));
    v_store_n(d, v_mul(v_mul(dcell, candidate), v_sigmoid_slope(in)), used);
    v_store_n(d + n, v_mul(v_mul(dcell, v_load_n(c, used)), v_sigmoid_slope(forget)), used);
    v_store_n(d + 2 * n, v_mul(v_mul(dcell, in), v_tanh_slope(candidate)), used);
    v_store_n(d + 3 * n, v_mul(v_mul(dy, t), v_sigmoid_slope(out)), used);
    v_store_n(dc, v_mul(dcell, forget), used);
    v_store_n(dh, v_set(0), used);
}

/* Computes the backward of an LSTM step. dh [n] is the gradient by y, and on return 0, because h contributes only
 * through the product; dc [n] is the gradient by c', and on return by c; d [4][n]: the gradient by in and by
 * product. */
static void lstm_back(int64_t n, const float *gates, const float *c, float *dh, float *dc, float *d)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        lstm_back_vector(n, ATT_LANES, gates + i, c + i, dh + i, dc + i, d + i);
    if (i < n)
        lstm_back_vector(n, (int)(n - i), gates + i, c + i, dh + i, dc + i, d + i);
}

void ATTEND_ISA(att_kernel_recurrent)(att_kernels *k);
void ATTEND_ISA(att_kernel_recurrent)(att_kernels *k)
{
    k->layer.gru = gru;
    k->layer.gru_back = gru_back;
    k->layer.lstm = lstm;
    k->layer.lstm_back = lstm_back;
}
