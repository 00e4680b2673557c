/* Pairs of bf16 in 32 bits, for instruction sets that multiply such pairs (bf16_products.c).
 *
 * A pair is loaded, transposed and broadcast as a float is. Pairs of queries and keys are neighbors in a row; pairs of
 * values, and of weights, which are rounded to bf16, belong to two consecutive keys. */
// only: avx512bf16
#include "kernel/kernel.h"
#include "kernel/softmax_step.h"
#include "simd/simd.h"

/* x [rows, pairs] -> y [pairs][PANEL] */
static void pack(int64_t rows, int64_t pairs, const float *x, int64_t stride, float *y)
{
    tile_pack_as(false, rows, pairs, x, stride, 1, y);
}

/* y [n] = pairs of two rows of bf16 [n]; one may be NULL, for zeros. Returns whether all are finite. */
static bool interleave(int64_t n, const uint16_t *even, const uint16_t *odd, float *y)
{
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 endless = 0;
    for (int64_t i = 0; i < n; i += ATT_LANES) {
        const int count = n - i < ATT_LANES ? (int)(n - i) : ATT_LANES;
        const __m512i low = v_halves(even ? even + i : NULL, even ? count : 0);
        const vf pairs = v_words(low, v_halves(odd ? odd + i : NULL, odd ? count : 0));
        const __m512i exponents = _mm512_and_si512(_mm512_castps_si512(pairs), exponent);
        endless |= _mm512_cmpeq_epi16_mask(exponents, exponent);
        v_store_n(y + i, pairs, count);
    }
    return endless == 0;
}

ATT_INLINE void softmax_step_as(const int vectors, const att_softmax_step *t)
{
    softmax_state w = softmax_begin(vectors, t);
    for (int r = 0; r < t->n_ranges; r++) {
        const att_range keys = t->range[r];
        for (int64_t k = keys.first; k < keys.last; k += 2)
            ATT_UNROLL (v, vectors) {
                const float *at = t->s + k * PANEL + v * ATT_LANES;
                const vf p = softmax_weight(&w, v, at);
                const vf next = k + 1 < keys.last ? softmax_weight(&w, v, at + PANEL) : v_set(0);
                w.total[v] = v_add(v_add(w.total[v], p), next);
                v_store(t->pairs + k / 2 * PANEL + v * ATT_LANES, v_words_of(p, next));
            }
    }
    softmax_end(vectors, &w, t->rescale, t->sum);
}

/* Makes a softmax step as attention.c does, but rounds the weights to bf16 and stores them in pairs of keys,
 * [pairs][PANEL]. A range begins with an even key. */
static void softmax_step(const att_softmax_step *t)
{
    if (t->columns <= ATT_LANES)
        softmax_step_as(1, t);
    else
        softmax_step_as(ATT_PANEL_VECTORS, t);
}

void ATTEND_ISA(att_kernel_bf16)(att_kernels *k);
void ATTEND_ISA(att_kernel_bf16)(att_kernels *k)
{
    k->bf16.pack = pack;
    k->bf16.interleave = interleave;
    k->bf16.softmax_step = softmax_step;
}
