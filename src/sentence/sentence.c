/* Sentence embeddings: Transformer, Pooling, Normalize (Reimers, Gurevych 2019). */
#include "sentence/sentence.h"
#include "model/attention_map.h"
#include "io/check_texts.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_TOKENS = 256, /* per batch: activations fit in the L2 cache */
    TEXTS_PER_TASK = 64 /* texts that a thread tokenizes per task */
};

/* ---- open and close */

/* The tokenizer must already lower-case, else the setting is not supported. */
static att_status check_lower_case(const att_sentence *m, const char *folder)
{
    const att_tokenize_options *opt = ATT_OPTIONS(att_tokenize_options, .no_special = true);
    att_tokens upper = {0}, lower = {0};
    att_status s = att_tokenize(m->tokenizer, "A", 1, opt, &upper);
    if (!s)
        s = att_tokenize(m->tokenizer, "a", 1, opt, &lower);
    if (!s &&
        (upper.count != lower.count || memcmp(upper.ids, lower.ids, (size_t)upper.count * sizeof *upper.ids) != 0))
        s = att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                     "%s/sentence_bert_config.json: \"do_lower_case\" is true, but the tokenizer does not lower",
                     folder);
    att_tokens_free(m->model.ctx, &upper);
    att_tokens_free(m->model.ctx, &lower);
    return s;
}

/* Checks the modules against each other. */
static att_status check_parts(att_sentence *m, const char *folder)
{
    att_modules *p = &m->modules;
    const att_bert_info *b = &m->info;
    if (p->dim != b->hidden)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the pooling is for %lld features but hidden_size is %lld",
                        folder, (long long)p->dim, (long long)b->hidden);
    if (att_tokenizer_size(m->tokenizer) > b->vocabulary) /* fewer: embeddings are padded with rows of no token */
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the tokenizer has %lld tokens but vocab_size is %lld",
                        folder, (long long)att_tokenizer_size(m->tokenizer), (long long)b->vocabulary);
    if (p->max_tokens == 0 || p->max_tokens > b->max_positions)
        p->max_tokens = b->max_positions;
    return p->lower_case ? check_lower_case(m, folder) : ATT_OK;
}

static att_status load(att_model *base, const char *folder)
{
    att_sentence *m = (att_sentence *)base;
    pthread_mutex_init(&m->lock, NULL);
    att_status s = att_modules_read(base->ctx, folder, &m->modules);
    s = s ? s : att_tokenizer_open(base->ctx, m->modules.transformer, &m->tokenizer);
    if (!s)
        s = base->trainable ? att_bert_open_for_training(base->ctx, m->modules.transformer, &m->bert)
                            : att_bert_open(base->ctx, m->modules.transformer, &base->options, &m->bert);
    m->info.size = sizeof m->info;
    s = s ? s : att_bert_describe(m->bert, &m->info);
    return s ? s : check_parts(m, folder);
}

static void free_sentence(att_model *base)
{
    att_sentence *m = (att_sentence *)base;
    for (int i = 0; i < m->n_idle; i++)
        att_tape_free(m->idle[i]);
    pthread_mutex_destroy(&m->lock);
    att_bert_free(m->bert);
    att_tokenizer_free(m->tokenizer);
    att_modules_free(base->ctx, &m->modules);
}

static const att_model_kind kind = {.bytes = sizeof(att_sentence), .load = load, .free = free_sentence};

att_status att_sentence_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_sentence **out)
{
    return att_model_open(ctx, __func__, &kind, folder, options, out);
}

att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder, att_sentence **out)
{
    return att_model_open_for_training(ctx, __func__, &kind, folder, out);
}

void att_sentence_free(att_sentence *m) { att_model_free(m); }

att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_sentence_info all = {.dim = m->info.hidden,
                                   .max_tokens = m->modules.max_tokens,
                                   .layers = m->info.layers,
                                   .heads = m->info.heads,
                                   .pooling = m->modules.pooling,
                                   .normalized = m->modules.normalized,
                                   .plain = m->modules.plain,
                                   .similarity = m->modules.similarity};
    return att_info_write(info, &all, sizeof all, "att_sentence_info");
}

att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? (const att_model *)m->bert : NULL, weights);
}

const att_tokenizer *att_sentence_tokenizer(const att_sentence *m) { return m ? m->tokenizer : NULL; }

/* ---- tapes */

