/* Tokenizes many texts on the context's threads, each text as in a separate call. */
#include "io/check_texts.h"
#include "io/parallel_status.h"
#include "text/tokenizer.h"
#include "util/util.h"

#include <string.h>

enum { MAX_TEXTS_PER_TASK = 16, TASKS_PER_THREAD = 8 };

typedef struct batch {
    const att_tokenizer *t;
    int64_t n, texts_per_task;
    const char *const *texts; /* [n] */
    const size_t *bytes;      /* [n] or NULL */
    const char *const *pairs; /* [n], with pair_bytes [n] or NULL: the second texts; or NULL */
    const size_t *pair_bytes;
    const att_tokenize_options *options;
    att_tokens *out; /* [n] */
} batch;

static size_t bytes_of(const char *const *texts, const size_t *bytes, int64_t i)
{
    return bytes ? bytes[i] : strlen(texts[i]);
}

static att_status tokenize_one(const batch *b, int64_t i)
{
    const size_t bytes = bytes_of(b->texts, b->bytes, i);
    return b->pairs ? att_tokenize_pair(b->t, b->texts[i], bytes, b->pairs[i], bytes_of(b->pairs, b->pair_bytes, i),
                                        b->options, &b->out[i])
                    : att_tokenize(b->t, b->texts[i], bytes, b->options, &b->out[i]);
}

/* Tokenizes the texts of a task. Its first error ends it; the error of the first task counts, so it is that of the
 * first text. */
static att_status tokenize_some(void *arg, int task)
{
    const batch *b = arg;
    att_ctx *ctx = b->t->ctx;
    const int64_t first = (int64_t)task * b->texts_per_task, last = att_min(first + b->texts_per_task, b->n);
    for (int64_t i = first; i < last; i++) {
        if (att_cancelled(ctx))
            return att_fail(ctx, ATT_ERR_CANCELLED, "att_tokenize_batch was cancelled");
        const att_status s = tokenize_one(b, i);
        if (s)
            return att_fail(ctx, s, "texts[%lld]: %s", (long long)i, att_error(ctx));
    }
    return ATT_OK;
}

static att_status check(const batch *b)
{
    att_ctx *ctx = b->t->ctx;
    att_tokenize_options o;
    if (b->n < 0 || b->n > (int64_t)1 << 31)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_tokenize_batch: n is %lld, not in [0, 2^31]", (long long)b->n);
    if (b->n > 0 && att_require("att_tokenize_batch", ATT_NAMED({"out", b->out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_check_texts(ctx, "att_tokenize_batch: texts", b->texts, b->n);
    s = s ? s : att_tokenize_options_read(b->t, b->options, &o);
    if (!s && o.unknown)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_tokenize_batch: options.unknown is set, which only att_tokenize calls");
    return s;
}

static att_status tokenize(batch *b)
{
    att_ctx *ctx = b->t->ctx;
    if (b->n == 0)
        return ATT_OK;
    memset(b->out, 0, (size_t)b->n * sizeof *b->out);
    b->texts_per_task = att_ceil_div(b->n, (int64_t)TASKS_PER_THREAD * att_threads(ctx));
    b->texts_per_task = att_min(b->texts_per_task, MAX_TEXTS_PER_TASK);
    const att_status s = att_parallel_all(ctx, (int)att_ceil_div(b->n, b->texts_per_task), tokenize_some, b);
    for (int64_t i = 0; s && i < b->n; i++)
        att_tokens_free(ctx, &b->out[i]);
    return s;
}

att_status att_tokenize_batch(const att_tokenizer *t, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_tokenize_options *opt, att_tokens *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    batch b = {.t = t, .n = n, .texts = texts, .bytes = bytes, .options = opt, .out = out};
    const att_status s = check(&b);
    return s ? s : tokenize(&b);
}

att_status att_tokenize_pairs(const att_tokenizer *t, int64_t n, const char *const *a, const size_t *a_bytes,
                              const char *const *b, const size_t *b_bytes, const att_tokenize_options *opt,
                              att_tokens *out)
{
    batch all = {
        .t = t, .n = n, .texts = a, .bytes = a_bytes, .pairs = b, .pair_bytes = b_bytes, .options = opt, .out = out};
    return tokenize(&all);
}
