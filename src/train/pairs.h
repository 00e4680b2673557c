/* Pairs of texts as ids, and the order in which an epoch learns them. */
#ifndef ATT_TRAIN_PAIRS_H
#define ATT_TRAIN_PAIRS_H

#include "attend_model.h"

typedef struct att_pair_set {
    att_ctx *ctx;
    int64_t n;
    int32_t *source, *target;                 /* all one after the other, */
    int64_t *source_offsets, *target_offsets; /* [n + 1] */
    int64_t *line;                            /* [n] of the files, counted from 0 */
    int64_t empty, invalid, longer;           /* pairs that were left out */
} att_pair_set;

/* Line i of one file is a translation of line i of the other. Left out: pairs with an empty side, those that are not
 * UTF-8, and those with more than max_tokens on a side. Errors name the files. */
att_status att_pair_set_read(att_ctx *ctx, const att_tokenizer *t, const char *source, const char *target,
                             int64_t max_tokens, att_pair_set *out);
void att_pair_set_free(att_pair_set *s);

/* x [n] in an order by chance (Fisher, Yates), of which a seed has many: streams, each with numbers. */
void att_shuffle(uint64_t seed, uint32_t stream, int64_t number, int64_t n, int64_t *x);

/* Batches of an epoch: pairs of like lengths, of at most so many target tokens, or a single pair. It follows from the
 * seed and the epoch's number, so that one who goes on later goes on with the same. */
typedef struct att_epoch {
    att_ctx *ctx;
    int64_t n;
    int64_t *order; /* pairs, batch after batch */
    int64_t *first; /* [n + 1] where in order each batch begins */
} att_epoch;
att_status att_epoch_make(const att_pair_set *s, uint64_t seed, int64_t number, int64_t batch_tokens, att_epoch *out);
void att_epoch_free(att_epoch *e);

/* A batch, in memory of its own. */
typedef struct att_batch {
    att_pairs pairs;
    uint32_t *ids; /* [pairs.n] for dropout: their numbers in the set */
    void *memory;
} att_batch;
att_status att_batch_take(const att_pair_set *s, const att_epoch *e, int64_t i, att_batch *out);
void att_batch_free(att_ctx *ctx, att_batch *b);

#endif
