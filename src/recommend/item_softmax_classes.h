/* Items that occur in the training data: the classes of the loss. */
#ifndef ATT_RECOMMEND_ITEM_SOFTMAX_CLASSES_H
#define ATT_RECOMMEND_ITEM_SOFTMAX_CLASSES_H

#include "recommend/recommender.h"

/* Those that are pushed down where they are not the next one. In a model with content these are the items that training
 * has actions of: the others would be pushed down at each position, so that what their content states is lost. */
typedef struct att_item_softmax_classes {
    int64_t n;
    int32_t *items;  /* [n], ascending; NULL: all */
    int32_t *index;  /* [items]: where each is in the above; of others undefined */
    att_param *bias; /* [rows of the table]: 0, or -inf of other items */
    float *bias_data;
} att_item_softmax_classes;

/* counts [items]: training actions of each of the model's items */
att_status att_item_softmax_classes_find(const att_recommender *m, const int64_t *counts,
                                         att_item_softmax_classes *out);
void att_item_softmax_classes_free(att_ctx *ctx, att_item_softmax_classes *classes);

#endif
