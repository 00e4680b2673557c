/* Bootstrap confidence intervals of any scores of a set of texts. */
#ifndef ATT_METRIC_BOOTSTRAP_H
#define ATT_METRIC_BOOTSTRAP_H

#include "attend_metric.h"
#include "attend_util.h"

enum { ATT_BOOTSTRAP_SCORES = 2 };

/* A resample: n items of [0, n), drawn with replacement. */
typedef struct att_resample {
    uint64_t seed;
    int64_t n;
    uint32_t number, words[4];
} att_resample;

/* Item i of the resample; i = 0, 1, 2 ... in this order. */
static inline int64_t att_resample_draw(att_resample *r, int64_t i)
{
    if (i % 4 == 0)
        att_random(r->seed, (const uint32_t[]){(uint32_t)(i / 4), r->number, 0, 0}, r->words);
    return (int64_t)((uint64_t)r->words[i % 4] * (uint64_t)r->n >> 32);
}

/* The items to resample, and their scores in a resample. */
typedef struct att_bootstrap {
    const char *function; /* the public one, for errors */
    void (*score)(const void *of, att_resample *r, const att_bleu_resampling *options, double *score);
    const void *of;
    int scores; /* at most ATT_BOOTSTRAP_SCORES */
} att_bootstrap;

/* Computes the 95 % intervals of n items' scores -> *out[scores], unchanged after an error. opt or NULL: as in
 * att_bleu_intervals. */
att_status att_bootstrap_intervals(att_ctx *ctx, const att_bootstrap *b, int64_t n, const att_bleu_resampling *opt,
                                   att_interval *const *out);

#endif
