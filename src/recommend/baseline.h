/* Baselines: scorers that learn by counting. */
#ifndef ATT_RECOMMEND_BASELINE_H
#define ATT_RECOMMEND_BASELINE_H

#include "io/progress.h"
#include "recommend/holdout.h"

/* A neighbor of an item. */
typedef struct att_neighbor {
    int32_t item;
    float similarity;
} att_neighbor;

struct att_baseline {
    att_ctx *ctx;
    const att_holdout *h;
    att_baseline_kind kind;
    int64_t k;               /* neighbors of an item */
    double decay;            /* of weights of the history's items, from its end */
    int64_t *first;          /* [items + 1]: offsets of the room for each item's neighbors; or NULL */
    int32_t *found;          /* [items]: the number of each item's neighbors */
    att_neighbor *neighbors; /* [first[items]], nearest first */
    float *vectors;          /* [items, width], of length 1 or 0; or NULL */
    int64_t width;
};

/* Finds the neighbors of all items. progress: in items; the function sets its `all`. */
att_status att_neighbors_find(att_baseline *b, att_progress *progress);

#endif
