#include "model/token_batches.h"
#include "io/parallel_status.h"
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
    int64_t *order;     /* [count]: by descending length */
    int64_t *batch;     /* [n_batches + 1]: batch b is order[batch[b]], ..., order[batch[b + 1] - 1] */
    int n_batches;
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

/* Sorts the block's texts and splits them into batches with about equal numbers of tokens, a multiple of the number of
 * threads. */
static void make_batches(run *r)
{
    const int threads = att_threads(r->call->ctx);
    int64_t total = 0, in_batch = 0;
    for (int64_t i = 0; i < r->count; i++) {
        r->order[i] = i;
        total += r->tokens[i].count;
    }
    qsort_r(r->order, (size_t)r->count, sizeof *r->order, longest_first, r->tokens);
    int64_t batches = att_ceil_div(total, BATCH_TOKENS);
    if (batches > 1)
        batches = att_ceil_div(batches, threads) * threads;
    const int64_t limit = batches > 0 ? att_ceil_div(total, batches) : total;
    r->n_batches = 0;
    r->batch[0] = 0;
    for (int64_t i = 0; i < r->count; i++) {
        in_batch += r->tokens[r->order[i]].count;
        if (in_batch >= limit || i == r->count - 1) {
            r->batch[++r->n_batches] = i + 1;
            in_batch = 0;
        }
    }
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

att_status att_token_call_run(const att_token_call *c)
{
    const size_t room = (size_t)att_min(c->n, BLOCK_TEXTS) + 1;
    run r = {.call = c,
             .progress = {.ctx = c->ctx, .call = c->name, .report = c->report, .user = c->report_user, .all = c->n},
             .caller = pthread_self()};
    r.tokens = att_alloc(c->ctx, room, sizeof *r.tokens);
    r.order = att_alloc(c->ctx, room, sizeof *r.order);
    r.batch = att_alloc(c->ctx, room, sizeof *r.batch);
    att_status s = r.tokens && r.order && r.batch ? ATT_OK : ATT_ERR_MEMORY;
    for (; !s && r.first < c->n; r.first += r.count) {
        r.count = att_min(c->n - r.first, BLOCK_TEXTS);
        s = run_block(&r);
    }
    att_free(c->ctx, r.tokens);
    att_free(c->ctx, r.order);
    att_free(c->ctx, r.batch);
    return s || c->n > 0 ? s : att_progress_add(&r.progress, 0);
}
