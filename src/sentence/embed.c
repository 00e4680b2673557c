/* Embeddings of many texts, in blocks: tokenize, sort by length, compute in batches, restore the order. */
#include "sentence/sentence.h"
#include "io/check_texts.h"
#include "io/parallel_status.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_TEXTS = 2048,  /* whose tokens are held at a time */
    BATCH_TOKENS = 256,  /* per batch: activations fit in the L2 cache */
    TEXTS_PER_TASK = 64, /* texts that a thread tokenizes per task */
};

/* A call of att_sentence_embed, and the block of its texts [first, first + count). */
typedef struct embed_call {
    const att_sentence *m;
    const char *const *texts; /* [n], or NULL: ids are given */
    const size_t *bytes;
    att_embed_options options;
    float *out; /* [n, dim] */

    int64_t first, count;
    att_tokens *tokens; /* [count]: of given ids, these; NULL where there are none */
    int64_t *order;     /* [count]: by descending length */
    int64_t *batch;     /* [n_batches + 1]: batch b is order[batch[b]], ..., order[batch[b + 1] - 1] */
    int n_batches;
} embed_call;

/* ---- tokens of a block */

static att_status tokenize_some(void *arg, int step)
{
    embed_call *c = arg;
    att_ctx *ctx = c->m->model.ctx;
    const att_tokenize_options *opt = ATT_OPTIONS(att_tokenize_options, .max_tokens = c->m->modules.max_tokens);
    const int64_t first = (int64_t)step * TEXTS_PER_TASK, last = att_min(first + TEXTS_PER_TASK, c->count);
    att_status s = att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "att_sentence_embed: cancelled") : ATT_OK;
    for (int64_t i = first; !s && i < last; i++) {
        const char *text = c->texts[c->first + i];
        s = att_tokenize(c->m->tokenizer, text, c->bytes ? c->bytes[c->first + i] : strlen(text), opt, &c->tokens[i]);
    }
    return s;
}

/* Tokenizes the block's texts, or finds their ids. */
static att_status read_tokens(embed_call *c)
{
    const att_embed_options *o = &c->options;
    att_status s = ATT_OK;
    memset(c->tokens, 0, (size_t)c->count * sizeof *c->tokens);
    if (c->texts)
        s = att_parallel_all(c->m->model.ctx, (int)att_ceil_div(c->count, TEXTS_PER_TASK), tokenize_some, c);
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

/* ids [tokens] and offsets [n + 1] of a batch in one allocation; NULL: error set */
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

static att_var *apply(att_tape *t, const att_sentence *m, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    att_var *x = att_pool(t, att_encoder_apply(t, m->encoder, ids, offsets, n, NULL), offsets, n, m->modules.pooling);
    return m->modules.normalized ? att_normalize(t, x, 1e-12f) : x;
}

static att_status run_batch(void *arg, int b)
{
    const embed_call *c = arg;
    const int64_t *order = c->order + c->batch[b], n = c->batch[b + 1] - c->batch[b];
    int32_t *ids;
    int64_t *offsets = gather(c, order, n, &ids);
    att_tape *t;
    if (!offsets)
        return ATT_ERR_MEMORY;
    att_status s = att_sentence_acquire_tape(c->m, &t);
    if (!s) {
        att_tensor y;
        s = att_var_value(t, apply(t, c->m, ids, offsets, n), &y);
        const size_t dim = (size_t)c->m->info.hidden;
        for (int64_t i = 0; !s && i < n; i++)
            memcpy(c->out + (size_t)(c->first + order[i]) * dim, (const float *)y.data + (size_t)i * dim,
                   dim * sizeof(float));
        att_sentence_release_tape(c->m, t);
    }
    att_free(c->m->model.ctx, offsets);
    return s;
}

static att_status run_block(embed_call *c)
{
    att_status s = read_tokens(c);
    if (!s) {
        make_batches(c);
        s = c->n_batches == 1 ? run_batch(c, 0) /* its operations run in parallel */
                              : att_parallel_all(c->m->model.ctx, c->n_batches, run_batch, c);
    }
    free_tokens(c);
    return s;
}

/* ---- the call */

/* Given ids: sequences that a tokenizer could have made. */
static att_status check_ids(const att_sentence *m, int64_t n, const char *const *texts, const att_embed_options *o)
{
    att_ctx *ctx = m->model.ctx;
    if (texts)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_sentence_embed: texts and options.offsets are given, not one of them");
    att_status s = att_check_text_offsets(ctx, "att_sentence_embed: options.offsets", o->offsets, n);
    s = s || o->offsets[n] == 0 ? s : att_require("att_sentence_embed", ATT_NAMED({"options.ids", o->ids}));
    for (int64_t i = 0; !s && i < n; i++) {
        const int64_t count = o->offsets[i + 1] - o->offsets[i];
        if (count < 1 || count > m->modules.max_tokens)
            s = att_fail(ctx, ATT_ERR_ARGUMENT,
                         "att_sentence_embed: options.offsets: text %lld has %lld tokens, not 1 to %lld", (long long)i,
                         (long long)count, (long long)m->modules.max_tokens);
    }
    return s ? s : att_check_ids(ctx, "att_sentence_embed: options.ids", o->ids, 0, o->offsets[n], m->info.vocabulary);
}

static att_status check(const att_sentence *m, int64_t n, const char *const *texts, const att_embed_options *o,
                        const float *out)
{
    att_ctx *ctx = m->model.ctx;
    if (n < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_sentence_embed: n is %lld, less than 0", (long long)n);
    if (n > 0 && att_require("att_sentence_embed", ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    return o->ids || o->offsets ? check_ids(m, n, texts, o)
                                : att_check_texts(ctx, "att_sentence_embed: texts", texts, n);
}

att_status att_sentence_embed(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_embed_options *options, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    embed_call c = {.m = m, .texts = texts, .bytes = bytes, .out = out};
    att_status s = att_options_read(&c.options, sizeof c.options, options, "att_embed_options");
    s = s ? s : check(m, n, texts, &c.options, out);
    if (s)
        return s;
    const size_t room = (size_t)att_min(n, BLOCK_TEXTS) + 1;
    c.tokens = att_alloc(ctx, room, sizeof *c.tokens);
    c.order = att_alloc(ctx, room, sizeof *c.order);
    c.batch = att_alloc(ctx, room, sizeof *c.batch);
    s = c.tokens && c.order && c.batch ? ATT_OK : ATT_ERR_MEMORY;
    for (; !s && c.first < n; c.first += c.count) {
        c.count = att_min(n - c.first, BLOCK_TEXTS);
        s = run_block(&c);
    }
    att_free(ctx, c.tokens);
    att_free(ctx, c.order);
    att_free(ctx, c.batch);
    return s ? s : att_check_finite(ctx, "the numbers of the vector of text", n, m->info.hidden, out);
}
