/* Products of pairs of bf16 (bf16.c), summed in f32: the float tiles with another multiply-add, or AMX tiles. */
// only: avx512bf16 amx
#include "kernel/kernel.h"
#include "simd/simd.h"

#define TILE_MULTIPLY_ADD v_dot2_words
#include "kernel/tile.h"

/* Packs weights of keys [first, last) into pairs [pairs of keys][PANEL]; first is even. */
static void pack_weights(int64_t first, int64_t last, const float *p, float *pairs)
{
    for (int64_t k = first; k < last; k += 2)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            const float *at = p + k * PANEL + v * ATT_LANES;
            const vf next = k + 1 < last ? v_load(at + PANEL) : v_set(0);
            v_store(pairs + k / 2 * PANEL + v * ATT_LANES, v_words_of(v_load(at), next));
        }
}

#ifdef ATT_TILES_BF16
#include "kernel/bf16_tiles.h"
#else
/* Computes s [keys][PANEL] = k [keys, pairs] times transposed q [pairs][PANEL]. */
static void scores(int64_t keys, int64_t queries, int64_t pairs, const float *k, int64_t stride, const float *q,
                   float *s, int64_t s_stride)
{
    const tile_args t = {.k = pairs, .a = k, .lda = stride, .b = q, .c = s, .ldc = s_stride};
    tile_columns((int)queries, keys, t);
}

/* Accumulates P V as attention.c does, on pairs: v [pairs of keys][dim], p rounded into p_pairs [pairs of keys][PANEL],
 * or NULL if it has been rounded before. */
static void accumulate_pv(int n_ranges, const att_range *range, int64_t dim, const float *v, const float *p,
                          float *p_pairs, const float *rescale, float *o)
{
    for (int r = 0; r < n_ranges; r++) {
        const int64_t pair = range[r].first / 2;
        if (p)
            pack_weights(range[r].first, range[r].last, p, p_pairs);
        const tile_args t = {.k = (range[r].last - range[r].first + 1) / 2,
                             .a = v + pair * dim,
                             .lda = dim,
                             .b = p_pairs + pair * PANEL,
                             .c = o,
                             .ldc = PANEL,
                             .scale = rescale};
        tile_onto(r > 0, dim, ATT_PANEL_VECTORS, t);
    }
}
#endif

void ATTEND_ISA(att_kernel_bf16_products)(att_kernels *k);
void ATTEND_ISA(att_kernel_bf16_products)(att_kernels *k)
{
    k->bf16.scores = scores;
    k->bf16.accumulate_pv = accumulate_pv;
#ifdef ATT_TILES_BF16
    k->bf16.pack_values = pack_values;
    k->bf16.amx_begin = v_tiles_begin;
    k->bf16.amx_end = v_tiles_end;
#endif
}
