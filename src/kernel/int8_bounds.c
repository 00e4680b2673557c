/* Bounds of many products from int8 copies, a quarter of the bytes.
 *
 * Rows are stored as integers of a byte: x = s p + f and w = t q + e, where f and e are the rests. Then
 *
 *   x . w = s t (p . q) + f . (t q) + x . e,   |f . (t q)| <= |f| (|w| + |e|),   |x . e| <= |x| |e|
 *
 * by the Cauchy-Schwarz inequality. p . q has no rounding, and the norms are known. So to find the largest of many
 * products, only those need to be computed whose upper bound reaches the largest lower bound.
 *
 * Four int8 are one 32-bit word, and words are loaded as floats are (tile.h): a panel of columns is [words][PANEL],
 * followed by rows [PANEL] of the sums' initial values, steps, norms and rests. */
// also: avx512bf16
#include "kernel/kernel.h"
#include "simd/simd.h"

#define TILE_MULTIPLY_ADD v_dot4_onto
#include "kernel/tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { START, STEP, NORM, REST, N_EXTRA }; /* rows after a panel's words */

static float largest(int64_t k, const float *x)
{
    vf max = v_set(0);
    for (int64_t i = 0; i < k; i += ATT_LANES)
        max = v_max(v_abs(v_load_n(x + i, k - i < ATT_LANES ? (int)(k - i) : ATT_LANES)), max);
    return v_top(max);
}

/* Quantizes x [k] -> y [k], shifted up by `shift`. Squares are computed from x / largest, because those of small
 * numbers would underflow. */
static att_int8_row quantize(int levels, int shift, int64_t k, const float *x, int8_t *y)
{
    const float max = largest(k, x), scale = max >= FLT_MIN ? 1 / max : 0;
    const vf up = v_set((float)levels), down = v_set(1 / (float)levels), low = v_set(-(float)levels);
    vf squares = v_set(0), rests = v_set(0);
    int32_t sum = 0;
    for (int64_t i = 0; i < k; i += ATT_LANES) {
        const int used = k - i < ATT_LANES ? (int)(k - i) : ATT_LANES;
        const vf z = v_mul(v_load_n(x + i, used), v_set(scale));
        const vf whole = v_min(v_max(v_round(v_mul(z, up)), low), up); /* NaN also becomes an integer */
        const vf rest = v_sub(z, v_mul(whole, down));
        float numbers[ATT_LANES];
        squares = v_fma(z, z, squares);
        rests = v_fma(rest, rest, rests);
        v_store(numbers, whole);
        for (int j = 0; j < used; j++) {
            sum += (int32_t)numbers[j];
            y[i + j] = (int8_t)((int32_t)numbers[j] + shift);
        }
    }
    const float count = (float)k, round = 1 + (count + 16) * FLT_EPSILON; /* rounding of sums, roots and products */
    if (scale == 0) { /* tiny or not finite: the sum of squares is then NaN */
        const float bound = count * FLT_MIN + v_sum(squares);
        return (att_int8_row){.norm = bound, .rest = bound};
    }
    return (att_int8_row){.step = max / (float)levels,
                          .norm = max * sqrtf(v_sum(squares)) * round,
                          .rest = max * (sqrtf(v_sum(rests)) * round + sqrtf(count) * 4 * FLT_EPSILON),
                          .sum = sum};
}

/* Packs x [PANEL][words] and the norms of these columns -> a panel */
static void pack(int64_t words, const float *x, const att_int8_row *of, float *panel)
{
    const float chain = (float)(4 * words + 16) * FLT_EPSILON; /* error of a product of f32, as a share of |x| |w| */
    float *extra = panel + words * PANEL;
    tile_pack_as(false, PANEL, words, x, words, 1, panel);
    for (int j = 0; j < PANEL; j++) {
        const int32_t start = -ATT_INT8_SHIFT * of[j].sum;
        memcpy(extra + START * PANEL + j, &start, sizeof start);
        extra[STEP * PANEL + j] = of[j].step;
        extra[NORM * PANEL + j] = of[j].norm + of[j].rest;
        extra[REST * PANEL + j] = of[j].rest + chain * of[j].norm;
    }
}

/* Bounds the scores of one row: upper [columns]; *best becomes the largest lower bound, if that is above it. */
static void bounds_of(const att_int8_row *row, int columns, const float *sums, const float *extra, const float *bias,
                      float *upper, float *best)
{
    const vf step = v_set(row->step), norm = v_set(row->norm), rest = v_set(row->rest);
    const vf loose = v_set(8 * FLT_EPSILON), min_bound = v_set(8 * FLT_MIN); /* the rounding errors of these steps */
    vf max = v_set(*best);
    for (int j = 0; j < columns; j += ATT_LANES) {
        const int used = columns - j < ATT_LANES ? columns - j : ATT_LANES;
        const vf product = v_mul(v_from_whole(v_load(sums + j)), v_mul(v_load(extra + STEP * PANEL + j), step));
        const vf b = bias ? v_load_n(bias + j, used) : v_set(0), near = v_add(product, b);
        vf reach = v_fma(loose, v_add(v_abs(product), v_abs(b)), min_bound);
        reach = v_fma(rest, v_load(extra + NORM * PANEL + j), reach);
        reach = v_fma(norm, v_load(extra + REST * PANEL + j), reach);
        v_store_n(upper + j, v_add(near, reach), used);
        max = v_max(v_sub(near, reach), max);
    }
    *best = v_top(max);
}

/* Computes upper bounds of rows by a panel of columns, and the largest lower bounds, by bounds_of. A bound that is NaN
 * does not count. prefetch: the next panel. */
static void bounds(const att_int8_args *b)
{
    const float *extra = b->panel + b->words * PANEL;
    att_prefetch_lines lines = att_prefetch_next(b->prefetch, b->m > 1 ? INT64_MAX : 0);
    const int64_t each = att_ceil_div(lines.left, b->m);
    for (int64_t i = 0; i < b->m; i += ROWS) {
        const int rows = b->m - i < ROWS ? (int)(b->m - i) : ROWS;
        float sums[ROWS * PANEL];
        for (int r = 0; r < rows; r++)
            memcpy(sums + r * PANEL, extra + START * PANEL, PANEL * sizeof *sums);
        const tile_args t = {
            .k = b->words, .a = b->x + i * b->words, .lda = b->words, .b = b->panel, .c = sums, .ldc = PANEL};
        tile_all(rows, ATT_PANEL_VECTORS, false, START_C, t);
        for (int r = 0; r < rows; r++) {
            att_prefetch_some(&lines, each);
            bounds_of(&b->of[i + r], b->columns, sums + r * PANEL, extra, b->bias, b->upper + (i + r) * b->stride,
                      b->best + i + r);
        }
    }
}

void ATTEND_ISA(att_kernel_int8_bounds)(att_kernels *k);
void ATTEND_ISA(att_kernel_int8_bounds)(att_kernels *k)
{
    k->int8.extra_rows = N_EXTRA;
    k->int8.quantize = quantize;
    k->int8.pack = pack;
    k->int8.bounds = bounds;
}
