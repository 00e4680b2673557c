#include "text/tokenizer.h"

#include "io/text_file.h"
#include "io/util.h"
#include "text/sentencepiece.h"

#include <stdio.h>
#include <string.h>

att_status att_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (att_is_file(path))
        return att_sentencepiece_tokenizer_open(ctx, path, out);
    char source[ATT_MAX_PATH];
    const att_status s = att_join_path(ctx, path, "source.spm", source);
    if (s)
        return s;
    return att_is_file(source) ? att_marian_tokenizer_open(ctx, path, out) : att_bert_tokenizer_open(ctx, path, out);
}

void att_tokenizer_free(att_tokenizer *t)
{
    if (t)
        t->kind->free(t);
}

int64_t att_tokenizer_size(const att_tokenizer *t) { return t ? t->size : 0; }

const char *att_tokenizer_token(const att_tokenizer *t, int32_t id) { return t ? t->kind->token(t, id) : NULL; }

/* ---- encoding */

void att_token_sink_fail(att_token_sink *s, att_status status)
{
    if (s->status == ATT_OK)
        s->status = status;
    s->truncated = true;
}

void att_token_sink_unknown(const att_token_sink *s, const char *text, size_t bytes, bool by_characters)
{
    if (!s->options->unknown)
        return;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = by_characters ? att_piece_char(text + i, bytes - i) : bytes;
        s->options->unknown(s->options->user, text + i, n);
    }
}

/* Reserves space for `more` tokens. */
static bool reserve(att_token_sink *s, int64_t more)
{
    att_tokens *t = &s->tokens;
    const bool fits = !att_grow(s->t->ctx, &t->ids, sizeof *t->ids, (size_t)t->count, (size_t)more, &s->capacity);
    if (!fits)
        att_token_sink_fail(s, ATT_ERR_MEMORY);
    return fits;
}

static void append(att_token_sink *s, const int32_t *ids, int64_t n)
{
    if (n == 0 || !reserve(s, n))
        return;
    memcpy(s->tokens.ids + s->tokens.count, ids, (size_t)n * sizeof *ids);
    s->tokens.count += n;
}

void att_token_sink_add(att_token_sink *s, const int32_t *ids, int64_t n)
{
    int64_t room = s->limit - s->tokens.count;
    if (n > room)
        s->truncated = true;
    append(s, ids, att_min(n, room));
    s->full = s->tokens.count == s->limit;
}

att_status att_encode(const att_tokenizer *t, const char *text, size_t bytes, const att_encode_options *opt,
                      att_tokens *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_encode_options o;
    *out = (att_tokens){0};
    const att_status status = att_take_options(&o, sizeof o, opt, "att_encode_options");
    if (status)
        return status;
    if (!text && bytes > 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_encode: text is NULL, but bytes is %zu", bytes);
    const bool special = !o.no_special;
    const int64_t max_tokens = o.max_tokens, n_special = special ? t->n_before + t->n_after : 0;
    if (max_tokens < 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, less than 0", (long long)max_tokens);
    if (max_tokens > 0 && max_tokens < n_special)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, but the special tokens alone are %lld",
                        (long long)max_tokens, (long long)n_special);

    att_token_sink s = {
        .t = t, .options = &o, .limit = max_tokens > 0 ? max_tokens - (special ? t->n_after : 0) : INT64_MAX};
    if (!reserve(&s, 1)) /* even an empty result has an array */
        return s.status;
    if (special)
        append(&s, t->special, t->n_before);
    s.full = s.tokens.count == s.limit;
    t->kind->encode(&s, bytes > 0 ? text : "", bytes);
    s.tokens.truncated = s.truncated;
    if (special)
        append(&s, t->special + t->n_before, t->n_after);
    if (s.status != ATT_OK) {
        att_free(t->ctx, s.tokens.ids);
        return s.status;
    }
    *out = s.tokens;
    return ATT_OK;
}

void att_tokens_free(const att_tokenizer *t, att_tokens *tokens)
{
    if (!t || !tokens)
        return;
    att_free(t->ctx, tokens->ids);
    *tokens = (att_tokens){0};
}

/* ---- decoding */

att_status att_detokenize(const att_tokenizer *t, const int32_t *ids, int64_t n, att_text *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    *out = (att_text){0};
    if (n > 0 && !ids)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_detokenize: ids is NULL, but n is %lld", (long long)n);
    if (!t->kind->decode)
        return att_fail(t->ctx, ATT_ERR_UNSUPPORTED, "att_detokenize: this tokenizer does not keep what its text was");
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= t->size)
            return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_detokenize: ids[%lld] is %d, not in [0, %lld)", (long long)i,
                            ids[i], (long long)t->size);
    att_bytes text = {.ctx = t->ctx};
    t->kind->decode(t, ids, n, &text);
    att_bytes_add(&text, "", 1);
    if (text.status) {
        att_bytes_free(&text);
        return ATT_ERR_MEMORY;
    }
    *out = (att_text){text.data, text.count - 1};
    return ATT_OK;
}

void att_text_free(const att_tokenizer *t, att_text *text)
{
    if (!t || !text)
        return;
    att_free(t->ctx, text->text);
    *text = (att_text){0};
}
