/* Batches in which no text occurs twice: a text that is the positive of one example would be the negative of another
 * (sentence-transformers' NoDuplicatesBatchSampler). */
#ifndef ATT_TRAIN_DISTINCT_BATCHES_H
#define ATT_TRAIN_DISTINCT_BATCHES_H

#include "attend_util.h"

typedef struct att_distinct_batches {
    att_ctx *ctx;
    int64_t n, columns, texts; /* examples, texts of each, different texts */
    uint32_t *text;            /* [n, columns]: numbers of the texts; equal texts have the same */
    uint32_t *used;            /* [texts]: the last batch, counted from 1, with this text */
    uint32_t *next, *shuffled; /* [n] */
} att_distinct_batches;

/* Numbers texts [n, columns], with lengths bytes or NULL. */
att_status att_distinct_batches_make(att_ctx *ctx, const char *const *texts, const size_t *bytes, int64_t n,
                                     int64_t columns, att_distinct_batches *out);
/* The error that the first batch of `batch` rows has but `filled`, as texts repeat. */
att_status att_distinct_batches_refuse(att_ctx *ctx, int64_t batch, int64_t filled);
void att_distinct_batches_free(att_distinct_batches *d);
/* Reorders the examples of order [n] so that batch i is order[first[i]], ..., order[first[i + 1] - 1]. A batch has the
 * first `batch` of the remaining examples that have no text in common; the others come in a later batch. first [n + 1].
 * Returns the number of batches. */
int64_t att_distinct_batches_split(att_distinct_batches *d, int64_t batch, uint32_t *order, uint32_t *first);

#endif
