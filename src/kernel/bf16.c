/* Products of pairs of bf16 numbers, summed in f32, where a set has them.
 *
 * Two numbers are kept in a word and words go the way of floats: moved, turned and broadcast alike, only that a
 * multiply-add is that of two pairs. Words of queries and keys are neighbours in a row; words of values and of weights,
 * which are rounded to bf16, are of two keys that follow each other. */
// also: avx512bf16 amx
#include "kernel/kernel.h"
#include "simd/simd.h"

#ifdef ATT_DOT2_BF16
#define TILE_MULTIPLY_ADD v_dot2_words
#include "kernel/soften.h"

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

/* Weights of keys [first, last), of which the first is even, to words [pairs of keys][PANEL]. */
static void words_of_weights(int64_t first, int64_t last, const float *p, float *words)
{
    for (int64_t k = first; k < last; k += 2)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            const float *at = p + k * PANEL + v * ATT_LANES;
            const vf next = k + 1 < last ? v_load(at + PANEL) : v_set(0);
            v_store(words + k / 2 * PANEL + v * ATT_LANES, v_words_of(v_load(at), next));
        }
}

ATT_INLINE void word_soften_as(const int vectors, float scale, int n_runs, const att_run *run, const float *s,
                               float *max, float *sum, float *rescale, float *words)
{
    softening w = soften_begin(vectors, scale, n_runs, run, s, max, rescale);
    for (int r = 0; r < n_runs; r++) {
        const att_run keys = run[r];
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
static void word_soften(int columns, float scale, int n_runs, const att_run *run, const float *s, float *max,
                        float *sum, float *rescale, float *words)
{
    if (columns <= ATT_LANES)
        word_soften_as(1, scale, n_runs, run, s, max, sum, rescale, words);
    else
        word_soften_as(ATT_PANEL_VECTORS, scale, n_runs, run, s, max, sum, rescale, words);
}

#ifdef ATT_TILES_BF16
#include "kernel/bf16_tiles.h"
#else
/* s [keys][PANEL] = k [keys, words] times turned q [words][PANEL] */
static void word_scores(int64_t keys, int64_t queries, int64_t words, const float *k, int64_t stride, const float *q,
                        float *s, int64_t s_stride)
{
    const tile_args t = {.k = words, .a = k, .lda = stride, .b = q, .c = s, .ldc = s_stride};
    tile_columns((int)queries, keys, t);
}

/* As weigh, on words: v [pairs of keys][dim], p rounded into p_words [pairs of keys][PANEL], or NULL where it
 * has been. */
static void word_weigh(int n_runs, const att_run *run, int64_t dim, const float *v, const float *p, float *p_words,
                       const float *rescale, float *o)
{
    for (int r = 0; r < n_runs; r++) {
        const int64_t pair = run[r].first / 2;
        if (p)
            words_of_weights(run[r].first, run[r].last, p, p_words);
        const tile_args t = {.k = (run[r].last - run[r].first + 1) / 2,
                             .a = v + pair * dim,
                             .lda = dim,
                             .b = p_words + pair * PANEL,
                             .c = o,
                             .ldc = PANEL,
                             .scale = rescale};
        tile_onto(r > 0, dim, ATT_PANEL_VECTORS, t);
    }
}
#endif
#endif

void ATT_ISA(att_kernel_bf16)(att_kernels *k);
void ATT_ISA(att_kernel_bf16)(att_kernels *k)
{
    (void)k;
#ifdef ATT_DOT2_BF16
    k->turn_words = turn_words;
    k->word_scores = word_scores;
    k->words_of_rows = words_of_rows;
    k->word_soften = word_soften;
    k->word_weigh = word_weigh;
#endif
#ifdef ATT_TILES_BF16
    k->turn_values = turn_values;
    k->tiles_begin = v_tiles_begin;
    k->tiles_end = v_tiles_end;
#endif
}
