#include "model/token_batches.h"
#include "io/parallel_status.h"
#include "util/best.h"
#include "util/util.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_TEXTS = 2048, /* whose tokens are held at a time */
    BATCH_TOKENS = 256, /* per batch: activations fit in the L2 cache */
};

/* A call, and the block of its texts [first, first + count). */
typedef struct run {
    const att_token_call *call;
    att_progress progress; /* in texts; reported by `caller` alone */
    pthread_t caller;
    atomic_llong done; /* texts, of all threads */
    atomic_bool stopped;

    int64_t first, count;
    att_tokens *tokens; /* [count] */
    int64_t *sorted;    /* [count]: by descending length */
    int64_t *batch_of;  /* [count]: the batch of sorted[i] */
    int64_t *order;     /* [count]: by batch */
    int64_t *batch;     /* [n_batches + 2]: batch b is order[batch[b]], ..., order[batch[b + 1] - 1] */
    int n_batches;
    att_top_column *fewest; /* [n_batches]: a heap of the batches, first the one with the fewest tokens */
} run;

/* ---- batches of a block */

static int longest_first(const void *a, const void *b, void *arg)
{
    const att_tokens *tokens = arg;
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    if (tokens[i].count != tokens[k].count)
        return tokens[i].count > tokens[k].count ? -1 : 1;
    return i < k ? -1 : 1;
}

/* Returns the number of batches: of more than one, a multiple of the number of threads, unless there are fewer texts.
 */
static int count_batches(const run *r)
{
    const int64_t threads = att_threads(r->call->ctx);
    int64_t tokens = 0;
    for (int64_t i = 0; i < r->count; i++)
        tokens += r->tokens[i].count;
    const int64_t n = att_ceil_div(tokens, BATCH_TOKENS);
    return (int)(n > 1 ? att_min(att_ceil_div(n, threads) * threads, r->count) : 1);
}

/* Gives the texts of `sorted` to batches, each to the one with the fewest tokens so far. A text counts as one token
 * more, so that each batch has a text. batch[b + 2]: the number of texts of batch b. */
static void share_out(run *r)
{
    const int n = r->n_batches;
    memset(r->batch, 0, (size_t)(n + 2) * sizeof *r->batch);
    for (int b = 0; b < n; b++)
        r->fewest[b] = (att_top_column){.column = n - 1 - b}; /* value: tokens */
    for (int64_t i = 0; i < r->count; i++) {
        att_top_column b = r->fewest[0];
        r->batch_of[i] = b.column;
        r->batch[b.column + 2]++;
        b.value += (float)(r->tokens[r->sorted[i]].count + 1);
        att_best_replace(r->fewest, n, b);
    }
}

/* Splits the block's texts into batches with about equal numbers of tokens, so that all threads end at about the same
 * time: the longest texts are placed first, and the shortest ones level the sums. */
static void make_batches(run *r)
{
    for (int64_t i = 0; i < r->count; i++)
        r->sorted[i] = i;
    qsort_r(r->sorted, (size_t)r->count, sizeof *r->sorted, longest_first, r->tokens);
    r->n_batches = count_batches(r);
    share_out(r);
    for (int b = 0; b < r->n_batches; b++)
        r->batch[b + 2] += r->batch[b + 1];
    for (int64_t i = 0; i < r->count; i++) /* batch[b + 1] moves from the beginning of batch b to its end */
        r->order[r->batch[r->batch_of[i] + 1]++] = r->sorted[i];
}

/* ---- one batch */

/* Copies type ids of a text to `out` [count]; a text of its own has type 0. */
static void copy_types(const att_tokens *tokens, int32_t *out)
{
    if (tokens->type_ids)
        memcpy(out, tokens->type_ids, (size_t)tokens->count * sizeof *out);
    else
        memset(out, 0, (size_t)tokens->count * sizeof *out);
}

