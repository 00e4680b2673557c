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
#include "kernel/tile.h"

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

/* As weigh, on words: v [pairs of keys][dim], p rounded into p_words [pairs of keys][PANEL]. */
static void word_weigh(int n_runs, const att_run *run, int64_t dim, const float *v, const float *p, float *p_words,
                       const float *rescale, float *o)
{
    for (int r = 0; r < n_runs; r++) {
        const int64_t pair = run[r].first / 2;
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
    k->word_weigh = word_weigh;
#endif
#ifdef ATT_TILES_BF16
    k->turn_values = turn_values;
#endif
}
