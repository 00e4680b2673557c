/* The online softmax, a block of scores at a time: [keys][PANEL], a column for each query (Milakov, Gimelshein 2018).
 */
#ifndef ATT_KERNEL_SOFTMAX_STEP_H
#define ATT_KERNEL_SOFTMAX_STEP_H

#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>

static vf nothing(void) { return v_set(-__builtin_inff()); }

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
        top[v] = v_max(v_mul(top[v], w.log2e), v_load(max + v * ATT_LANES));
        /* no key attends yet, so any finite base is correct */
        w.base[v] = v_select(v_lt(top[v], v_set(-FLT_MAX)), v_set(0), top[v]);
        v_store(rescale + v * ATT_LANES, v_exp2(v_sub(v_load(max + v * ATT_LANES), w.base[v])));
        v_store(max + v * ATT_LANES, top[v]);
        w.total[v] = v_set(0);
    }
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
