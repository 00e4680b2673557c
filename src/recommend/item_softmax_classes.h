/* Items that occur in the training data: the classes of the loss. */
#ifndef ATT_RECOMMEND_ITEM_SOFTMAX_CLASSES_H
#define ATT_RECOMMEND_ITEM_SOFTMAX_CLASSES_H

#include "recommend/recommender.h"

/* The items whose scores the loss lowers if they are not the next item. In a model with content these are the items
 * with actions in training. The loss would lower the scores of the others at every position, so that the effect of
 * their content would be lost. */
typedef struct att_item_softmax_classes {
    int64_t n;
    int32_t *items;  /* [n], ascending; NULL: all */
    int32_t *index;  /* [items]: the index of each item in `items`; undefined for the others */
    att_param *bias; /* [rows of the table]: 0, or -inf for other items */
    float *bias_data;
} att_item_softmax_classes;

/* Finds the classes. counts [items]: the number of actions in training of each of the model's items. */
att_status att_item_softmax_classes_find(const att_recommender *m, const int64_t *counts,
                                         att_item_softmax_classes *out);
void att_item_softmax_classes_free(att_ctx *ctx, att_item_softmax_classes *classes);

#endif
