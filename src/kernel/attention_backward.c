/* The backward of attention on one tile of queries by one block of keys, oriented as the forward: scores are
 * [keys][queries]. S^T, the first of its five products, is the forward's; this file has dP^T, dQ^T, dK and dV. */
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>

/* Packs x [rows, n] times scale -> y [panels of n][all][PANEL], the right operand of gemm_nn, zero-padded after n; rows
 * after `rows` are not written. */
static void pack_rows(int64_t rows, int64_t all, int64_t n, const float *x, int64_t stride, float scale, float *y)
{
    for (int64_t j = 0; j < n; j += PANEL, y += all * PANEL)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t v = 0; v < PANEL; v += ATT_LANES) {
                const int64_t left = n - j - v;
                const int count = left <= 0 ? 0 : left < ATT_LANES ? (int)left : ATT_LANES;
                v_store(y + i * PANEL + v, v_mul(v_load_n(x + i * stride + j + v, count), v_set(scale)));
            }
}

/* Computes c [m][PANEL] = a [m, k] b [k][PANEL], the first n columns: dP^T = V dO^T. */
static void dp(const att_product *x)
{
    const tile_args t = {.k = x->k, .a = x->a, .lda = x->lda, .b = x->b, .c = x->c, .ldc = x->ldc};
    tile_columns((int)x->n, x->m, t);
}

/* Computes or adds c [m][PANEL] = a [k, m]^T b [k][PANEL], rows of b ldb apart: dQ^T += K^T dS^T, and the gradient of a
 * projection (projection_back.c). */
static void gemm_tn(const att_product *x)
{
    const tile_args t = {.k = x->k,
                         .a = x->a,
                         .lda = x->lda,
                         .b = x->b,
                         .b_step = x->ldb,
                         .c = x->c,
                         .ldc = PANEL,
                         .prefetch = x->prefetch};
    tile_onto(x->add, x->m, ATT_PANEL_VECTORS, t);
}

/* Computes some rows of gemm_nn. */
ATT_INLINE void gemm_nn_as(const tile_start start, const att_product *x, int64_t first, int64_t rows)
{
    enum { HALF_MORE = ATT_PANEL_VECTORS + 1 }; /* vectors: a panel and half of the next, if registers suffice */
    for (int64_t j = 0; j < x->n; j += PANEL) {
        const tile_args t = {.k = x->k,
                             .a = x->a + first * x->lda,
                             .lda = x->lda,
                             .b = x->b + j * x->ldb,
                             .ldb = x->ldb * PANEL,
                             .c = x->c + first * x->ldc + j,
                             .ldc = x->ldc};
        const int64_t left = x->n - j;
        if (ATT_WIDE_ROWS > 2 && left > PANEL && left <= HALF_MORE * ATT_LANES) {
            tile_all(rows, HALF_MORE, false, start, t);
            return;
        }
        if (left > ATT_LANES)
            tile_all(rows, ATT_PANEL_VECTORS, false, start, t);
        else
            tile_all(rows, 1, false, start, t);
    }
}

/* Computes or adds c [m][n] = a [m, k] b, with b in panels [panels of n][ldb][PANEL]: dV += P^T dO and dK += dS^T Q. If
 * k is small, most time is spent on reading and writing c, which is then processed row by row. */
static void gemm_nn(const att_product *x)
{
    enum { SMALL = 8 };
    const int64_t step = x->k > SMALL ? x->m : ROWS;
    for (int64_t i = 0; i < x->m; i += step) {
        const int64_t rows = x->m - i < step ? x->m - i : step;
        if (x->add)
            gemm_nn_as(START_C, x, i, rows);
        else
            gemm_nn_as(START_ZERO, x, i, rows);
    }
}

/* Replaces s and dp [keys][panel] by p = exp(scale s - lse) and p (dp - delta); lse is in units of log2. */
static void softmax_backward(int64_t keys, float scale, float *s, float *dp, int64_t stride, const float *lse,
                             const float *delta)
{
    const vf log2e = v_set((float)ATT_LOG2_E * scale);
    const unsigned flushed = v_flush_begin();
    vf base[ATT_PANEL_VECTORS], mean[ATT_PANEL_VECTORS];
    ATT_UNROLL (v, ATT_PANEL_VECTORS) {
        base[v] = v_sub(v_set(0), v_load(lse + v * ATT_LANES));
        mean[v] = v_load(delta + v * ATT_LANES);
    }
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            const int64_t at = k * stride + v * ATT_LANES;
            const vf x = v_load(s + at), p = v_exp2(v_fma(x, log2e, base[v]));
            const vf ds = v_mul(p, v_sub(v_load(dp + at), mean[v]));
            v_store(s + at, p);
            v_store(dp + at, v_select(v_lt(x, v_set(-FLT_MAX)), v_set(0), ds)); /* 0 x NaN */
        }
    v_flush_end(flushed);
}

void ATTEND_ISA(att_kernel_attention_backward)(att_kernels *k);
void ATTEND_ISA(att_kernel_attention_backward)(att_kernels *k)
{
    k->backward.pack_rows = pack_rows;
    k->backward.dp = dp;
    k->backward.gemm_tn = gemm_tn;
    k->backward.gemm_nn = gemm_nn;
    k->backward.softmax = softmax_backward;
}
