/* Embeds many texts, or their tokens, in blocks: tokenizes, sorts by length, computes in batches, restores the
 * order. */
#include "sentence/sentence.h"
#include "io/check_texts.h"
#include "io/parallel_status.h"
#include "io/progress.h"
#include "util/array.h"
#include "util/util.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_TEXTS = 2048, /* texts whose tokens are in memory at a time */
    BATCH_TOKENS = 256, /* tokens of a batch: activations fit in the L2 cache */
};

/* A call, and the block of its texts [first, first + count). */
typedef struct embed_call {
    const char *name; /* of the public function, for errors */
    const att_sentence *m;
    int64_t n;
    const char *const *texts; /* [n], or NULL: ids are given */
    const size_t *bytes;
    att_embed_options options;
    const char *prompt;    /* a text before each text */
    int64_t prompt_tokens; /* number of its tokens, if modules leave them out; otherwise 0 */
    bool every_token;      /* out has a vector of each token, not of each text; ids are given */
    int64_t dim;           /* of a row of out */
    float *out;            /* [n, dim], or [options.offsets[n], dim] */

    att_progress progress; /* in texts; reported by `caller` alone */
    pthread_t caller;
    atomic_llong done; /* texts, of all threads */
    atomic_bool stopped;

    int64_t first, count;
    att_tokens *tokens; /* [count]: the tokens, which may be given ids; ids are NULL if there are none */
    int64_t *order;     /* [count]: by descending length */
    int64_t *batch;     /* [n_batches + 1]: batch b is order[batch[b]], ..., order[batch[b + 1] - 1] */
    int n_batches;

    att_token_embeddings *result; /* for vectors of tokens: receives ids and offsets first */
    size_t room;                  /* of its ids */
} embed_call;

/* ---- tokens of a block */

/* Tokenizes the block's texts, or finds their ids. */
static att_status read_tokens(embed_call *c)
{
    const att_embed_options *o = &c->options;
    att_status s = ATT_OK;
    att_ctx *ctx = c->m->model.ctx;
    if (c->texts)
        s = att_sentence_tokenize(c->m, c->count, c->texts + c->first, c->bytes ? c->bytes + c->first : NULL, c->prompt,
                                  c->tokens);
    if (s && c->first > 0)
        s = att_fail(ctx, s, "%s: of the texts from %lld on: %s", c->name, (long long)c->first, att_error(ctx));
    for (int64_t i = 0; !s && i < c->count; i++) {
        const int64_t k = c->first + i;
        if (!c->texts)
            c->tokens[i] = (att_tokens){.ids = (int32_t *)o->ids + o->offsets[k], /* not modified */
                                        .count = o->offsets[k + 1] - o->offsets[k]};
        if (o->tokens)
            o->tokens[k] = c->tokens[i].count;
        if (o->truncated)
            o->truncated[k] = c->tokens[i].truncated;
    }
    return s;
}

static void free_tokens(embed_call *c)
{
    for (int64_t i = 0; c->texts && i < c->count; i++)
        att_tokens_free(c->m->model.ctx, &c->tokens[i]);
}

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
static void make_batches(embed_call *c)
{
    const int threads = att_threads(c->m->model.ctx);
    int64_t total = 0, in_batch = 0;
    for (int64_t i = 0; i < c->count; i++) {
        c->order[i] = i;
        total += c->tokens[i].count;
    }
    qsort_r(c->order, (size_t)c->count, sizeof *c->order, longest_first, c->tokens);
    int64_t batches = att_ceil_div(total, BATCH_TOKENS);
    if (batches > 1)
        batches = att_ceil_div(batches, threads) * threads;
    const int64_t limit = batches > 0 ? att_ceil_div(total, batches) : total;
    c->n_batches = 0;
    c->batch[0] = 0;
    for (int64_t i = 0; i < c->count; i++) {
        in_batch += c->tokens[c->order[i]].count;
        if (in_batch >= limit || i == c->count - 1) {
            c->batch[++c->n_batches] = i + 1;
            in_batch = 0;
        }
    }
}

/* Returns ids [tokens] and offsets [n + 1] of a batch in one allocation; NULL: error set. */
static int64_t *gather(const embed_call *c, const int64_t *order, int64_t n, int32_t **ids)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += c->tokens[order[i]].count;
    int64_t *offsets = att_alloc(c->m->model.ctx, (size_t)(n + 1 + total), sizeof *offsets);
    if (!offsets)
        return NULL;
    *ids = (int32_t *)(offsets + n + 1);
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const att_tokens *tokens = &c->tokens[order[i]];
        memcpy(*ids + offsets[i], tokens->ids, (size_t)tokens->count * sizeof **ids);
        offsets[i + 1] = offsets[i] + tokens->count;
    }
    return offsets;
}

static att_var *apply(att_tape *t, const embed_call *c, const att_texts *x)
{
    const att_backbone *b = &c->m->backbone;
    return c->every_token ? att_modules_apply_to_tokens(t, &c->m->modules, x, b->kind->tokens(t, b, x, NULL))
                          : att_sentence_truncate(t, c->m, att_sentence_apply(t, c->m, x, NULL), c->dim);
}

