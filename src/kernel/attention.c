/* Attention on one block of queries, transposed: queries are the columns of every tile, a vector of them side by
 * side, keys are the rows. So softmax runs down the columns with no sums across a vector, keys and values are read
 * where they lie, and only a block of queries, and its output at the end, is turned.
 *
 * exp(x) = 2^(x log2 e): scores are what they are, running maxima are kept in units of log2, and the factor is part of
 * the multiply-add that takes the maximum away. */
#include "kernel/soften.h"

/* x [n][PANEL] -> y [rows, n], row i times scale[i]. The 0 that is added makes -0 to 0. */
static void turn_out(int64_t rows, int64_t n, const float *x, const float *scale, float *y, int64_t stride)
{
    for (int64_t i = 0; i < rows; i += ATT_LANES)
        for (int64_t j = 0; j < n; j += ATT_LANES) {
            const int columns = n - j < ATT_LANES ? (int)(n - j) : ATT_LANES;
            const vf factor = v_load(scale + i);
            vf t[ATT_LANES];
            if (rows - i >= ATT_LANES && columns == ATT_LANES) { /* all of it stays in registers */
                ATT_UNROLL (c, ATT_LANES)
                    t[c] = v_fma(v_load(x + (j + c) * PANEL + i), factor, v_set(0));
                v_transpose(t);
                ATT_UNROLL (r, ATT_LANES)
                    v_store(y + (i + r) * stride + j, t[r]);
                continue;
            }
            for (int c = 0; c < ATT_LANES; c++)
                t[c] = c < columns ? v_fma(v_load(x + (j + c) * PANEL + i), factor, v_set(0)) : v_set(0);
            v_transpose(t);
            for (int r = 0; r < ATT_LANES && i + r < rows; r++)
                v_store_n(y + (i + r) * stride + j, t[r], columns);
        }
}

/* s [keys][PANEL] times a number */
static void rescale_tile(int64_t keys, float factor, float *s, int64_t stride)
{
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store(s + k * stride + v * ATT_LANES, v_mul(v_load(s + k * stride + v * ATT_LANES), v_set(factor)));
}

/* Pairs whose bit is 0 get `value`: bits[key], bit i = column i. */
static void forbid(int64_t keys, const uint64_t *bits, float value, float *s, int64_t stride)
{
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            float *at = s + k * stride + v * ATT_LANES;
            v_store(at, v_pick((uint32_t)(bits[k] >> (v * ATT_LANES)), v_load(at), v_set(value)));
        }
}

ATT_INLINE void soften_as(const int vectors, float scale, int n_runs, const att_range *run, float *s, float *max,
                          float *sum, float *rescale)
{
    softening w = soften_begin(vectors, scale, n_runs, run, s, max, rescale);
    for (int r = 0; r < n_runs; r++) {
        const att_range keys = run[r];
        for (int64_t k = keys.first; k < keys.last; k++)
            ATT_UNROLL (v, vectors) {
                float *at = s + k * PANEL + v * ATT_LANES;
                const vf p = soften_weight(&w, v, at);
                w.total[v] = v_add(w.total[v], p);
                v_store(at, p);
            }
    }
    soften_end(vectors, &w, rescale, sum);
}

/* One block of scores s [keys][PANEL], times scale > 0, to weights 2^(s scale log2 e - max), with the running maximum
 * and sum of each column; rescale [PANEL] is what everything from earlier blocks must be multiplied with (Milakov,
 * Gimelshein 2018). */
static void soften(int columns, float scale, int n_runs, const att_range *run, float *s, float *max, float *sum,
                   float *rescale)
{
    if (columns <= ATT_LANES)
        soften_as(1, scale, n_runs, run, s, max, sum, rescale);
    else
        soften_as(ATT_PANEL_VECTORS, scale, n_runs, run, s, max, sum, rescale);
}

ATT_INLINE void weigh_as(const int vectors, int n_runs, const att_range *run, int64_t dim, const float *v,
                         int64_t stride, const float *p, const float *rescale, float *o, att_prefetch *prefetch)
{
    for (int r = 0; r < n_runs; r++) {
        const tile_args t = {.k = run[r].last - run[r].first,
                             .a = v + run[r].first * stride,
                             .lda = stride,
                             .b = p + run[r].first * PANEL,
                             .c = o,
                             .ldc = PANEL,
                             .scale = rescale,
                             .prefetch = prefetch};
        tile_onto(r > 0, dim, vectors, t);
    }
}

