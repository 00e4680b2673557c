/* Chooses the next token from its logits: greedily, or at random as `transformers` does. */
#ifndef ATT_LANGUAGE_SAMPLING_H
#define ATT_LANGUAGE_SAMPLING_H

#include "attend_language.h"
#include "attend_util.h"

typedef struct att_candidate {
    float logit;
    int32_t id;
} att_candidate;

/* Scratch memory of one thread. */
typedef struct att_sampler_scratch {
    float *row, *weight;  /* [vocabulary] each */
    att_candidate *order; /* [vocabulary] */
} att_sampler_scratch;

typedef struct att_sampler {
    att_sampling s; /* completed by att_sampling_complete */
    uint64_t seed;
    int64_t vocabulary;
    int64_t top; /* of att_token_scores */
} att_sampler;

/* Log probabilities in the model's own distribution: of tokens, and of the most probable tokens at each position. NULL:
 * not wanted. */
typedef struct att_token_scores {
    float *own;     /* [n] */
    int32_t *ids;   /* [n, top], by descending probability, then ascending id */
    float *highest; /* [n, top] */
} att_token_scores;

/* The position of a token. seen: a set of the ids to which the repetition penalty applies, bit id % 64 of word id / 64;
 * or NULL. generated: the generated ids before it, which the presence and the frequency penalty count. */
typedef struct att_sampler_position {
    int64_t sequence, position;
    const uint64_t *seen;
    const int32_t *generated; /* [n_generated] */
    int64_t n_generated;
} att_sampler_position;

/* Replaces zeros by the values that they stand for, and checks the values for a model with this vocabulary. caller: for
 * errors. */
att_status att_sampling_complete(att_ctx *ctx, const char *caller, int64_t vocabulary, att_sampling *s);
/* Returns the id for logits [vocabulary]; -1: they are not finite. */
int32_t att_sampler_choose(const att_sampler *s, const float *logits, const att_sampler_position *at,
                           att_sampler_scratch *scratch);
/* Writes the row of scores for the next token, `id`. Returns false if the logits are not finite. */
bool att_sampler_score(const att_sampler *s, const float *logits, int32_t id, att_sampler_scratch *scratch,
                       const att_token_scores *out, int64_t row);

#endif
