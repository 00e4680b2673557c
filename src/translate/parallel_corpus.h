/* Parallel corpora: pairs of texts that stay in their files. In memory are, for each pair, its offsets and numbers of
 * tokens (20 bytes), and for an epoch its order (at most 12 bytes). */
#ifndef ATT_TRANSLATE_PARALLEL_CORPUS_H
#define ATT_TRANSLATE_PARALLEL_CORPUS_H

#include "io/line_reader.h"

#include "attend_translate.h"
#include "attend_util.h"

/* A pair: [0] source, [1] target. */
typedef struct att_text_pair {
    uint32_t tokens[2];
    uint32_t low[2]; /* offsets of the lines, low 32 of 48 bits */
    uint16_t high[2];
} att_text_pair;

enum { ATT_PAIRS_PER_BLOCK = 1 << 16 };

typedef struct att_parallel_corpus {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    att_text_lines file[2]; /* open */
    int64_t n;
    att_text_pair **blocks; /* [block_room] of ATT_PAIRS_PER_BLOCK pairs; growing copies no pair */
    size_t block_room;
    int64_t target_tokens;            /* of all pairs */
    int64_t empty, invalid, too_long; /* skipped pairs */
} att_parallel_corpus;

/* Opens two files whose lines i are translations of each other. Skips pairs with an empty text or more than max_tokens
 * (32 bits) on a side, and up to max_invalid pairs that are not UTF-8; one more is an error. The files stay open, and
 * the tokenizer must stay valid, until att_parallel_corpus_free. Errors name the files. */
att_status att_parallel_corpus_read(att_ctx *ctx, const att_tokenizer *t, const char *source, const char *target,
                                    int64_t max_tokens, int64_t max_invalid, att_parallel_corpus *out);
void att_parallel_corpus_free(att_parallel_corpus *s);
static inline const att_text_pair *att_pair_at(const att_parallel_corpus *s, int64_t i)
{
    return &s->blocks[i / ATT_PAIRS_PER_BLOCK][i % ATT_PAIRS_PER_BLOCK];
}

/* Tokenizes a line of file `side`. */
att_status att_pair_encode(const att_parallel_corpus *s, int side, const att_text_line *l, att_tokens *out);

/* Returns an error: the files have different numbers of lines. */
att_status att_lines_differ(att_ctx *ctx, const char *source, int64_t source_lines, const char *target,
                            int64_t target_lines);

/* The batches of an epoch: pairs of similar lengths with at most batch_tokens target tokens, or a single pair. They
 * depend only on the seed and the epoch's number, so that a resumed training has the same batches. */
typedef struct att_epoch {
    att_ctx *ctx;
    int64_t n;
    uint32_t *order; /* pairs; those of a batch are adjacent */
    uint32_t *first; /* [n + 1] start of each batch in order */
    uint32_t *group; /* [n] order of the batches */
} att_epoch;
att_status att_epoch_make(const att_parallel_corpus *s, uint64_t seed, int64_t number, int64_t batch_tokens,
                          att_epoch *out);
void att_epoch_free(att_epoch *e);

/* A batch of tokenized pairs. */
typedef struct att_batch {
    att_sequence_pairs pairs;
    uint32_t *ids; /* [pairs.n] numbers of the pairs in the corpus, for dropout */
    void *memory;
} att_batch;
/* Reads and tokenizes batch i, in parallel. Error: a file has changed since it was opened. */
att_status att_batch_read(const att_parallel_corpus *s, const att_epoch *e, int64_t i, att_batch *out);
/* Return the number of pairs of batch i, and its pairs [first, last) as a batch. */
int64_t att_batch_size(const att_epoch *e, int64_t i);
att_status att_batch_read_rows(const att_parallel_corpus *s, const att_epoch *e, int64_t i, int64_t first, int64_t last,
                               att_batch *out);
void att_batch_free(att_ctx *ctx, att_batch *b);

#endif