/* o [dim][PANEL] = rescale o + v [keys, dim]^T p [keys][PANEL], over the runs of keys; rescale NULL: o starts at 0.
 * prefetch: the next rows to fetch; moves on. */
static void weigh(int columns, int n_runs, const att_range *run, int64_t dim, const float *v, int64_t stride,
                  const float *p, const float *rescale, float *o, att_prefetch *prefetch)
{
    if (columns <= ATT_LANES)
        weigh_as(1, n_runs, run, dim, v, stride, p, rescale, o, prefetch);
    else
        weigh_as(ATT_PANEL_VECTORS, n_runs, run, dim, v, stride, p, rescale, o, prefetch);
}

/* y [queries, dim] = p [keys][PANEL]^T v [keys, dim], row i times scale[i], over one run of keys; dim is a multiple of
 * PANEL. All there is of some queries, so there is no o to turn; each sum is the same chain as there. */
static void weigh_rows(int queries, att_range run, int64_t dim, const float *v, int64_t stride, const float *p,
                       const float *scale, float *y, int64_t y_stride, att_prefetch *prefetch)
{
    for (int64_t j = 0; j < dim; j += PANEL) {
        const tile_args t = {.k = run.last - run.first,
                             .a = p + run.first * PANEL,
                             .lda = PANEL,
                             .b = v + run.first * stride + j,
                             .b_step = stride,
                             .c = y + j,
                             .ldc = y_stride,
                             .row_scale = scale,
                             .prefetch = prefetch};
        tile_all(queries, ATT_PANEL_VECTORS, true, START_PRODUCT, t);
    }
}

/* Adds the second partial result to the first: each is maximum [PANEL], sum [PANEL] and o [dim][PANEL]. */
static void merge(int64_t dim, float *max, float *sum, float *o, const float *max2, const float *sum2, const float *o2)
{
    const unsigned flushed = v_flush_begin();
    for (int v = 0; v < PANEL; v += ATT_LANES) {
        const vf m = v_max(v_load(max + v), v_load(max2 + v));
        const vf base = v_select(v_lt(m, v_set(-FLT_MAX)), v_set(0), m);
        const vf w = v_exp2(v_sub(v_load(max + v), base)), w2 = v_exp2(v_sub(v_load(max2 + v), base));
        v_store(max + v, m);
        v_store(sum + v, v_fma(v_load(sum + v), w, v_mul(v_load(sum2 + v), w2)));
        for (int64_t d = 0; d < dim; d++) {
            float *at = o + d * PANEL + v;
            v_store(at, v_fma(v_load(at), w, v_mul(v_load(o2 + d * PANEL + v), w2)));
        }
    }
    v_flush_end(flushed);
}

/* From maxima and sums [PANEL]: 1 / sum, and the log-sum-exp unless that is NULL; of a column with nothing to attend 0
 * and -inf. */
static void close_rows(const float *max, const float *sum, float *inverse, float *lse)
{
    ATT_UNROLL (v, ATT_PANEL_VECTORS) {
        const vf total = v_load(sum + v * ATT_LANES);
        const vm none = v_lt(total, v_set(0.5f)); /* the largest weight of the others is 1 */
        v_store(inverse + v * ATT_LANES, v_select(none, v_set(0), v_div(v_set(1), total)));
        if (!lse)
            continue;
        const vf log = v_select(v_is_nan(total), total, v_log2(total));
        const vf all = v_mul(v_add(v_load(max + v * ATT_LANES), log), v_set((float)(1 / ATT_LOG2_E)));
        v_store(lse + v * ATT_LANES, v_select(none, nothing(), all));
    }
}

void ATT_ISA(att_kernel_attention)(att_kernels *k);
void ATT_ISA(att_kernel_attention)(att_kernels *k)
{
    k->turn_in = tile_turn;
    k->turn_out = turn_out;
    k->rescale_tile = rescale_tile;
    k->forbid = forbid;
    k->soften = soften;
    k->weigh = weigh;
    k->weigh_rows = PANEL > 16 ? weigh_rows : NULL; /* a row of values is met once for each panel */
    k->merge = merge;
    k->close_rows = close_rows;
}