static att_status acquire_tape(const att_sentence *m, att_tape **out)
{
    att_sentence *pool = (att_sentence *)m; /* the pool of tapes is mutable, the model is not */
    *out = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->n_idle > 0)
        *out = pool->idle[--pool->n_idle];
    pthread_mutex_unlock(&pool->lock);
    return *out ? ATT_OK : att_tape_new(m->model.ctx, NULL, out);
}

static void release_tape(const att_sentence *m, att_tape *t)
{
    att_sentence *pool = (att_sentence *)m;
    att_tape_reset(t);
    pthread_mutex_lock(&pool->lock);
    const bool keep = pool->n_idle < ATT_MAX_IDLE_TAPES;
    if (keep)
        pool->idle[pool->n_idle++] = t;
    pthread_mutex_unlock(&pool->lock);
    if (!keep)
        att_tape_free(t);
}

/* ---- encode */

/* A call of att_sentence_encode. */
typedef struct sentence_job {
    const att_sentence *m;
    int64_t n;
    const char *const *texts;
    const size_t *bytes;
    att_tokens *tokens; /* [n] */
    int64_t *order;     /* [n]: by descending length */
    int64_t *batch;     /* [n_batches + 1]: batch b is order[batch[b]], ..., order[batch[b + 1] - 1] */
    int n_batches;
    float *out; /* [n, dim] */

    pthread_mutex_t lock; /* for the first error: its message belongs to the failing thread */
    att_status status;
    char error[1024];
} sentence_job;

static void note_failure(sentence_job *j, att_status s)
{
    pthread_mutex_lock(&j->lock);
    if (!j->status) {
        j->status = s;
        snprintf(j->error, sizeof j->error, "%s", att_error(j->m->model.ctx));
    }
    pthread_mutex_unlock(&j->lock);
}

static void tokenize_some(void *arg, int step)
{
    sentence_job *j = arg;
    const att_tokenize_options *opt = ATT_OPTIONS(att_tokenize_options, .max_tokens = j->m->modules.max_tokens);
    const int64_t first = (int64_t)step * TEXTS_PER_TASK, last = att_min(first + TEXTS_PER_TASK, j->n);
    for (int64_t i = first; i < last; i++) {
        const size_t bytes = j->bytes ? j->bytes[i] : strlen(j->texts[i]);
        const att_status s = att_tokenize(j->m->tokenizer, j->texts[i], bytes, opt, &j->tokens[i]);
        if (s) {
            note_failure(j, s);
            return;
        }
    }
}

static int longest_first(const void *a, const void *b, void *arg)
{
    const att_tokens *tokens = arg;
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    if (tokens[i].count != tokens[k].count)
        return tokens[i].count > tokens[k].count ? -1 : 1;
    return i < k ? -1 : 1;
}

/* Splits the order into batches with about equal numbers of tokens, a multiple of the number of threads. */
static void split_batches(sentence_job *j)
{
    const int threads = att_threads(j->m->model.ctx);
    int64_t total = 0;
    for (int64_t i = 0; i < j->n; i++)
        total += j->tokens[i].count;
    int64_t batches = att_ceil_div(total, BATCH_TOKENS);
    if (batches > 1)
        batches = att_ceil_div(batches, threads) * threads;
    const int64_t limit = batches > 0 ? att_ceil_div(total, batches) : total;
    int64_t in_batch = 0;
    j->n_batches = 0;
    j->batch[0] = 0;
    for (int64_t i = 0; i < j->n; i++) {
        in_batch += j->tokens[j->order[i]].count;
        if (in_batch >= limit || i == j->n - 1) {
            j->batch[++j->n_batches] = i + 1;
            in_batch = 0;
        }
    }
}

/* ids [tokens] and offsets [n + 1] of a batch in one allocation; NULL: error set */
static int64_t *gather(const sentence_job *j, const int64_t *order, int64_t n, int32_t **ids)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += j->tokens[order[i]].count;
    int64_t *offsets = att_alloc(j->m->model.ctx, (size_t)(n + 1 + total), sizeof *offsets);
    if (!offsets)
        return NULL;
    *ids = (int32_t *)(offsets + n + 1);
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const att_tokens *tokens = &j->tokens[order[i]];
        memcpy(*ids + offsets[i], tokens->ids, (size_t)tokens->count * sizeof **ids);
        offsets[i + 1] = offsets[i] + tokens->count;
    }
    return offsets;
}