/* Computes the texts order [n] of the block. */
static att_status embed_batch(const embed_call *c, const int64_t *order, int64_t n)
{
    int32_t *ids;
    int64_t *offsets = gather(c, order, n, &ids);
    att_tape *t;
    if (!offsets)
        return ATT_ERR_MEMORY;
    att_status s = att_sentence_acquire_tape(c->m, &t);
    if (!s) {
        const att_texts x = {.ids = ids, .offsets = offsets, .n = n, .prompt = c->prompt_tokens};
        const int64_t dim = c->dim;
        att_tensor y;
        s = att_var_value(t, apply(t, c, &x), &y);
        for (int64_t i = 0; !s && i < n; i++) {
            const int64_t text = c->first + order[i], rows = c->every_token ? offsets[i + 1] - offsets[i] : 1;
            memcpy(c->out + (c->every_token ? c->options.offsets[text] : text) * dim,
                   (const float *)y.data + (c->every_token ? offsets[i] : i) * dim,
                   (size_t)(rows * dim) * sizeof(float));
        }
        att_sentence_release_tape(c->m, t);
    }
    att_free(c->m->model.ctx, offsets);
    return s;
}

/* Reports the progress of all threads since the last report, if there is any. */
static att_status report(embed_call *c)
{
    const int64_t more = atomic_load(&c->done) - c->progress.done;
    return more > 0 ? att_progress_add(&c->progress, more) : ATT_OK;
}

/* Computes batch b of the block. The calling thread reports progress when it finishes one of its own batches, so that
 * no thread waits for it. */
static att_status run_batch(void *arg, int b)
{
    embed_call *c = arg;
    const int64_t n = c->batch[b + 1] - c->batch[b];
    if (atomic_load(&c->stopped))
        return ATT_ERR_CANCELLED; /* the message is that of an earlier batch */
    att_status s = embed_batch(c, c->order + c->batch[b], n);
    atomic_fetch_add(&c->done, n);
    if (!s && pthread_equal(c->caller, pthread_self()))
        s = report(c);
    if (s)
        atomic_store(&c->stopped, true);
    return s;
}

static att_status embed_block(embed_call *c)
{
    att_status s = read_tokens(c);
    if (!s) {
        make_batches(c);
        s = c->n_batches == 1 ? run_batch(c, 0) /* its operations run in parallel */
                              : att_parallel_all(c->m->model.ctx, c->n_batches, run_batch, c);
    }
    free_tokens(c);
    return s ? s : report(c);
}

/* ---- the calls */

/* Checks given ids: they must be sequences that a tokenizer could have made. */
static att_status check_ids(const embed_call *c)
{
    att_ctx *ctx = c->m->model.ctx;
    const att_embed_options *o = &c->options;
    const int64_t min = c->m->backbone.kind->vectors ? 0 : 1; /* no token has no hidden state, but perhaps a vector */
    char ids[64], offsets[64];
    snprintf(ids, sizeof ids, "%s: options.ids", c->name);
    snprintf(offsets, sizeof offsets, "%s: options.offsets", c->name);
    if (c->texts)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: texts and options.ids are given, not one of them", c->name);
    att_status s = att_check_text_offsets(ctx, offsets, o->offsets, c->n);
    s = s || o->offsets[c->n] == 0 ? s : att_require(c->name, ATT_NAMED({"options.ids", o->ids}));
    for (int64_t i = 0; !s && i < c->n; i++) {
        const int64_t count = o->offsets[i + 1] - o->offsets[i];
        if (count < min || count > c->m->max_tokens)
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: text %lld has %lld tokens, not %lld to %lld", offsets,
                         (long long)i, (long long)count, (long long)min, (long long)c->m->max_tokens);
    }
    return s ? s : att_check_ids(ctx, ids, o->ids, 0, o->offsets[c->n], c->m->backbone.info.vocabulary);
}

/* Finds the prompt of the texts; ids have none. */
static att_status read_prompt(embed_call *c)
{
    const att_embed_options *o = &c->options;
    const bool ids = o->ids || o->offsets;
    c->prompt = "";
    if (ids && (o->prompt || o->prompt_name))
        return att_fail(c->m->model.ctx, ATT_ERR_ARGUMENT, "%s: options.ids and options.%s are both given", c->name,
                        o->prompt ? "prompt" : "prompt_name");
    att_status s = ids ? ATT_OK : att_sentence_choose_prompt(c->m, c->name, o->prompt, o->prompt_name, &c->prompt);
    return s ? s : att_sentence_prompt_tokens(c->m, c->prompt, &c->prompt_tokens);
}

static att_status read_dims(embed_call *c)
{
    const int64_t dims = c->options.dims, full = c->m->modules.dim;
    att_ctx *ctx = c->m->model.ctx;
    c->dim = c->every_token ? c->m->modules.token_dim : dims ? dims : c->m->dim;
    if (c->every_token && dims != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.dims is %lld, but vectors of tokens are not truncated",
                        c->name, (long long)dims);
    if (dims < 0 || dims > full)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.dims is %lld, but embeddings have 1 to %lld numbers",
                        c->name, (long long)dims, (long long)full);
    return ATT_OK;
}

