/* Losses of recommenders, computed from the scores of the next item and of others. */
#ifndef ATT_RECOMMEND_RECOMMEND_LOSS_H
#define ATT_RECOMMEND_RECOMMEND_LOSS_H

#include "recommend/item_softmax_classes.h"

typedef struct att_item_loss_config {
    att_item_loss loss;
    int64_t negatives; /* at a position; 0 for ATT_ITEM_LOSS_SOFTMAX */
    double beta;       /* of ATT_ITEM_LOSS_GBCE */
    att_item_softmax_classes classes;
} att_item_loss_config;

/* The positions whose next item is known. */
typedef struct att_item_targets {
    int64_t n;
    const int32_t *items;      /* [n] */
    const int32_t *candidates; /* [n, 1 + negatives]: the item, then the negatives; of losses with negatives */
} att_item_targets;

/* Returns beta = a (t (1 - 1 / a) + 1 / a), where t is the calibration and a = negatives / (items - 1), at most 1.
 * items: those of the training data. */
double att_gbce_beta(double calibration, int64_t negatives, int64_t items);
/* Returns the sum of the losses of states x [n, hidden], [1]. */
att_var *att_item_loss_apply(att_tape *t, const att_recommender *m, const att_item_loss_config *c, att_var *x,
                             const att_item_targets *targets);

#endif
