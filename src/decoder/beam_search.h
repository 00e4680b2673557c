/* Greedy search and beam search, for any autoregressive model. */
#ifndef ATT_DECODER_BEAM_SEARCH_H
#define ATT_DECODER_BEAM_SEARCH_H

#include "model/model.h"
#include "attend_nn.h"

/* A model that generates, with its state: rows of tokens, at first one row for each sentence. */
typedef struct att_generator {
    void *user;
    /* Appends ids [rows], one to each row. Returns the input [rows, hidden] of the layer `output`, which computes the
     * logits of the next tokens. */
    att_var *(*step)(void *user, att_tape *t, const int32_t *ids);
    const att_nn_linear *output;
    /* Replaces the rows: new row b is a copy of old row from[b]. from [n] is ordered by sentence. */
    att_status (*select)(void *user, int64_t n, const int64_t *from);
    void (*free)(void *user); /* called by the owner */
} att_generator;

typedef struct att_search {
    int64_t vocabulary;
    int64_t beam, n_best, min_tokens, max_tokens;
    double length_penalty;
    int32_t start, end;
    bool no_scores;        /* scores are not needed: log probabilities are undefined */
    bool early_stopping;   /* stop when `beam` hypotheses have finished */
    bool force_end;        /* force eos as token max_tokens */
    bool renormalize;      /* normalize probabilities over the tokens that are not banned */
    const int32_t *banned; /* [n_banned], each in [0, vocabulary) */
    int64_t n_banned;
    /* A forced beginning of each sequence, with fewer tokens than max_tokens: prefix [prefix_offsets[sentences]]. */
    const int32_t *prefix;
    const int64_t *prefix_offsets; /* [sentences + 1], or NULL: none */
} att_search;

/* A finished hypothesis, with the prefix and without eos. */
typedef struct att_finished {
    int32_t *ids; /* [count]; freed with att_free */
    int64_t count;
    int64_t steps;          /* tokens after the prefix, plus 1 if it ended with eos */
    double log_probability; /* of these */
    double score;           /* log probability / steps ^ length_penalty */
} att_finished;

/* Searches; writes the results to out [sentences][n_best], best first. If fewer hypotheses have finished, the others
 * have ids NULL. With beam = 1 this is greedy search until the first eos. Otherwise it works as the class
 * GenerationMixin does: of 2 * beam hypotheses it keeps those that end and rank among the first `beam`, until the score
 * of the best unfinished one (its log probability divided by its length) is below the worst of `beam` finished ones.
 * Forced tokens are fed one by one and do not count in scores, as in that class. Errors: logits that are not finite; no
 * token may follow. */
att_status att_search_run(const att_model *m, const att_search *search, const att_generator *model, int64_t sentences,
                          att_finished *out);

#endif
