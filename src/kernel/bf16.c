/* Products of bf16 numbers, summed in f32. Sets that multiply pairs take the numbers as they are, others convert.
 *
 * In attention such a set keeps two numbers in a word and lets words go the way of floats: moved, turned and broadcast
 * alike, only that a multiply-add is that of two pairs. Words of queries and keys are neighbours in a row; words of
 * values and of weights, which are rounded to bf16, are of two keys that follow each other. */
// also: avx512bf16
#include "kernel/kernel.h"
#include "simd/simd.h"
#ifdef ATT_DOT2_BF16
#define TILE_MULTIPLY_ADD v_dot2_words
#include "kernel/tile.h"
#endif

#include <string.h>

enum { STEP = 2 * ATT_LANES };

/* sum + a b, for a [STEP] and b [STEP] */
ATT_INLINE vf add_products(vf sum, const uint16_t *a, const uint16_t *b)
{
#ifdef ATT_DOT2_BF16
    return v_dot2_bf16(sum, v_load_bf16(a), v_load_bf16(b));
#else
    sum = v_fma(v_from_bf16(a), v_from_bf16(b), sum);
    return v_fma(v_from_bf16(a + ATT_LANES), v_from_bf16(b + ATT_LANES), sum);
#endif
}

static float dot_bf16(int64_t n, const uint16_t *a, const uint16_t *b)
{
    vf s0 = v_set(0), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * STEP <= n; i += 4 * STEP) {
        s0 = add_products(s0, a + i, b + i);
        s1 = add_products(s1, a + i + STEP, b + i + STEP);
        s2 = add_products(s2, a + i + 2 * STEP, b + i + 2 * STEP);
        s3 = add_products(s3, a + i + 3 * STEP, b + i + 3 * STEP);
    }
    for (; i + STEP <= n; i += STEP)
        s0 = add_products(s0, a + i, b + i);
    if (i < n) {
        uint16_t rest[2][STEP] = {0};
        memcpy(rest[0], a + i, (size_t)(n - i) * sizeof *a);
        memcpy(rest[1], b + i, (size_t)(n - i) * sizeof *b);
        s1 = add_products(s1, rest[0], rest[1]);
    }
    return v_sum(v_add(v_add(s0, s1), v_add(s2, s3)));
}

#ifdef ATT_DOT2_BF16
/* x [rows, words] -> y [words][PANEL] */
static void turn_words(int64_t rows, int64_t words, const float *x, int64_t stride, float *y)
{
    tile_turn_as(false, rows, words, x, stride, 1, y);
}

/* s [keys][PANEL] = k [keys, words] times turned q [words][PANEL] */
static void word_scores(int64_t keys, int64_t queries, int64_t words, const float *k, int64_t stride, const float *q,
                        float *s, int64_t s_stride)
{
    const tile_args t = {.k = words, .a = k, .lda = stride, .b = q, .c = s, .ldc = s_stride};
    if (queries <= ATT_LANES)
        tile_all(keys, 1, false, START_ZERO, t);
    else
        tile_all(keys, ATT_PANEL_VECTORS, false, START_ZERO, t);
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
            v_store(words + k / 2 * PANEL + v * ATT_LANES, v_words(v_round_bf16(v_load(at)), v_round_bf16(next)));
        }
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
        if (r > 0)
            tile_all(dim, ATT_PANEL_VECTORS, true, START_C, t);
        else if (rescale)
            tile_all(dim, ATT_PANEL_VECTORS, true, START_SCALED, t);
        else
            tile_all(dim, ATT_PANEL_VECTORS, true, START_ZERO, t);
    }
}
#endif

void ATT_ISA(att_kernel_bf16)(att_kernels *k);
void ATT_ISA(att_kernel_bf16)(att_kernels *k)
{
    k->dot_bf16 = dot_bf16;
#ifdef ATT_DOT2_BF16
    k->turn_words = turn_words;
    k->word_scores = word_scores;
    k->words_of_rows = words_of_rows;
    k->word_weigh = word_weigh;
#endif
}
