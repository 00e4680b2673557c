/* The backward of attention on one block of queries by one block of keys, in the forward's orientation: scores lie
 * [keys][queries]. Of its five products two are new here, those that sum over queries; the other three have the
 * shapes of the forward. */
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>

/* scale x [rows, n] -> y [panels of n][all][PANEL], behind n 0, only the first rows: what products over rows read. */
static void panel_rows(int64_t rows, int64_t all, int64_t n, const float *x, int64_t stride, float scale, float *y)
{
    for (int64_t j = 0; j < n; j += PANEL, y += all * PANEL)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t v = 0; v < PANEL; v += ATT_LANES) {
                const int64_t left = n - j - v;
                const int count = left <= 0 ? 0 : left < ATT_LANES ? (int)left : ATT_LANES;
                v_store(y + i * PANEL + v, v_mul(v_load_n(x + i * stride + j + v, count), v_set(scale)));
            }
}

/* c [m][panel] = a [m, k] times turned b [k][panel], the columns in use; rows of c ldc apart: dP^T = V dO^T */
static void over_columns(int columns, int64_t m, int64_t k, const float *a, int64_t lda, const float *b, float *c,
                         int64_t ldc)
{
    const tile_args t = {.k = k, .a = a, .lda = lda, .b = b, .c = c, .ldc = ldc};
    tile_columns(columns, m, t);
}

/* c [m][panel], or 0 where that has not been begun, + a [keys, m]^T times ds [keys][panel], rows of ds b_step apart:
 * dQ^T += K^T dS^T, and the gradient of W (side_param.c) */
static void over_keys(bool begun, int64_t m, int64_t keys, const float *a, int64_t lda, const float *ds, int64_t b_step,
                      float *c, att_prefetch *prefetch)
{
    const tile_args t = {
        .k = keys, .a = a, .lda = lda, .b = ds, .b_step = b_step, .c = c, .ldc = PANEL, .prefetch = prefetch};
    tile_onto(begun, m, ATT_PANEL_VECTORS, t);
}

ATT_INLINE void over_queries_as(const tile_start start, int64_t keys, int64_t queries, const float *p, int64_t ldp,
                                const float *x, int64_t x_rows, int64_t n, float *c, int64_t ldc)
{
    enum { HALF_MORE = ATT_PANEL_VECTORS + 1 }; /* vectors: a panel and half of the next, where registers suffice */
    for (int64_t j = 0; j < n; j += PANEL) {
        const tile_args t = {
            .k = queries, .a = p, .lda = ldp, .b = x + j * x_rows, .ldb = x_rows * PANEL, .c = c + j, .ldc = ldc};
        const int64_t left = n - j;
        if (ATT_WIDE_ROWS > 2 && left > PANEL && left <= HALF_MORE * ATT_LANES) {
            tile_all(keys, HALF_MORE, false, start, t);
            return;
        }
        if (left > ATT_LANES)
            tile_all(keys, ATT_PANEL_VECTORS, false, start, t);
        else
            tile_all(keys, 1, false, start, t);
    }
}

/* c [keys][n], or 0 where that has not been begun, + p [keys, queries] times x in panels [panels of n][x_rows][PANEL]:
 * dV += P^T dO and dK += dS^T Q. With few queries the time is that of reading and writing c, which then goes row by
 * row. */
static void over_queries(bool begun, int64_t keys, int64_t queries, const float *p, int64_t ldp, const float *x,
                         int64_t x_rows, int64_t n, float *c, int64_t ldc)
{
    enum { FEW = 8 };
    const int64_t step = queries > FEW ? keys : ROWS;
    for (int64_t i = 0; i < keys; i += step, p += step * ldp, c += step * ldc) {
        const int64_t some = keys - i < step ? keys - i : step;
        if (begun)
            over_queries_as(START_C, some, queries, p, ldp, x, x_rows, n, c, ldc);
        else
            over_queries_as(START_ZERO, some, queries, p, ldp, x, x_rows, n, c, ldc);
    }
}

/* s and dp [keys][panel]: s becomes p = exp(scale s - lse), dp becomes p (dp - delta); lse in units of log2. */
static void soften_back(int64_t keys, float scale, float *s, float *dp, int64_t stride, const float *lse,
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

void ATT_ISA(att_kernel_attention_backward)(att_kernels *k);
void ATT_ISA(att_kernel_attention_backward)(att_kernels *k)
{
    k->panel_rows = panel_rows;
    k->over_columns = over_columns;
    k->over_keys = over_keys;
    k->over_queries = over_queries;
    k->soften_back = soften_back;
}
