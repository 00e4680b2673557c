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
    const att_tokenize_options *options;
    att_tokens *out; /* [n] */
} batch;

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
        const size_t bytes = b->bytes ? b->bytes[i] : strlen(b->texts[i]);
        const att_status s = att_tokenize(b->t, b->texts[i], bytes, b->options, &b->out[i]);
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

att_status att_tokenize_batch(const att_tokenizer *t, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_tokenize_options *opt, att_tokens *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    batch b = {.t = t, .n = n, .texts = texts, .bytes = bytes, .options = opt, .out = out};
    att_status s = check(&b);
    if (s || n == 0)
        return s;
    memset(out, 0, (size_t)n * sizeof *out);
    b.texts_per_task = att_ceil_div(n, (int64_t)TASKS_PER_THREAD * att_threads(t->ctx));
    b.texts_per_task = att_min(b.texts_per_task, MAX_TEXTS_PER_TASK);
    s = att_parallel_all(t->ctx, (int)att_ceil_div(n, b.texts_per_task), tokenize_some, &b);
    for (int64_t i = 0; s && i < n; i++)
        att_tokens_free(t->ctx, &out[i]);
    return s;
}
