/* Calls on many texts: in blocks they are tokenized, sorted by length, computed in batches of about equal numbers of
 * tokens on all threads, and their results put into the given order. The memory does not grow with their number. */
#ifndef ATT_MODEL_TOKEN_BATCHES_H
#define ATT_MODEL_TOKEN_BATCHES_H

#include "attend_text.h"
#include "io/progress.h"
#include "model/tape_pool.h"

/* Some texts of a call, to be computed together */
typedef struct att_token_batch {
    int64_t n;
    const int64_t *text;     /* [n]: numbers of the texts */
    const int64_t *offsets;  /* [n + 1] */
    const int32_t *ids;      /* [offsets[n]] */
    const int32_t *type_ids; /* [offsets[n]], or NULL: the tokens have none */
} att_token_batch;

/* What a call does; functions get its user. */
typedef struct att_token_call {
    att_ctx *ctx;
    const char *name; /* of the public function, for errors */
    int64_t n;
    att_tape_pool *tapes;
    att_progress_fn report; /* in numbers of texts; or NULL */
    void *report_user;
    void *user;
    /* Tokenizes texts [first, first + count) -> out [count]; after an error nothing of it is to be freed. Called by one
     * thread. */
    att_status (*tokenize)(void *user, int64_t first, int64_t count, att_tokens *out);
    bool borrowed; /* the tokens are not to be freed */
    att_var *(*apply)(void *user, att_tape *t, const att_token_batch *b);
    /* Keeps the result of a batch, dense rows. Called by any thread, of texts of its own. */
    void (*keep)(void *user, const att_token_batch *b, const float *rows);
} att_token_call;

att_status att_token_call_run(const att_token_call *call);

#endif
