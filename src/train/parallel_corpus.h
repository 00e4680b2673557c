/* Pairs of texts as ids, and the order in which an epoch learns them. The texts stay in their files: kept is where they
 * are and how many tokens they have, 20 bytes a pair, and an epoch's order, at most 12. */
#ifndef ATT_TRAIN_PARALLEL_CORPUS_H
#define ATT_TRAIN_PARALLEL_CORPUS_H

#include "train/text_lines.h"

#include "attend_model.h"

/* Two texts: [0] the source, [1] its translation. */
typedef struct att_text_pair {
    uint32_t tokens[2];
    uint32_t low[2]; /* where the lines begin in their files, of 48 bits */
    uint16_t high[2];
} att_text_pair;

enum { ATT_PAIRS_A_BLOCK = 1 << 16 };

typedef struct att_parallel_corpus {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    att_text_lines file[2]; /* open */
    int64_t n;
    att_text_pair **blocks; /* [block_room]: of ATT_PAIRS_A_BLOCK pairs, so that none is copied when there are more */
    size_t block_room;
    int64_t target_tokens;            /* of all */
    int64_t empty, invalid, too_long; /* pairs that were left out */
} att_parallel_corpus;

/* Line i of one file is a translation of line i of the other. Left out: pairs with an empty side, those that are not
 * UTF-8, and those with more than max_tokens (which fit 32 bits) on a side. The files stay open, and the tokenizer is
 * needed, until att_parallel_corpus_free. Errors name the files. */
att_status att_parallel_corpus_read(att_ctx *ctx, const att_tokenizer *t, const char *source, const char *target,
                                    int64_t max_tokens, att_parallel_corpus *out);
void att_parallel_corpus_free(att_parallel_corpus *s);
static inline const att_text_pair *att_pair_at(const att_parallel_corpus *s, int64_t i)
{
    return &s->blocks[i / ATT_PAIRS_A_BLOCK][i % ATT_PAIRS_A_BLOCK];
}

/* A line of file `side` to ids. */
att_status att_pair_encode(const att_parallel_corpus *s, int side, const att_text_line *l, att_tokens *out);

/* That two files have not the same number of lines. */
att_status att_lines_differ(att_ctx *ctx, const char *source, int64_t source_lines, const char *target,
                            int64_t target_lines);

/* Shuffles x [n] (Fisher, Yates). A seed has many orders: streams, each with numbers. */
void att_shuffle(uint64_t seed, uint32_t stream, int64_t number, int64_t n, uint32_t *x);

/* Batches of an epoch: pairs of like lengths, of at most so many target tokens, or a single pair. It follows from the
 * seed and the epoch's number, so that one who goes on later goes on with the same. */
typedef struct att_epoch {
    att_ctx *ctx;
    int64_t n;
    uint32_t *order; /* pairs, those of a batch one after the other */
    uint32_t *first; /* [n + 1] where in order each group of them begins, */
    uint32_t *group; /* [n] and which of these each batch is */
} att_epoch;
att_status att_epoch_make(const att_parallel_corpus *s, uint64_t seed, int64_t number, int64_t batch_tokens,
                          att_epoch *out);
void att_epoch_free(att_epoch *e);

/* A batch, in memory of its own. */
typedef struct att_batch {
    att_sequence_pairs pairs;
    uint32_t *ids; /* [pairs.n] for dropout: their numbers in the set */
    void *memory;
} att_batch;
/* Reads and tokenises the lines of batch i, by all threads. Errors: a file is not as it was when the set was read. */
att_status att_batch_take(const att_parallel_corpus *s, const att_epoch *e, int64_t i, att_batch *out);
void att_batch_free(att_ctx *ctx, att_batch *b);

#endif