static att_var *apply(att_tape *t, const att_sentence *m, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    att_var *x = att_pool(t, att_bert_apply(t, m->bert, ids, offsets, n), offsets, n, m->modules.pooling);
    return m->modules.normalized ? att_normalize(t, x, 1e-12f) : x;
}

static att_status encode_batch(const sentence_job *j, const int64_t *order, int64_t n)
{
    int32_t *ids;
    int64_t *offsets = gather(j, order, n, &ids);
    att_tape *t;
    if (!offsets)
        return ATT_ERR_MEMORY;
    att_status s = acquire_tape(j->m, &t);
    if (!s) {
        att_tensor y;
        s = att_var_value(t, apply(t, j->m, ids, offsets, n), &y);
        const size_t dim = (size_t)j->m->info.hidden;
        for (int64_t i = 0; !s && i < n; i++)
            memcpy(j->out + (size_t)order[i] * dim, (const float *)y.data + (size_t)i * dim, dim * sizeof(float));
        release_tape(j->m, t);
    }
    att_free(j->m->model.ctx, offsets);
    return s;
}

static void run_batch(void *arg, int b)
{
    sentence_job *j = arg;
    const att_status s = encode_batch(j, j->order + j->batch[b], j->batch[b + 1] - j->batch[b]);
    if (s)
        note_failure(j, s);
}

static void run(sentence_job *j)
{
    att_ctx *ctx = j->m->model.ctx;
    att_parallel_for(ctx, (int)att_ceil_div(j->n, TEXTS_PER_TASK), tokenize_some, j);
    if (j->status)
        return;
    for (int64_t i = 0; i < j->n; i++)
        j->order[i] = i;
    qsort_r(j->order, (size_t)j->n, sizeof *j->order, longest_first, j->tokens);
    split_batches(j);
    if (j->n_batches == 1)
        run_batch(j, 0); /* its operations run in parallel */
    else
        att_parallel_for(ctx, j->n_batches, run_batch, j);
}

static att_status check(const att_sentence *m, int64_t n, const char *const *texts, const float *out)
{
    if (att_require("att_sentence_encode", ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    if (n < 0 || n > (int64_t)1 << 31)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "att_sentence_encode: n is %lld, not in [0, 2^31]",
                        (long long)n);
    if (n > 0 && att_require("att_sentence_encode", ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    return att_check_texts(m->model.ctx, "att_sentence_encode: texts", texts, n);
}

att_status att_sentence_encode(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                               float *out, int64_t *n_truncated)
{
    const att_status s = check(m, n, texts, out);
    if (s)
        return s;
    sentence_job j = {.m = m, .n = n, .texts = texts, .bytes = bytes, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER};
    j.tokens = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *j.tokens);
    j.order = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *j.order);
    j.batch = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *j.batch);
    int64_t truncated = 0;
    if (!j.tokens || !j.order || !j.batch) {
        note_failure(&j, ATT_ERR_MEMORY);
    } else {
        memset(j.tokens, 0, (size_t)n * sizeof *j.tokens);
        run(&j);
        for (int64_t i = 0; i < n; i++) {
            truncated += j.tokens[i].truncated;
            att_tokens_free(m->model.ctx, &j.tokens[i]);
        }
    }
    att_free(m->model.ctx, j.tokens);
    att_free(m->model.ctx, j.order);
    att_free(m->model.ctx, j.batch);
    if (n_truncated)
        *n_truncated = truncated;
    return j.status ? att_fail(m->model.ctx, j.status, "%s", j.error)
                    : att_check_finite(m->model.ctx, "the numbers of the vector of text", n, m->info.hidden, out);
}

/* ---- attention weights */

static att_var *apply_bert(att_tape *t, const void *bert, const int32_t *ids, const int64_t *offsets)
{
    return att_bert_apply(t, bert, ids, offsets, 1);
}

static att_map_source map_source(const att_sentence *m)
{
    return (att_map_source){.ctx = m->model.ctx,
                            .tokenizer = m->tokenizer,
                            .layers = m->info.layers,
                            .heads = m->info.heads,
                            .model = m->bert,
                            .apply = apply_bert};
}

att_status att_sentence_attention(const att_sentence *m, const char *text, size_t bytes, int64_t layer, int64_t head,
                                  att_attention_map *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_map_source s = map_source(m);
    return att_map_attention(&s, text, bytes, ATT_OPTIONS(att_tokenize_options, .max_tokens = m->modules.max_tokens),
                             layer, head, out);
}
