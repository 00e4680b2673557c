/* The online softmax, a block of scores at a time: [keys][PANEL], a column for each query (Milakov, Gimelshein 2018).
 */
#ifndef ATT_KERNEL_SOFTMAX_STEP_H
#define ATT_KERNEL_SOFTMAX_STEP_H

#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>

#define SHARED                                                                                                         \
    static __attribute__((noinline, unused)) /* at most once for each block, so that there is one copy of it */

ATT_INLINE vf nothing(void) { return v_set(-__builtin_inff()); }

/* Computes top, the maximum of each column, in four chains at a time, because each maximum depends on the one before
 * it. */
ATT_INLINE void column_max(const int vectors, int n_ranges, const att_range *range, const float *s, vf *top)
{
    enum { CHAINS = 4 };
    vf max[CHAINS][ATT_PANEL_VECTORS];
    ATT_UNROLL (c, CHAINS)
        ATT_UNROLL (v, vectors)
            max[c][v] = nothing();
    for (int r = 0; r < n_ranges; r++) {
        int64_t k = range[r].first;
        for (; k + CHAINS <= range[r].last; k += CHAINS)
            ATT_UNROLL (c, CHAINS)
                ATT_UNROLL (v, vectors)
                    max[c][v] = v_max(v_load(s + (k + c) * PANEL + v * ATT_LANES), max[c][v]);
        for (; k < range[r].last; k++)
            ATT_UNROLL (v, vectors)
                max[0][v] = v_max(v_load(s + k * PANEL + v * ATT_LANES), max[0][v]);
    }
    ATT_UNROLL (v, vectors)
        top[v] = v_max(v_max(max[0][v], max[1][v]), v_max(max[2][v], max[3][v]));
}

/* Weights are relative to e^max: that of score s is 2^(s log2e - max log2e), with the products rounded. Rounding max
 * log2e changes all weights of a column by a common factor, which is near 1 unless the maximum is large. Then the
 * scores are replaced by their differences from it, which are exact where they matter. */
ATT_INLINE vm softmax_is_large(vf max) { return v_lt(v_set(ATT_LARGE_SCORE), v_abs(max)); }

ATT_INLINE vf softmax_log2(vf x) { return v_mul(x, v_set((float)ATT_LOG2_E)); }

/* Returns max, or 0 where no key attends yet, so that any finite number is correct. */
ATT_INLINE vf softmax_origin(vf max) { return v_select(v_lt(max, v_set(-FLT_MAX)), v_set(0), max); }

/* Returns the factor of weights that are relative to e^max, to make them relative to e^origin. */
SHARED vf softmax_rescale(vf max, vf origin)
{
    const vf usual = v_sub(softmax_log2(max), softmax_log2(origin));
    return v_exp2(v_select(softmax_is_large(origin), softmax_log2(v_sub(max, origin)), usual));
}

/* Returns whether the maximum of a column in use is large. The others have no defined scores. */
SHARED bool softmax_any_large(const att_softmax_step *t)
{
    vf largest = v_set(0);
    for (int i = 0; i < t->columns; i += ATT_LANES) {
        const int left = t->columns - i;
        const vm used = v_first(left < ATT_LANES ? left : ATT_LANES);
        largest = v_max(largest, v_select(used, v_abs(softmax_origin(v_load(t->max + i))), v_set(0)));
    }
    return v_top(largest) > ATT_LARGE_SCORE;
}

/* Replaces the scores of columns of vector v whose maximum is large by (scale s - maximum) / scale, and returns the
 * base of all its columns. */
__attribute__((cold)) SHARED vf softmax_shift(const att_softmax_step *t, int v, vf origin)
{
    const vm large = softmax_is_large(origin);
    const vf scale = v_set(t->scale), less = v_sub(v_set(0), origin);
    for (const att_range *r = t->range; r < t->range + t->n_ranges; r++)
        for (int64_t k = r->first; k < r->last; k++) {
            float *at = t->s + k * PANEL + v * ATT_LANES;
            v_store(at, v_select(large, v_div(v_fma(v_load(at), scale, less), scale), v_load(at)));
        }
    return v_select(large, v_set(0), softmax_log2(origin));
}

/* The state of a step: 2^(s log2e - base) is the weight of score s; total: the sums of the block's weights. */
typedef struct softmax_state {
    vf log2e, base[ATT_PANEL_VECTORS], total[ATT_PANEL_VECTORS];
    unsigned flushed;
} softmax_state;

/* Updates the running maxima and writes rescale. Until softmax_end denormal results are flushed to 0. */
ATT_INLINE softmax_state softmax_begin(const int vectors, const att_softmax_step *t)
{
    float *const max = t->max, *const rescale = t->rescale;
    softmax_state w = {.log2e = v_set((float)ATT_LOG2_E * t->scale), .flushed = v_flush_begin()};
    vf top[ATT_PANEL_VECTORS];
    column_max(vectors, t->n_ranges, t->range, t->s, top);
    ATT_UNROLL (v, vectors) {
        const vf before = v_load(max + v * ATT_LANES);
        top[v] = v_max(v_mul(top[v], v_set(t->scale)), before);
        const vf origin = softmax_origin(top[v]);
        v_store(rescale + v * ATT_LANES, softmax_rescale(before, origin));
        v_store(max + v * ATT_LANES, top[v]);
        w.base[v] = softmax_log2(origin);
        w.total[v] = v_set(0);
    }
    if (softmax_any_large(t))
        ATT_UNROLL (v, vectors)
            w.base[v] = softmax_shift(t, v, softmax_origin(top[v]));
    return w;
}

/* Returns the weights of a vector of scores, in vector v of the columns. */
ATT_INLINE vf softmax_weight(const softmax_state *w, int v, const float *scores)
{
    return v_exp2(v_fma(v_load(scores), w->log2e, v_sub(v_set(0), w->base[v])));
}

/* Sets sum = rescale sum + total. */
ATT_INLINE void softmax_end(const int vectors, const softmax_state *w, const float *rescale, float *sum)
{
    ATT_UNROLL (v, vectors) {
        float *at = sum + v * ATT_LANES;
        v_store(at, v_fma(v_load(at), v_load(rescale + v * ATT_LANES), w->total[v]));
    }
    v_flush_end(w->flushed);
}

#endif
