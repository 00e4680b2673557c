/* Scores texts and pairs of texts, and ranks documents by their scores. */
#include "classifier/classifier.h"
#include "io/check_texts.h"
#include "model/token_batches.h"
#include "text/tokenizer.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct classify_call {
    const char *name, *what; /* of the public function and of its argument `texts`, for errors */
    const att_text_classifier *m;
    int64_t n;
    const char *const *texts; /* [n], or NULL: ids are given */
    const size_t *bytes;
    att_text_classify_options options;
    float *out; /* [n, labels] */
} classify_call;

/* ---- tokens */

static att_status tokenize_texts(const classify_call *c, int64_t first, int64_t count, att_tokens *out)
{
    const att_text_classify_options *o = &c->options;
    const att_tokenize_options how = {.size = sizeof how, .max_tokens = o->max_tokens};
    const size_t *bytes = c->bytes ? c->bytes + first : NULL;
    return o->pairs ? att_tokenize_pairs(c->m->tokenizer, count, c->texts + first, bytes, o->pairs + first,
                                         o->pair_bytes ? o->pair_bytes + first : NULL, &how, out)
                    : att_tokenize_batch(c->m->tokenizer, count, c->texts + first, bytes, &how, out);
}

static void find_ids(const classify_call *c, int64_t first, int64_t count, att_tokens *out)
{
    const att_text_classify_options *o = &c->options;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = o->offsets[first + i];
        out[i] = (att_tokens){.ids = (int32_t *)o->ids + at, /* not modified */
                              .type_ids = o->type_ids ? (int32_t *)o->type_ids + at : NULL,
                              .count = o->offsets[first + i + 1] - at};
    }
}

/* Tokenizes texts, or finds their ids. */
static att_status tokenize(void *user, int64_t first, int64_t count, att_tokens *out)
{
    const classify_call *c = user;
    const att_text_classify_options *o = &c->options;
    att_ctx *ctx = c->m->model.ctx;
    att_status s = ATT_OK;
    if (c->texts)
        s = tokenize_texts(c, first, count, out);
    else
        find_ids(c, first, count, out);
    if (s && first > 0)
        s = att_fail(ctx, s, "%s: of the texts from %lld on: %s", c->name, (long long)first, att_error(ctx));
    for (int64_t i = 0; !s && i < count; i++) {
        if (o->tokens)
            o->tokens[first + i] = out[i].count;
        if (o->truncated)
            o->truncated[first + i] = out[i].truncated;
    }
    return s;
}

/* ---- scores */

static att_var *apply(void *user, att_tape *t, const att_token_batch *b)
{
    const classify_call *c = user;
    const att_text_classifier_input in = {.ids = b->ids,
                                          .type_ids = att_text_classifier_has_types(c->m) ? b->type_ids : NULL,
                                          .head = {.offsets = b->offsets, .n = b->n}};
    return att_text_activate(t, att_text_classifier_logits(t, c->m, &in), c->options.activation);
}

static void keep(void *user, const att_token_batch *b, const float *rows)
{
    const classify_call *c = user;
    const int64_t labels = c->m->config.head.labels;
    for (int64_t i = 0; i < b->n; i++)
        memcpy(c->out + b->text[i] * labels, rows + i * labels, (size_t)labels * sizeof *rows);
}

static att_status run(classify_call *c)
{
    const att_text_classify_options *o = &c->options;
    const att_token_call call = {.ctx = c->m->model.ctx,
                                 .name = c->name,
                                 .n = c->n,
                                 .tapes = &((att_text_classifier *)c->m)->tapes, /* mutable, the model is not */
                                 .report = o->progress,
                                 .report_user = o->user,
                                 .user = c,
                                 .tokenize = tokenize,
                                 .borrowed = !c->texts,
                                 .apply = apply,
                                 .keep = keep};
    const att_status s = att_token_call_run(&call);
    return s ? s : att_check_finite(call.ctx, "the scores of text", c->n, c->m->config.head.labels, c->out);
}

/* ---- checks */

static att_status check_ids(const classify_call *c)
{
    att_ctx *ctx = c->m->model.ctx;
    const att_text_classify_options *o = &c->options;
    char types[64];
    snprintf(types, sizeof types, "%s: options.type_ids", c->name);
    if (c->texts || o->pairs)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: texts and options.ids are given, not one of them", c->name);
    const att_given_ids given = {
        .ids = o->ids, .offsets = o->offsets, .min = 1, .max = o->max_tokens, .vocabulary = c->m->info.vocabulary};
    const att_status s = att_check_given_ids(ctx, c->name, &given, c->n);
    if (s || !o->type_ids)
        return s;
    return att_check_ids(ctx, types, o->type_ids, 0, o->offsets[c->n], att_max(c->m->info.types, 1));
}

static att_status check_texts(const classify_call *c)
{
    char texts[64], pairs[64];
    const att_text_classify_options *o = &c->options;
    snprintf(texts, sizeof texts, "%s: %s", c->name, c->what);
    snprintf(pairs, sizeof pairs, "%s: options.pairs", c->name);
    const att_status s = att_check_texts(c->m->model.ctx, texts, c->texts, c->n);
    return s || !o->pairs ? s : att_check_texts(c->m->model.ctx, pairs, o->pairs, c->n);
}

