/* Batches of histories: the training data of a recommender. */
#ifndef ATT_RECOMMEND_RECOMMEND_BATCHES_H
#define ATT_RECOMMEND_RECOMMEND_BATCHES_H

#include "attend_recommend.h"
#include "attend_util.h"

/* The source of the batches. */
typedef struct att_history_source {
    const att_holdout *data;
    int64_t users, items; /* of the log */
    int64_t max;          /* items of a history, at most */
    int64_t negatives;    /* at a position */
    const int32_t *drawn; /* [n_drawn]: the items from which negatives are drawn, which include all items of histories;
                           * NULL: all */
    int64_t n_drawn;
    int64_t batch; /* histories */
    bool masked;   /* items are masked; false: the next item is predicted at each position */
    double mask_share, last_mask_share;
    bool with_replacement;
    uint64_t seed;
} att_history_source;

typedef struct att_history_batch {
    int64_t n;              /* histories */
    int32_t *items;         /* [offsets[n]] */
    int64_t *offsets;       /* [n + 1] */
    uint32_t *sequence_ids; /* [n]: indexes in the whole batch */
    int64_t positions;      /* positions whose item is known */
    int32_t *rows;          /* [positions]: in items */
    int32_t *targets;       /* [positions] */
    int32_t *candidates;    /* [positions, 1 + negatives]: the target, and others; or NULL */
} att_history_batch;

typedef struct att_history_batches att_history_batches;
/* Makes the batches. The source's data must outlive them. Errors: no history has two or more items; memory. */
att_status att_history_batches_new(att_ctx *ctx, const att_history_source *source, att_history_batches **out);
void att_history_batches_free(att_history_batches *b);
/* Return the number of histories of two or more items; a checksum of these. */
int64_t att_history_batches_count(const att_history_batches *b);
uint64_t att_history_batches_sum(const att_history_batches *b);
/* Orders the histories of an epoch; returns its number of batches. */
int64_t att_history_batches_begin(att_history_batches *b, int64_t epoch);
/* Return the number of histories of batch i, and its histories [first, last), which are valid until the next call. They
 * depend only on the seed, the epoch and i. */
int64_t att_history_batches_size(const att_history_batches *b, int64_t i);
att_status att_history_batches_get(att_history_batches *b, int64_t i, int64_t first, int64_t last,
                                   const att_history_batch **out);

#endif
