/* Recommenders that count the actions of a log instead of being trained, and have no vectors of items. */
#ifndef ATT_RECOMMEND_COUNTING_H
#define ATT_RECOMMEND_COUNTING_H

#include "io/progress.h"
#include "recommend/item_users.h"
#include "recommend/recommender.h"

/* The functions of a kind. NULL: there is nothing to do. */
struct att_counting_kind {
    const char *const *settings; /* [up to NULL] the keys of config.json */
    int64_t neighbors;           /* defaults of settings; 0: it has no such setting */
    double decay, l2;
    int64_t max_items; /* 0: ATT_MAX_ITEMS */
    /* Reads and checks tensors that are not parameters. They are those of m->model.checkpoint. */
    att_status (*read)(att_recommender *m);
    /* Counts. It sets p->all. */
    att_status (*count)(att_recommender *m, const att_item_users *x, att_progress *p);
    /* Computes scores [items] of a history [n], n > 0. row [items]: scratch. */
    void (*score)(const att_recommender *m, const int32_t *items, int64_t n, float *scores, float *row);
    /* Computes how near all items are to one: scores [items]; -INFINITY: an item is not near. NULL: the kind compares
     * no items. */
    void (*similar)(const att_recommender *m, int64_t item, float *scores, float *row);
    /* Returns tensors that att_recommender_write adds, and their names: [3] each. */
    int (*tensors)(const att_recommender *m, const char **names, att_tensor *tensors);
};

/* Computes scores of n histories, none empty, items [offsets[n]], offsets [n + 1], which need not begin at 0: history
 * b's are scores[b * stride] and the following, one for each item. */
att_status att_counting_scores(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                               int64_t stride, float *scores);
/* Computes how near all items are to each of items [n]: scores [n, all]. No item is near to one without an action.
 * Error: the kind compares no items. */
att_status att_counting_similar(const att_recommender *m, int64_t n, const int32_t *items, float *scores);
/* Returns the error that the model has no vectors, or does not attend, if it is one that counts; `what`: "vectors of
 * items". */
att_status att_counting_refuse(const att_recommender *m, const char *function, const char *what);

/* Returns the score of an item that has no other score: negative, in the order of popularity. */
static inline float att_score_by_popularity(int64_t count) { return -1 / (1 + (float)count); }

#endif
