/* Scores to weights of softmax, a block of them at a time: [keys][PANEL], a column for each query. */
#ifndef ATT_KERNEL_SOFTEN_H
#define ATT_KERNEL_SOFTEN_H

#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>

static vf nothing(void) { return v_set(-__builtin_inff()); }

/* Four at a time: a maximum waits for the one before it. */
ATT_INLINE void largest(const int vectors, int n_runs, const att_range *run, const float *s, vf *top)
{
    enum { CHAINS = 4 };
    vf most[CHAINS][ATT_PANEL_VECTORS];
    ATT_UNROLL (c, CHAINS)
        ATT_UNROLL (v, vectors)
            most[c][v] = nothing();
    for (int r = 0; r < n_runs; r++) {
        int64_t k = run[r].first;
        for (; k + CHAINS <= run[r].last; k += CHAINS)
            ATT_UNROLL (c, CHAINS)
                ATT_UNROLL (v, vectors)
                    most[c][v] = v_max(v_load(s + (k + c) * PANEL + v * ATT_LANES), most[c][v]);
        for (; k < run[r].last; k++)
            ATT_UNROLL (v, vectors)
                most[0][v] = v_max(v_load(s + k * PANEL + v * ATT_LANES), most[0][v]);
    }
    ATT_UNROLL (v, vectors)
        top[v] = v_max(v_max(most[0][v], most[1][v]), v_max(most[2][v], most[3][v]));
}

/* What a block of scores is softened with, and the sums of its weights. */
typedef struct softening {
    vf log2e, base[ATT_PANEL_VECTORS], total[ATT_PANEL_VECTORS];
    unsigned flushed;
} softening;

/* The running maxima, and rescale; from here to soften_end small results are 0. */
ATT_INLINE softening soften_begin(const int vectors, float scale, int n_runs, const att_range *run, const float *s,
                                  float *max, float *rescale)
{
    softening w = {.log2e = v_set((float)ATT_LOG2_E * scale), .flushed = v_flush_begin()};
    vf top[ATT_PANEL_VECTORS];
    largest(vectors, n_runs, run, s, top);
    ATT_UNROLL (v, vectors) {
        top[v] = v_max(v_mul(top[v], w.log2e), v_load(max + v * ATT_LANES));
        /* nothing attended yet: any finite base will do */
        w.base[v] = v_select(v_lt(top[v], v_set(-FLT_MAX)), v_set(0), top[v]);
        v_store(rescale + v * ATT_LANES, v_exp2(v_sub(v_load(max + v * ATT_LANES), w.base[v])));
        v_store(max + v * ATT_LANES, top[v]);
        w.total[v] = v_set(0);
    }
    return w;
}

/* The weights of a vector of scores, those of vector v of the columns */
ATT_INLINE vf soften_weight(const softening *w, int v, const float *scores)
{
    return v_exp2(v_fma(v_load(scores), w->log2e, v_sub(v_set(0), w->base[v])));
}

ATT_INLINE void soften_end(const int vectors, const softening *w, const float *rescale, float *sum)
{
    ATT_UNROLL (v, vectors) {
        float *at = sum + v * ATT_LANES;
        v_store(at, v_fma(v_load(at), v_load(rescale + v * ATT_LANES), w->total[v]));
    }
    v_flush_end(w->flushed);
}

#endif