/* The texts order [n] of the block as a batch, in one allocation, which is returned; NULL: error set */
static void *gather(const run *r, const int64_t *order, int64_t n, att_token_batch *b)
{
    int64_t total = 0;
    bool types = false;
    for (int64_t i = 0; i < n; i++) {
        total += r->tokens[order[i]].count;
        types |= r->tokens[order[i]].type_ids != NULL;
    }
    int64_t *text = att_alloc(r->call->ctx, (size_t)(2 * n + 1 + total), sizeof *text);
    if (!text)
        return NULL;
    int64_t *offsets = text + n;
    int32_t *ids = (int32_t *)(offsets + n + 1), *type_ids = ids + total;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const att_tokens *tokens = &r->tokens[order[i]];
        text[i] = r->first + order[i];
        if (tokens->count > 0) /* ids of none may be NULL */
            memcpy(ids + offsets[i], tokens->ids, (size_t)tokens->count * sizeof *ids);
        if (types)
            copy_types(tokens, type_ids + offsets[i]);
        offsets[i + 1] = offsets[i] + tokens->count;
    }
    *b = (att_token_batch){.n = n, .text = text, .offsets = offsets, .ids = ids, .type_ids = types ? type_ids : NULL};
    return text;
}

static att_status compute(const run *r, const int64_t *order, int64_t n)
{
    const att_token_call *c = r->call;
    att_token_batch b;
    void *memory = gather(r, order, n, &b);
    att_tape *t;
    if (!memory)
        return ATT_ERR_MEMORY;
    att_status s = att_tape_pool_acquire(c->tapes, &t);
    if (!s) {
        att_tensor y;
        s = att_var_value(t, c->apply(c->user, t, &b), &y);
        if (!s)
            c->keep(c->user, &b, y.data);
        att_tape_pool_release(c->tapes, t);
    }
    att_free(c->ctx, memory);
    return s;
}

/* ---- all */

/* Reports what all threads have done since the last report, if that is anything. */
static att_status report(run *r)
{
    const int64_t more = atomic_load(&r->done) - r->progress.done;
    return more > 0 ? att_progress_add(&r->progress, more) : ATT_OK;
}

/* Batch b of the block; the calling thread reports its own ones, so that none waits for it. */
static att_status run_batch(void *arg, int b)
{
    run *r = arg;
    const int64_t n = r->batch[b + 1] - r->batch[b];
    if (atomic_load(&r->stopped))
        return ATT_ERR_CANCELLED; /* the sentence is that of an earlier batch */
    att_status s = compute(r, r->order + r->batch[b], n);
    atomic_fetch_add(&r->done, n);
    if (!s && pthread_equal(r->caller, pthread_self()))
        s = report(r);
    if (s)
        atomic_store(&r->stopped, true);
    return s;
}

static att_status run_block(run *r)
{
    const att_token_call *c = r->call;
    att_status s = c->tokenize(c->user, r->first, r->count, r->tokens);
    if (s)
        return s;
    make_batches(r);
    s = r->n_batches == 1 ? run_batch(r, 0) /* its operations run in parallel */
                          : att_parallel_all(c->ctx, r->n_batches, run_batch, r);
    for (int64_t i = 0; !c->borrowed && i < r->count; i++)
        att_tokens_free(c->ctx, &r->tokens[i]);
    return s ? s : report(r);
}

static att_status run_blocks(run *r)
{
    att_status s = ATT_OK;
    for (; !s && r->first < r->call->n; r->first += r->count) {
        r->count = att_min(r->call->n - r->first, BLOCK_TEXTS);
        s = run_block(r);
    }
    return s;
}

att_status att_token_call_run(const att_token_call *c)
{
    const size_t room = (size_t)att_min(c->n, BLOCK_TEXTS) + 1;
    run r = {.call = c,
             .progress = {.ctx = c->ctx, .call = c->name, .report = c->report, .user = c->report_user, .all = c->n},
             .caller = pthread_self()};
    r.tokens = att_alloc(c->ctx, room, sizeof *r.tokens);
    r.fewest = att_alloc(c->ctx, room, sizeof *r.fewest);
    int64_t *memory = att_alloc(c->ctx, 4 * room + 1, sizeof *memory);
    att_status s = ATT_ERR_MEMORY;
    if (r.tokens && r.fewest && memory) {
        r.sorted = memory;
        r.batch_of = memory + room;
        r.order = memory + 2 * room;
        r.batch = memory + 3 * room;
        s = run_blocks(&r);
    }
    att_free(c->ctx, r.tokens);
    att_free(c->ctx, r.fewest);
    att_free(c->ctx, memory);
    return s || c->n > 0 ? s : att_progress_add(&r.progress, 0);
}
