/* Which tokens to go on with: greedy and beam search, for any model that goes on token by token. */
#ifndef ATT_MODEL_BEAM_SEARCH_H
#define ATT_MODEL_BEAM_SEARCH_H

#include "attend_model.h"
#include "attend_util.h"
#include "nn/nn.h"

/* A model in the middle of some sentences. It has rows, texts that grow: one a sentence to begin with. */
typedef struct att_generator {
    void *user;
    /* ids [rows], with which each row goes on -> what `output` makes the logits of what follows of, [rows, hidden] */
    att_var *(*step)(void *user, att_tape *t, const int32_t *ids);
    const att_nn_linear *output;
    /* There are now n rows, of which b is what row from[b] was, from [n], in the order of sentences. */
    att_status (*select)(void *user, int64_t n, const int64_t *from);
    void (*free)(void *user); /* whoever made it calls this */
} att_generator;

typedef struct att_search {
    int64_t vocabulary;
    int64_t beam, n_best, min_tokens, max_tokens;
    double length_penalty;
    int32_t start, end;
    bool texts_alone;      /* probabilities are not asked for: those of hypotheses mean nothing */
    bool early_stopping;   /* as soon as `beam` hypotheses have finished */
    bool force_end;        /* as the last of max_tokens, whatever its probability */
    bool renormalize;      /* the probabilities of what may follow add up to 1, without those of what is banned */
    const int32_t *banned; /* [n_banned], each in [0, vocabulary) */
    int64_t n_banned;
} att_search;

/* A finished hypothesis, without its end. */
typedef struct att_finished {
    int32_t *ids; /* [count]; the caller frees it with att_free */
    int64_t count;
    int64_t steps; /* count, and its end where it has one */
    double log_probability;
    double score; /* log probability / steps ^ length_penalty */
} att_finished;

/* out [sentences][n_best], the best first; fewer than n_best where fewer have finished: the others have ids NULL. With
 * beam = 1 the likeliest token each time, up to the first end. Else as the class GenerationMixin does: of 2 beam
 * hypotheses ends among the first `beam` are kept, until the best that goes on, divided by its length, is behind
 * the worst of `beam` that have finished. Errors: logits that are not numbers; nothing that may follow. */
att_status att_search_run(att_ctx *ctx, const att_search *search, const att_generator *model, int64_t sentences,
                          att_finished *out);

#endif