/* Sets what options leave to the model, and checks what is classified. */
static att_status begin(classify_call *c)
{
    att_ctx *ctx = c->m->model.ctx;
    att_text_classify_options *o = &c->options;
    const int64_t max = c->m->config.max_tokens;
    if (c->n < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, less than 0", c->name, (long long)c->n);
    if ((unsigned)o->activation > ATT_TEXT_ACTIVATION_SOFTMAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.activation is %d, not an att_text_activation", c->name,
                        (int)o->activation);
    if (o->max_tokens < 0 || o->max_tokens > max)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.max_tokens is %lld, not in [0, %lld], as the model's",
                        c->name, (long long)o->max_tokens, (long long)max);
    o->max_tokens = o->max_tokens ? o->max_tokens : max;
    o->activation = o->activation ? o->activation : c->m->config.activation;
    return o->ids || o->offsets ? check_ids(c) : check_texts(c);
}

att_status att_text_classify(const att_text_classifier *m, int64_t n, const char *const *texts, const size_t *bytes,
                             const att_text_classify_options *options, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    classify_call c = {.name = __func__, .what = "texts", .m = m, .n = n, .texts = texts, .bytes = bytes, .out = out};
    att_status s = att_options_read(&c.options, sizeof c.options, options, "att_text_classify_options");
    s = s ? s : begin(&c);
    s = s || n == 0 ? s : att_require(__func__, ATT_NAMED({"out", out}));
    return s ? s : m->probe ? att_probe_classify(m, n, texts, bytes, &c.options, out) : run(&c);
}

/* ---- ranks */

static int best_first(const void *a, const void *b)
{
    const att_ranked_text *x = a, *y = b;
    if (x->score > y->score || x->score < y->score) /* they are finite */
        return x->score > y->score ? -1 : 1;
    return x->document < y->document ? -1 : 1;
}

/* Scores all documents, each in a pair with the query. */
static att_status score(classify_call *c, const char *query, size_t bytes, const char *const *documents,
                        const size_t *document_bytes)
{
    att_ctx *ctx = c->m->model.ctx;
    const char **queries = att_alloc(ctx, (size_t)c->n + 1, sizeof *queries);
    size_t *query_bytes = att_alloc(ctx, (size_t)c->n + 1, sizeof *query_bytes);
    att_status s = queries && query_bytes ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < c->n; i++) {
        queries[i] = query;
        query_bytes[i] = bytes;
    }
    c->texts = queries;
    c->bytes = query_bytes;
    c->options.pairs = documents;
    c->options.pair_bytes = document_bytes;
    s = s ? s : run(c);
    att_free(ctx, queries);
    att_free(ctx, query_bytes);
    return s;
}

static att_status sort(const classify_call *c, int64_t top, att_ranked_text *out)
{
    att_ranked_text *all = att_alloc(c->m->model.ctx, (size_t)c->n + 1, sizeof *all);
    if (!all)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < c->n; i++)
        all[i] = (att_ranked_text){i, c->out[i]};
    qsort(all, (size_t)c->n, sizeof *all, best_first);
    memcpy(out, all, (size_t)att_min(top ? top : c->n, c->n) * sizeof *all);
    att_free(c->m->model.ctx, all);
    return ATT_OK;
}

/* Checks what ranks need besides scores. */
static att_status check_rank(const classify_call *c, int64_t top)
{
    att_ctx *ctx = c->m->model.ctx;
    const int64_t labels = c->m->config.head.labels;
    if (top < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.top is %lld, less than 0", c->name, (long long)top);
    if (labels != 1)
        return att_fail(
            ctx, ATT_ERR_ARGUMENT,
            "%s: the model has %lld labels (\"%.40s\", \"%.40s\"%s), but documents are ranked by one score: "
            "att_text_classify has those of all labels",
            c->name, (long long)labels, c->m->config.name[0], c->m->config.name[1], labels > 2 ? ", ..." : "");
    return c->options.activation == ATT_TEXT_ACTIVATION_SOFTMAX
               ? att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.activation is the softmax, which of one score is 1",
                          c->name)
               : ATT_OK;
}

att_status att_text_rank(const att_text_classifier *m, const char *query, size_t query_bytes, int64_t n,
                         const char *const *documents, const size_t *bytes, const att_text_rank_options *options,
                         att_ranked_text *out)
{
    att_text_rank_options o;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"query", query})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_options_read(&o, sizeof o, options, "att_text_rank_options");
    if (s)
        return s;
    classify_call c = {.name = __func__, .what = "documents", .m = m, .n = n, .options = {.activation = o.activation}};
    c.options.max_tokens = o.max_tokens;
    c.options.tokens = o.tokens;
    c.options.truncated = o.truncated;
    c.options.progress = o.progress;
    c.options.user = o.user;
    s = check_rank(&c, o.top);
    c.texts = documents; /* to be checked */
    s = s ? s : begin(&c);
    s = s || n == 0 ? s : att_require(__func__, ATT_NAMED({"out", out}));
    if (s)
        return s;
    c.out = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *c.out);
    s = c.out ? score(&c, query, query_bytes, documents, bytes) : ATT_ERR_MEMORY;
    s = s || n == 0 ? s : sort(&c, o.top, out);
    att_free(m->model.ctx, c.out);
    return s;
}
