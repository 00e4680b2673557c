/* A log with the end of each history held out. */
#ifndef ATT_RECOMMEND_HOLDOUT_H
#define ATT_RECOMMEND_HOLDOUT_H

#include "recommend/interactions.h"

/* A held-out action: its user, and its position in the log. The user's actions before it begin at offsets[user]. */
typedef struct att_case {
    int64_t position;
    int32_t user;
} att_case;

struct att_holdout {
    att_ctx *ctx;
    const att_interactions *log;
    att_holdout_info info;
    int64_t *train_end; /* [users]: the end of each user's actions for training */
    int64_t *counts;    /* [items]: actions for training */
    att_case *cases[2]; /* [info.cases]; of att_holdout_part */
};

/* Returns the items of a case's history. */
static inline att_history att_case_history(const att_holdout *h, const att_case *c)
{
    return att_history_of(h->log, h->log->offsets[c->user], c->position);
}
/* Returns whether the item of a case is in its history. */
bool att_case_is_repeat(const att_holdout *h, const att_case *c);

#endif
