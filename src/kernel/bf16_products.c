/* Products of words of two bf16 numbers (bf16.c), summed in f32: those of floats, only that a multiply-add is that of
 * two pairs; or in tiles, where a set has them. */
// only: avx512bf16 amx
#include "kernel/kernel.h"
#include "simd/simd.h"

#define TILE_MULTIPLY_ADD v_dot2_words
#include "kernel/tile.h"

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
static void scores(int64_t keys, int64_t queries, int64_t words, const float *k, int64_t stride, const float *q,
                   float *s, int64_t s_stride)
{
    const tile_args t = {.k = words, .a = k, .lda = stride, .b = q, .c = s, .ldc = s_stride};
    tile_columns((int)queries, keys, t);
}

/* As weigh, on words: v [pairs of keys][dim], p rounded into p_words [pairs of keys][PANEL], or NULL where it
 * has been. */
static void accumulate_pv(int n_runs, const att_range *run, int64_t dim, const float *v, const float *p, float *p_words,
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

void ATT_ISA(att_kernel_bf16_products)(att_kernels *k);
void ATT_ISA(att_kernel_bf16_products)(att_kernels *k)
{
    k->bf16.scores = scores;
    k->bf16.accumulate_pv = accumulate_pv;
#ifdef ATT_TILES_BF16
    k->bf16.pack_values = pack_values;
    k->bf16.amx_begin = v_tiles_begin;
    k->bf16.amx_end = v_tiles_end;
#endif
}
