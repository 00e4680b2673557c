/* The matrix product of numbers that are rounded to bf16, in pairs of neighbors along k, which are words of 32 bits:
 *
 *   c[i][j] = sum over pairs p of a[i][2 p + 1] b[j][2 p + 1] + a[i][2 p] b[j][2 p]
 *
 * It is the product of gemm.c on words, with the multiply-add of pairs (v_dot2_words): one chain over ascending pairs,
 * which adds the odd product, then the even one. Each addition rounds to f32 and counts denormals as 0. An odd k ends
 * with a pair whose second number is 0. */
// only: avx512bf16
#include "kernel/kernel.h"
#include "simd/simd.h"

#define TILE_MULTIPLY_ADD v_dot2_words
#include "kernel/gemm_panels.h"

static void finish_tile(const att_gemm_args *g, int64_t rows, int64_t n, float *c, int64_t i, int64_t j)
{
    g->finish(rows, n, c, g->ldc, g->epilogue, i, j);
}

static void multiply(const att_gemm_args *g) { multiply_panels(g, product_panels); }

/* ---- rounding */

/* Returns how many numbers of a vector there are from `at` on, of n. */
static int in_vector(int64_t n, int64_t at) { return (int)att_max(0, att_min(n - at, ATT_LANES)); }

/* Returns the pairs of row i from pair p on, whose numbers are next to each other or at any distance. */
ATT_INLINE vf along_row(const att_round_args *a, int64_t i, int64_t p)
{
    const float *x = a->x + i * a->row;
    float copied[2 * ATT_LANES];
    if (i >= a->rows)
        return v_set(0);
    if (a->column == 1 && 2 * (p + ATT_LANES) <= a->k)
        return v_pairs_of(v_load(x + 2 * p), v_load(x + 2 * p + ATT_LANES));
    if (a->column == 1)
        return v_pairs_of(v_load_n(x + 2 * p, in_vector(a->k, 2 * p)),
                          v_load_n(x + 2 * p + ATT_LANES, in_vector(a->k, 2 * p + ATT_LANES)));
    for (int64_t at = 0; at < 2 * ATT_LANES; at++)
        copied[at] = 2 * p + at < a->k ? x[(2 * p + at) * a->column] : 0.0f;
    return v_pairs_of(v_load(copied), v_load(copied + ATT_LANES));
}

/* Returns pair p of the rows from i on, which are next to each other. */
ATT_INLINE vf across_rows(const att_round_args *a, int64_t i, int64_t p)
{
    const float *x = a->x + i + 2 * p * a->column;
    if (i + ATT_LANES <= a->rows && 2 * p + 1 < a->k)
        return v_words_of(v_load(x), v_load(x + a->column));
    const vf even = v_load_n(x, 2 * p < a->k ? in_vector(a->rows, i) : 0);
    return v_words_of(even, v_load_n(x + a->column, 2 * p + 1 < a->k ? in_vector(a->rows, i) : 0));
}

static bool is_across(const att_round_args *a) { return a->row == 1 && a->column != 1; }

/* Transposes 16 pairs of 16 rows into words. */
ATT_INLINE void round_square(const att_round_args *a, int64_t i, int64_t p, float *words, int64_t stride)
{
    vf t[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES)
        t[r] = across_rows(a, i, p + r);
    v_transpose(t);
    for (int r = 0; r < in_vector(a->rows, i); r++)
        v_store_n(words + (i + r) * stride + p, t[r], in_vector(a->pairs, p));
}

static void round_rows(const att_round_args *a, float *words, int64_t stride)
{
    for (int64_t i = 0; i < a->rows && !is_across(a); i++)
        for (int64_t p = 0; p < a->pairs; p += ATT_LANES)
            v_store_n(words + i * stride + p, along_row(a, i, p), in_vector(a->pairs, p));
    for (int64_t p = 0; p < a->pairs && is_across(a); p += ATT_LANES)
        for (int64_t i = 0; i < a->rows; i += ATT_LANES)
            round_square(a, i, p, words, stride);
}

/* Returns where a panel has the words of rows from i on, a vector of them. */
static float *panel_at(const att_round_args *a, float *words, int64_t i)
{
    return words + i / PANEL * PANEL * a->pairs + i % PANEL;
}

static void round_panels(const att_round_args *a, float *words)
{
    const int64_t columns = att_round_up(a->rows, PANEL);
    for (int64_t p = 0; p < a->pairs && is_across(a); p++)
        for (int64_t i = 0; i < columns; i += ATT_LANES)
            v_store(panel_at(a, words, i) + p * PANEL, across_rows(a, i, p));
    for (int64_t i = 0; i < columns && !is_across(a); i += ATT_LANES)
        for (int64_t p = 0; p < a->pairs; p += ATT_LANES) {
            vf t[ATT_LANES];
            ATT_UNROLL (r, ATT_LANES)
                t[r] = along_row(a, i + r, p);
            v_transpose(t);
            for (int c = 0; c < in_vector(a->pairs, p); c++)
                v_store(panel_at(a, words, i) + (p + c) * PANEL, t[c]);
        }
}

void ATTEND_ISA(att_kernel_bf16_gemm)(att_kernels *k);
void ATTEND_ISA(att_kernel_bf16_gemm)(att_kernels *k)
{
    k->round = (att_bf16_round_kernels){round_rows, round_panels};
    k->bf16_gemm = (att_bf16_gemm_kernels){MAX_TILE_ROWS, 1, panels_for, multiply};
}
