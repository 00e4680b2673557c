/* A log with the end of each history held out. */
#ifndef ATT_RECOMMEND_HOLDOUT_H
#define ATT_RECOMMEND_HOLDOUT_H

#include "recommend/interactions.h"

/* A held-out action: the position in the log of its item, whose user has all from offsets[user] on before it. */
typedef struct att_case {
    int64_t position;
    int32_t user;
} att_case;

struct att_holdout {
    att_ctx *ctx;
    const att_interactions *log;
    att_holdout_info info;
    int64_t *train_end; /* [users]: where each user's actions for training end */
    int64_t *counts;    /* [items]: actions for training */
    att_case *cases[2]; /* [info.cases]; of att_holdout_part */
};

/* Returns the items of a case's history. */
static inline att_history att_case_history(const att_holdout *h, const att_case *c)
{
    return att_history_of(h->log, h->log->offsets[c->user], c->position);
}
/* Is the item of a case in its history? */
bool att_case_is_repeat(const att_holdout *h, const att_case *c);

#endif
