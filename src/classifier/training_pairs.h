/* The pairs of texts that a training of a text classifier computes: a row is a pair or, with the ranking loss, has
 * pairs of its anchor and each candidate. */
#ifndef ATT_CLASSIFIER_TRAINING_PAIRS_H
#define ATT_CLASSIFIER_TRAINING_PAIRS_H

#include "classifier/classifier.h"

typedef struct att_training_pairs {
    const att_text_classifier *model;
    int64_t rows, columns, batch, negatives, max_tokens;
    bool ranking;
    att_tokens *tokens; /* [rows]: of pairs; with the ranking loss [rows, columns]: of texts */
    int64_t truncated;  /* rows */
    uint64_t sum;       /* checksum of all tokens */
    /* The current batch: its rows, and the pairs of each */
    int64_t n, candidates;
    int32_t *ids, *type_ids; /* [offsets[pairs]] */
    int64_t *offsets;        /* [pairs + 1] */
    int64_t *counting;       /* [pairs + 1]: 0, 1, 2 ... */
    uint32_t *sequence_ids;  /* [pairs] */
    int64_t *others;         /* [(columns - 1) batch]: candidates of an anchor, to draw from */
} att_training_pairs;

/* Tokenizes texts [rows, columns] with lengths bytes or NULL. The fields before tokens have been set. Free it after an
 * error, too. */
att_status att_training_pairs_open(att_training_pairs *p, const char *const *texts, const size_t *bytes);
void att_training_pairs_free(att_training_pairs *p);
/* Gathers the pairs of rows [n]. The seed determines the negatives that are drawn. */
att_status att_training_pairs_gather(att_training_pairs *p, const uint32_t *rows, int64_t n, uint64_t seed);

#endif