/* Sets the options of a call and checks its texts or ids. */
static att_status begin(embed_call *c, const att_embed_options *options)
{
    att_ctx *ctx = c->m->model.ctx;
    att_embed_options *o = &c->options;
    char texts[64];
    att_status s = att_options_read(o, sizeof *o, options, "att_embed_options");
    if (!s && c->n < 0)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, less than 0", c->name, (long long)c->n);
    s = s ? s : read_dims(c);
    if (s)
        return s;
    snprintf(texts, sizeof texts, "%s: texts", c->name);
    c->progress = (att_progress){.ctx = ctx, .call = c->name, .report = o->progress, .user = o->user, .all = c->n};
    c->caller = pthread_self();
    s = o->ids || o->offsets ? check_ids(c) : att_check_texts(ctx, texts, c->texts, c->n);
    return s ? s : read_prompt(c);
}

static att_status for_each_block(embed_call *c, att_status (*run)(embed_call *c))
{
    att_ctx *ctx = c->m->model.ctx;
    const size_t room = (size_t)att_min(c->n, BLOCK_TEXTS) + 1;
    c->tokens = att_alloc(ctx, room, sizeof *c->tokens);
    c->order = att_alloc(ctx, room, sizeof *c->order);
    c->batch = att_alloc(ctx, room, sizeof *c->batch);
    att_status s = c->tokens && c->order && c->batch ? ATT_OK : ATT_ERR_MEMORY;
    for (c->first = 0; !s && c->first < c->n; c->first += c->count) {
        c->count = att_min(c->n - c->first, BLOCK_TEXTS);
        s = run(c);
    }
    att_free(ctx, c->tokens);
    att_free(ctx, c->order);
    att_free(ctx, c->batch);
    return s;
}

static att_status embed_all(embed_call *c)
{
    const att_status s = for_each_block(c, embed_block);
    return s || c->n > 0 ? s : att_progress_add(&c->progress, 0);
}

att_status att_sentence_embed(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_embed_options *options, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    embed_call c = {.name = __func__, .m = m, .n = n, .texts = texts, .bytes = bytes, .out = out};
    att_status s = begin(&c, options);
    s = s || n == 0 ? s : att_require(__func__, ATT_NAMED({"out", out}));
    s = s ? s : embed_all(&c);
    return s ? s : att_check_finite(m->model.ctx, "the numbers of the vector of text", n, c.dim, out);
}

/* Appends the block's tokens to those of the result. */
static att_status append_tokens(embed_call *c)
{
    att_token_embeddings *y = c->result;
    att_status s = read_tokens(c);
    for (int64_t i = 0; !s && i < c->count; i++) {
        const int64_t first = y->offsets[c->first + i], count = c->tokens[i].count;
        s = att_grow(c->m->model.ctx, &y->ids, sizeof *y->ids, (size_t)first, (size_t)count, &c->room);
        if (!s && count > 0)
            memcpy(y->ids + first, c->tokens[i].ids, (size_t)count * sizeof *y->ids);
        y->offsets[c->first + i + 1] = first + count;
    }
    free_tokens(c);
    return s;
}

static att_status embed_tokens(embed_call *c, att_token_embeddings *y)
{
    att_ctx *ctx = c->m->model.ctx;
    const int64_t dim = c->dim;
    y->offsets = att_calloc(ctx, (size_t)c->n + 1, sizeof *y->offsets);
    if (!y->offsets)
        return ATT_ERR_MEMORY;
    c->result = y;
    att_status s = for_each_block(c, append_tokens);
    if (s)
        return s;
    const int64_t count = y->offsets[c->n];
    y->vectors = att_alloc(ctx, (size_t)count, (size_t)dim * sizeof *y->vectors);
    if (!y->vectors)
        return ATT_ERR_MEMORY;
    c->texts = NULL;
    c->options = (att_embed_options){.ids = y->ids, .offsets = y->offsets};
    c->out = y->vectors;
    s = embed_all(c);
    return s ? s : att_check_finite(ctx, "the numbers of the vector of token", count, dim, y->vectors);
}

att_status att_sentence_embed_tokens(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                     const att_embed_options *options, att_token_embeddings *out)
{
    if (out)
        *out = (att_token_embeddings){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    embed_call c = {.name = __func__, .m = m, .n = n, .texts = texts, .bytes = bytes, .every_token = true};
    att_status s = begin(&c, options);
    s = s ? s : embed_tokens(&c, out);
    if (s)
        att_token_embeddings_free(m->model.ctx, out);
    return s;
}

void att_token_embeddings_free(att_ctx *ctx, att_token_embeddings *e)
{
    if (!ctx || !e)
        return;
    att_free(ctx, e->offsets);
    att_free(ctx, e->ids);
    att_free(ctx, e->vectors);
    *e = (att_token_embeddings){0};
}
