/* Baselines: scorers that learn by counting. */
#ifndef ATT_RECOMMEND_BASELINE_H
#define ATT_RECOMMEND_BASELINE_H

#include "recommend/holdout.h"

/* A neighbour of an item. */
typedef struct att_neighbour {
    int32_t item; /* -1: none */
    float similarity;
} att_neighbour;

struct att_baseline {
    att_ctx *ctx;
    const att_holdout *h;
    att_baseline_kind kind;
    int64_t k;                 /* neighbours of an item */
    double decay;              /* of weights of the history's items, from its end */
    att_neighbour *neighbours; /* [items, k], nearest first; or NULL */
    float *vectors;            /* [items, width], of length 1 or 0; or NULL */
    int64_t width;
};

/* Finds the neighbours of all items. */
att_status att_neighbours_find(att_baseline *b);

#endif
