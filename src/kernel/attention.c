/* Attention of one tile of queries, on S^T: queries are the columns, side by side in vectors, and keys are the rows. So
 * softmax runs down the columns without sums across a vector, keys and values are read as they are stored, and only the
 * queries, and the output at the end, are transposed.
 *
 * exp(x) = 2^(x log2 e). The factor is part of the multiply-add that subtracts the maximum. */
#include "kernel/softmax_step.h"

/* Unpacks x [n][PANEL] -> y [rows, n], row i times scale[i]. Adding 0 turns -0 into 0. */
static void unpack(int64_t rows, int64_t n, const float *x, const float *scale, float *y, int64_t stride)
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

/* Multiplies s [keys][PANEL] by a number. */
static void scale_scores(int64_t keys, float factor, float *s, int64_t stride)
{
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store(s + k * stride + v * ATT_LANES, v_mul(v_load(s + k * stride + v * ATT_LANES), v_set(factor)));
}

/* Sets pairs whose bit is 0 to `value`: bit i of bits[key] is that of column i. */
static void apply_mask(int64_t keys, const uint64_t *bits, float value, float *s, int64_t stride)
{
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            float *at = s + k * stride + v * ATT_LANES;
            v_store(at, v_pick((uint32_t)(bits[k] >> (v * ATT_LANES)), v_load(at), v_set(value)));
        }
}

ATT_INLINE void softmax_step_as(const int vectors, const att_softmax_step *t)
{
    softmax_state w = softmax_begin(vectors, t);
    for (int r = 0; r < t->n_ranges; r++) {
        const att_range keys = t->range[r];
        for (int64_t k = keys.first; k < keys.last; k++)
            ATT_UNROLL (v, vectors) {
                float *at = t->s + k * PANEL + v * ATT_LANES;
                const vf p = softmax_weight(&w, v, at);
                w.total[v] = v_add(w.total[v], p);
                v_store(at, p);
            }
    }
    softmax_end(vectors, &w, t->rescale, t->sum);
}

static void softmax_step(const att_softmax_step *t)
{
    if (t->columns <= ATT_LANES)
        softmax_step_as(1, t);
    else
        softmax_step_as(ATT_PANEL_VECTORS, t);
}

ATT_INLINE void accumulate_pv_as(const int vectors, const att_pv *x)
{
    for (int r = 0; r < x->n_ranges; r++) {
        const att_range keys = x->range[r];
        const tile_args t = {.k = keys.last - keys.first,
                             .a = (const float *)x->v + keys.first * x->v_stride,
                             .lda = x->v_stride,
                             .b = x->p + keys.first * PANEL,
                             .c = x->o,
                             .ldc = PANEL,
                             .scale = x->rescale,
                             .prefetch = x->prefetch};
        tile_onto(r > 0, x->dim, vectors, t);
    }
}

/* Computes o [dim][PANEL] = rescale o + v [keys, dim]^T p [keys][PANEL]. */
static void accumulate_pv(const att_pv *x)
{
    if (x->columns <= ATT_LANES)
        accumulate_pv_as(1, x);
    else
        accumulate_pv_as(ATT_PANEL_VECTORS, x);
}

/* Computes o [queries, dim] = p [keys][PANEL]^T v [keys, dim], row i times rescale[i], over one range of keys; dim is a
 * multiple of PANEL. It serves queries that attend to only one range, whose output is written as rows directly. Each
 * sum is the same chain as in accumulate_pv. */
static void pv_rows(const att_pv *x)
{
    const att_range keys = x->range[0];
    for (int64_t j = 0; j < x->dim; j += PANEL) {
        const tile_args t = {.k = keys.last - keys.first,
                             .a = x->p + keys.first * PANEL,
                             .lda = PANEL,
                             .b = (const float *)x->v + keys.first * x->v_stride + j,
                             .b_step = x->v_stride,
                             .c = x->o + j,
                             .ldc = x->o_stride,
                             .row_scale = x->rescale,
                             .prefetch = x->prefetch};
        tile_all(x->columns, ATT_PANEL_VECTORS, true, START_PRODUCT, t);
    }
}

/* Merges the second accumulator into the first: each is maximum [PANEL], sum [PANEL] and o [dim][PANEL]. */
static void merge(int64_t dim, float *max, float *sum, float *o, const float *max2, const float *sum2, const float *o2)
{
    const unsigned flushed = v_flush_begin();
    for (int v = 0; v < PANEL; v += ATT_LANES) {
        const vf m = v_max(v_load(max + v), v_load(max2 + v));
        const vf origin = softmax_origin(m);
        const vf w = softmax_rescale(v_load(max + v), origin), w2 = softmax_rescale(v_load(max2 + v), origin);
        v_store(max + v, m);
        v_store(sum + v, v_fma(v_load(sum + v), w, v_mul(v_load(sum2 + v), w2)));
        for (int64_t d = 0; d < dim; d++) {
            float *at = o + d * PANEL + v;
            v_store(at, v_fma(v_load(at), w, v_mul(v_load(o2 + d * PANEL + v), w2)));
        }
    }
    v_flush_end(flushed);
}

/* Computes 1 / sum from maxima and sums [PANEL], and the log-sum-exp unless lse is NULL; a column that attends to
 * nothing has 0 and -inf. */
static void normalizer(const float *max, const float *sum, float *inverse, float *lse)
{
    ATT_UNROLL (v, ATT_PANEL_VECTORS) {
        const vf total = v_load(sum + v * ATT_LANES);
        const vm none = v_lt(total, v_set(0.5f)); /* with any key the largest weight is 1 */
        v_store(inverse + v * ATT_LANES, v_select(none, v_set(0), v_div(v_set(1), total)));
        if (!lse)
            continue;
        const vf log = v_select(v_is_nan(total), total, v_log2(total));
        const vf all = v_fma(log, v_set((float)(1 / ATT_LOG2_E)), v_load(max + v * ATT_LANES));
        v_store(lse + v * ATT_LANES, v_select(none, nothing(), all));
    }
}

void ATTEND_ISA(att_kernel_attention)(att_kernels *k);
void ATTEND_ISA(att_kernel_attention)(att_kernels *k)
{
    k->q_tile = PANEL;
    k->attend.pack = tile_pack;
    k->attend.unpack = unpack;
    k->attend.scale_scores = scale_scores;
    k->attend.apply_mask = apply_mask;
    k->attend.softmax_step = softmax_step;
    k->attend.accumulate_pv = accumulate_pv;
    k->attend.pv_rows = PANEL > 16 ? pv_rows : NULL; /* narrow panels would read each value too often */
    k->attend.merge = merge;
    k->attend.normalizer = normalizer;
}
