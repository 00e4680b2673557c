/* What the calls that make lists of items share: options, the items that may be listed, a list from the scores of all.
 */
#ifndef ATT_RECOMMEND_LIST_CALL_H
#define ATT_RECOMMEND_LIST_CALL_H

#include "recommend/recommender.h"
#include "recommend/rerank.h"

enum { ATT_LISTED_AT_ONCE = 1 << 22 }; /* numbers of all lists that are made together: 64 MiB */

typedef struct att_list_call {
    const att_recommender *m;
    att_recommend_options o;
    att_recommendation *out;
    att_item_table table;
    float *allowed;        /* [items]: 0, or -INFINITY for an item that must not be listed; NULL: all may be */
    att_param *allowed_as; /* `allowed` as a bias of the scores; or NULL */
    att_rerank *rerank;    /* or NULL: lists are the items with the highest scores */
    float *scores;         /* [items], for att_list_call_select; or NULL */
    att_top_column *best;
    size_t best_room;
} att_list_call;

/* Items that one list leaves out. */
typedef struct att_left_out {
    const int32_t *items; /* [n] */
    int64_t n;
} att_left_out;

/* Checks the options, and begins to make n lists. */
att_status att_list_call_begin(att_list_call *c, const att_recommender *m, const att_recommend_options *options,
                               int64_t n, att_recommendation *out);
/* Frees the memory of the call, and after an error that of the lists. */
void att_list_call_end(att_list_call *c, att_status e);
/* Allocates memory for n elements of c->best. */
att_status att_list_call_need(att_list_call *c, int64_t n);
/* Writes list b from `best` [k], best first. */
void att_list_call_write(att_list_call *c, int64_t b, const att_top_column *best);
/* Returns the error that a score is not finite. */
att_status att_list_call_not_finite(const att_list_call *c, int64_t b, int64_t item);
/* Makes list b from the scores of all items [items]. -INFINITY: not listed. */
att_status att_list_call_select(att_list_call *c, int64_t b, const float *scores, att_left_out without);

#endif
