/* Declarations that the functions for vectors and scores of histories share. */
#ifndef ATT_RECOMMEND_RECOMMEND_SCORE_H
#define ATT_RECOMMEND_RECOMMEND_SCORE_H

#include "recommend/recommender.h"

enum { ATT_HISTORIES = 128 }; /* histories that are computed together */

/* Returns the vectors [n, hidden] of n histories that are not empty: items, offsets [n + 1], which need not begin at
 * 0. */
att_var *att_histories_apply(att_tape *t, const att_recommender *m, int64_t n, const int32_t *items,
                             const int64_t *offsets);
/* Returns the error of an empty history for a model without counts. */
att_status att_no_counts(const att_recommender *m, int64_t history);

#endif
