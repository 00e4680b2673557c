/* Finds the best of many numbers: the largest, and of equal ones those with the lower column. */
#ifndef ATT_UTIL_BEST_H
#define ATT_UTIL_BEST_H

#include "attend_learn.h"

#include <math.h>

static inline bool att_is_better(att_top_column a, att_top_column b)
{
    return a.value > b.value || (a.value == b.value && a.column < b.column);
}

/* Begins a heap of the k best, whose first is the worst, with k values that are worse than all others. */
static inline void att_best_begin(att_top_column *best, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        best[i] = (att_top_column){.column = -1, .value = -INFINITY};
}

/* Replaces the first of a heap of n > 0. */
static inline void att_best_replace(att_top_column *best, int64_t n, att_top_column one)
{
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && att_is_better(best[child], best[child + 1]))
            child++;
        if (!att_is_better(one, best[child]))
            break;
        best[at] = best[child];
    }
    best[at] = one;
}

/* Adds one number, if it is better than the worst. NaN is not. */
static inline void att_best_add(att_top_column *best, int64_t k, att_top_column one)
{
    if (att_is_better(one, best[0]))
        att_best_replace(best, k, one);
}

/* Sorts the heap: best first. */
static inline void att_best_sort(att_top_column *best, int64_t k)
{
    for (int64_t last = k - 1; last > 0; last--) {
        const att_top_column worst = best[0];
        att_best_replace(best, last, best[last]);
        best[last] = worst;
    }
}

#endif
