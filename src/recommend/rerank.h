/* Chooses lists whose positions depend on each other: limits of categories, diversity, positions for new items
 * (att_recommend_options). */
#ifndef ATT_RECOMMEND_RERANK_H
#define ATT_RECOMMEND_RERANK_H

#include "recommend/recommender.h"

#include "attend_learn.h"

typedef struct att_rerank att_rerank;

/* Checks the options, complete and with k > 0, which must outlive the result. *out: NULL if the positions of a list do
 * not depend on each other. */
att_status att_rerank_new(const att_recommender *m, const att_recommend_options *o, att_rerank **out);
void att_rerank_free(att_rerank *r);
/* Makes a list [k] from scores [items]; -INFINITY: an item that must not be listed. Elements after the list's end have
 * column -1. */
att_status att_rerank_list(att_rerank *r, const float *scores, att_top_column *list);
/* Checks a list of items, options.NAME [n]. */
att_status att_rerank_check_items(const att_recommender *m, const char *name, const int32_t *items, int64_t n);

#endif
