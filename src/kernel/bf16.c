/* Words of two bf16 numbers, where a set multiplies such pairs (bf16_products.c).
 *
 * Words go the way of floats: moved, turned and broadcast alike. Those of queries and keys are neighbours in a row;
 * those of values and of weights, which are rounded to bf16, are of two keys that follow each other. */
// only: avx512bf16
#include "kernel/kernel.h"
#include "kernel/soften.h"
#include "simd/simd.h"

/* x [rows, words] -> y [words][PANEL] */
static void turn_words(int64_t rows, int64_t words, const float *x, int64_t stride, float *y)
{
    tile_turn_as(false, rows, words, x, stride, 1, y);
}

/* y [n] words of two rows of bf16 [n]; NULL: zeros. Are all of them finite? */
static bool words_of_rows(int64_t n, const uint16_t *even, const uint16_t *odd, float *y)
{
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 endless = 0;
    for (int64_t i = 0; i < n; i += ATT_LANES) {
        const int count = n - i < ATT_LANES ? (int)(n - i) : ATT_LANES;
        const __m512i low = v_halves(even ? even + i : NULL, even ? count : 0);
        const vf words = v_words(low, v_halves(odd ? odd + i : NULL, odd ? count : 0));
        const __m512i exponents = _mm512_and_si512(_mm512_castps_si512(words), exponent);
        endless |= _mm512_cmpeq_epi16_mask(exponents, exponent);
        v_store_n(y + i, words, count);
    }
    return endless == 0;
}

ATT_INLINE void word_soften_as(const int vectors, float scale, int n_runs, const att_range *run, const float *s,
                               float *max, float *sum, float *rescale, float *words)
{
    softening w = soften_begin(vectors, scale, n_runs, run, s, max, rescale);
    for (int r = 0; r < n_runs; r++) {
        const att_range keys = run[r];
        for (int64_t k = keys.first; k < keys.last; k += 2)
            ATT_UNROLL (v, vectors) {
                const float *at = s + k * PANEL + v * ATT_LANES;
                const vf p = soften_weight(&w, v, at);
                const vf next = k + 1 < keys.last ? soften_weight(&w, v, at + PANEL) : v_set(0);
                w.total[v] = v_add(v_add(w.total[v], p), next);
                v_store(words + k / 2 * PANEL + v * ATT_LANES, v_words_of(p, next));
            }
    }
    soften_end(vectors, &w, rescale, sum);
}

/* As soften, but the weights are rounded, to words [pairs of keys][PANEL]. The first key of a run is even. */
static void word_soften(int columns, float scale, int n_runs, const att_range *run, const float *s, float *max,
                        float *sum, float *rescale, float *words)
{
    if (columns <= ATT_LANES)
        word_soften_as(1, scale, n_runs, run, s, max, sum, rescale, words);
    else
        word_soften_as(ATT_PANEL_VECTORS, scale, n_runs, run, s, max, sum, rescale, words);
}

void ATT_ISA(att_kernel_bf16)(att_kernels *k);
void ATT_ISA(att_kernel_bf16)(att_kernels *k)
{
    k->turn_words = turn_words;
    k->words_of_rows = words_of_rows;
    k->word_soften = word_soften;
}
