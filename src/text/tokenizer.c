#include "text/tokenizer.h"

#include "text/sentencepiece.h"
#include "util/util.h"
#include "util/array.h"

#include <string.h>

att_tokenizer att_tokenizer_empty(att_ctx *ctx, const att_tokenizer_kind *kind)
{
    att_tokenizer t = {.ctx = ctx, .kind = kind};
    for (int i = 0; i < ATT_TOKENS; i++)
        t.special[i] = ATT_NO_ID;
    return t;
}

void att_tokenizer_free(att_tokenizer *t)
{
    if (t)
        t->kind->free(t);
}

int64_t att_tokenizer_size(const att_tokenizer *t) { return t ? t->size : 0; }

const char *att_tokenizer_token(const att_tokenizer *t, int32_t id) { return t ? t->kind->token(t, id) : NULL; }

int32_t att_tokenizer_find(const att_tokenizer *t, const char *text, size_t bytes)
{
    return t && text && bytes > 0 ? t->kind->find(t, text, bytes) : ATT_NO_ID;
}

bool att_tokenizer_is_special(const att_tokenizer *t, int32_t id)
{
    return t && id >= 0 && id < t->size && t->kind->is_special(t, id);
}

int32_t att_tokenizer_special(const att_tokenizer *t, att_token token)
{
    return t && (unsigned)token < ATT_TOKENS ? t->special[token] : ATT_NO_ID;
}

/* ---- encoding */

void att_token_sink_fail(att_token_sink *s, att_status status)
{
    if (s->status == ATT_OK)
        s->status = status;
    s->truncated = true;
}

void att_token_sink_unknown(att_token_sink *s, const char *text, size_t bytes, bool by_characters)
{
    s->tokens.unknown = true;
    if (!s->options->unknown)
        return;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = by_characters ? att_piece_char(text + i, bytes - i) : bytes;
        s->options->unknown(s->options->user, text + i, n);
    }
}

/* Counts the special tokens of a template. */
static int64_t special_tokens(const att_template *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++)
        n += t->item[i] >= 0;
    return n;
}

bool att_template_add(att_template *t, int32_t item, int32_t type)
{
    if (t->count == ATT_MAX_SPECIAL + 2 || (item >= 0 && special_tokens(t) == ATT_MAX_SPECIAL))
        return false;
    t->item[t->count] = item;
    t->type[t->count++] = type;
    return true;
}

/* Reserves space for `more` tokens. */
static bool reserve(att_token_sink *s, int64_t more)
{
    att_tokens *t = &s->tokens;
    att_ctx *ctx = s->t->ctx;
    att_status e = att_grow(ctx, &t->ids, sizeof *t->ids, (size_t)t->count, (size_t)more, &s->capacity);
    if (!e && s->options->offsets)
        e = att_grow(ctx, &t->offsets, 2 * sizeof *t->offsets, (size_t)t->count, (size_t)more, &s->offsets_capacity);
    if (!e && s->options->offsets)
        e = att_grow(ctx, &t->special, sizeof *t->special, (size_t)t->count, (size_t)more, &s->special_capacity);
    if (e)
        att_token_sink_fail(s, ATT_ERR_MEMORY);
    return !e;
}

/* Appends tokens that stand for nothing in the text: their offsets are [0, 0). special: they are put around a text. */
static void append(att_token_sink *s, const int32_t *ids, int64_t n, bool special)
{
    if (n == 0 || !reserve(s, n))
        return;
    memcpy(s->tokens.ids + s->tokens.count, ids, (size_t)n * sizeof *ids);
    if (s->options->offsets) {
        memset(s->tokens.offsets + 2 * s->tokens.count, 0, 2 * (size_t)n * sizeof *s->tokens.offsets);
        memset(s->tokens.special + s->tokens.count, special, (size_t)n * sizeof *s->tokens.special);
    }
    s->tokens.count += n;
}

void att_token_sink_add(att_token_sink *s, const int32_t *ids, int64_t n)
{
    int64_t room = s->limit - s->tokens.count;
    if (n > room)
        s->truncated = true;
    append(s, ids, att_min(n, room), false);
    s->full = s->tokens.count == s->limit;
}

void att_token_sink_add_at(att_token_sink *s, int32_t id, int64_t begin, int64_t end)
{
    const int64_t at = s->tokens.count;
    att_token_sink_add(s, &id, 1);
    if (s->tokens.count == at || !s->options->offsets)
        return;
    s->tokens.offsets[2 * at] = begin;
    s->tokens.offsets[2 * at + 1] = end;
}

static att_status check_encode(const att_tokenizer *t, const att_tokenize_options *o, int64_t special)
{
    if (o->max_tokens < 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, less than 0", (long long)o->max_tokens);
    if (o->max_tokens > 0 && o->max_tokens < special)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, but the special tokens alone are %lld",
                        (long long)o->max_tokens, (long long)special);
    return ATT_OK;
}

/* Returns the template of a text that stands alone, by these options. */
static const att_template *template_of(const att_tokenizer *t, const att_tokenize_options *o)
{
    static const att_template alone = {{ATT_TEXT_A}, {0}, 1};
    return o->no_special || t->single.count == 0 ? &alone : &t->single;
}

att_status att_tokenize_options_read(const att_tokenizer *t, const att_tokenize_options *opt, att_tokenize_options *out)
{
    const att_status s = att_options_read(out, sizeof *out, opt, "att_tokenize_options");
    return s ? s : check_encode(t, out, special_tokens(template_of(t, out)));
}

/* Encodes a text without special tokens around it, with at most `limit` tokens, and appends it to the sink. */
static void encode_text(att_token_sink *s, const char *text, size_t bytes, int64_t limit)
{
    s->limit = limit;
    s->full = s->tokens.count == limit;
    s->t->kind->encode(s, bytes > 0 ? text : "", bytes);
}

/* Removes the first tokens of a text, which begins at `first`, so that `limit` tokens are left in all. */
static void truncate_left(att_token_sink *s, int64_t first, int64_t limit)
{
    att_tokens *t = &s->tokens;
    const int64_t more = t->count - limit, rest = limit - first;
    if (more <= 0)
        return;
    memmove(t->ids + first, t->ids + first + more, (size_t)rest * sizeof *t->ids);
    if (t->offsets)
        memmove(t->offsets + 2 * first, t->offsets + 2 * (first + more), 2 * (size_t)rest * sizeof *t->offsets);
    t->count = limit;
    s->truncated = true;
}

static void sink_free(att_token_sink *s) { att_tokens_free(s->t->ctx, &s->tokens); }

att_status att_tokenize(const att_tokenizer *t, const char *text, size_t bytes, const att_tokenize_options *opt,
                        att_tokens *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_tokenize_options o;
    *out = (att_tokens){0};
    const att_status status = att_tokenize_options_read(t, opt, &o);
    if (status)
        return status;
    if (!text && bytes > 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_tokenize: text is NULL, but bytes is %zu", bytes);
    const att_template *p = template_of(t, &o);
    int64_t special = special_tokens(p);
    att_token_sink s = {.t = t, .options = &o};
    reserve(&s, 1); /* even an empty result has an array */
    for (int64_t i = 0; !s.status && i < p->count; i++)
        if (p->item[i] >= 0) {
            append(&s, &p->item[i], 1, true);
            special--;
        } else {
            const int64_t first = s.tokens.count, limit = o.max_tokens > 0 ? o.max_tokens - special : INT64_MAX;
            encode_text(&s, text, bytes, t->truncate_left ? INT64_MAX : limit);
            if (t->truncate_left && !s.status)
                truncate_left(&s, first, limit);
        }
    s.tokens.truncated = s.truncated;
    if (s.status)
        sink_free(&s);
    else
        *out = s.tokens;
    return s.status;
}

att_status att_encode_literals(const att_tokenizer *t, const char *text, size_t bytes, const att_literals *literal,
                               att_tokens *out)
{
    const att_tokenize_options o = {.size = sizeof o, .no_special = true};
    *out = (att_tokens){0};
    if (!t->kind->has_literals)
        return att_fail(t->ctx, ATT_ERR_UNSUPPORTED,
                        "this tokenizer cannot tell special tokens from text; one of tokenizer.json can");
    att_token_sink s = {.t = t, .options = &o, .literal = *literal};
    reserve(&s, 1);
    if (!s.status)
        encode_text(&s, text, bytes, INT64_MAX);
    if (s.status)
        sink_free(&s);
    else
        *out = s.tokens;
    return s.status;
}

/* ---- pairs */

/* Finds how many tokens of both texts are kept, of `room`: the longer one is truncated first (longest_first of
 * `transformers`). */
static void share_room(int64_t room, int64_t n[2])
{
    const int shorter = n[0] > n[1];
    int64_t *a = &n[shorter], *b = &n[!shorter];
    if (*a + *b <= room)
        return;
    *b = *a > room ? *a : att_max(*a, room - *a);
    if (*a + *b > room) {
        *a = room / 2;
        *b = *a + room % 2;
    }
}

/* Returns the first n tokens of a text, or the last ones. */
static att_tokens some_of(const att_tokens *all, int64_t n, bool last)
{
    att_tokens some = *all;
    const int64_t skipped = last ? all->count - n : 0;
    some.ids += skipped;
    if (some.offsets)
        some.offsets += 2 * skipped;
    return some;
}

/* Appends n tokens of a text, or a special token, with their type. */
static void append_part(att_token_sink *s, const att_tokens *from, int64_t n, bool special, int32_t type,
                        size_t *capacity)
{
    const int64_t at = s->tokens.count;
    append(s, from->ids, n, special);
    att_status e = att_grow(s->t->ctx, &s->tokens.type_ids, sizeof type, (size_t)at, (size_t)n, capacity);
    if (e)
        att_token_sink_fail(s, e);
    for (int64_t i = 0; !s->status && i < n; i++)
        s->tokens.type_ids[at + i] = type;
    if (!s->status && from->offsets)
        memcpy(s->tokens.offsets + 2 * at, from->offsets, 2 * (size_t)n * sizeof *from->offsets);
}

static void join_pair(att_token_sink *s, const att_template *p, const att_tokens *const part[2])
{
    const int64_t max = s->options->max_tokens;
    int64_t n[2] = {part[0]->count, part[1]->count};
    size_t capacity = 0;
    if (max > 0)
        share_room(max - special_tokens(p), n);
    s->limit = INT64_MAX;
    s->truncated = n[0] < part[0]->count || n[1] < part[1]->count;
    s->tokens.unknown = part[0]->unknown || part[1]->unknown;
    for (int64_t i = 0; i < p->count; i++) {
        int32_t special = p->item[i];
        const int text = special == ATT_TEXT_B;
        if (special >= 0)
            append_part(s, &(att_tokens){.ids = &special, .count = 1}, 1, true, p->type[i], &capacity);
        else {
            const att_tokens some = some_of(part[text], n[text], s->t->truncate_left);
            append_part(s, &some, n[text], false, p->type[i], &capacity);
        }
    }
}

/* Where two texts stand, by these options. */
static const att_template *template_of_pair(const att_tokenizer *t, const att_tokenize_options *o)
{
    static const att_template alone = {{ATT_TEXT_A, ATT_TEXT_B}, {0, 1}, 2};
    const att_template *p = o->no_special ? &t->plain_pair : &t->pair;
    return p->count ? p : &alone;
}

/* Joins tokens of both texts in a sink, which is freed after an error and otherwise becomes *out. */
static att_status finish_pair(att_token_sink *s, const att_tokens *a, const att_tokens *b, att_tokens *out)
{
    reserve(s, 1);
    if (!s->status)
        join_pair(s, template_of_pair(s->t, s->options), (const att_tokens *const[]){a, b});
    s->tokens.truncated = s->truncated;
    if (s->status)
        sink_free(s);
    else
        *out = s->tokens;
    return s->status;
}

att_status att_tokens_join(const att_tokenizer *t, const att_tokens *a, const att_tokens *b,
                           const att_tokenize_options *opt, att_tokens *out)
{
    att_token_sink s = {.t = t, .options = opt};
    *out = (att_tokens){0};
    const att_status status = check_encode(t, opt, special_tokens(template_of_pair(t, opt)));
    return status ? status : finish_pair(&s, a, b, out);
}

att_status att_tokenize_pair(const att_tokenizer *t, const char *a, size_t a_bytes, const char *b, size_t b_bytes,
                             const att_tokenize_options *opt, att_tokens *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_tokenize_options o;
    *out = (att_tokens){0};
    att_status status = att_options_read(&o, sizeof o, opt, "att_tokenize_options");
    if (status)
        return status;
    if ((!a && a_bytes > 0) || (!b && b_bytes > 0))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_tokenize_pair: %s is NULL, but %s_bytes is %zu", a ? "b" : "a",
                        a ? "b" : "a", a ? b_bytes : a_bytes);
    if ((status = check_encode(t, &o, special_tokens(template_of_pair(t, &o)))))
        return status;
    att_token_sink s = {.t = t, .options = &o}, part[2] = {s, s};
    encode_text(&part[0], a, a_bytes, INT64_MAX);
    encode_text(&part[1], b, b_bytes, INT64_MAX);
    for (int i = 0; i < 2; i++)
        if (part[i].status)
            att_token_sink_fail(&s, part[i].status);
    status = s.status ? s.status : finish_pair(&s, &part[0].tokens, &part[1].tokens, out);
    sink_free(&part[0]);
    sink_free(&part[1]);
    return status;
}

void att_tokens_free(att_ctx *ctx, att_tokens *tokens)
{
    if (!ctx || !tokens)
        return;
    att_free(ctx, tokens->ids);
    att_free(ctx, tokens->offsets);
    att_free(ctx, tokens->special);
    att_free(ctx, tokens->type_ids);
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

void att_text_free(att_ctx *ctx, att_text *text)
{
    if (!ctx || !text)
        return;
    att_free(ctx, text->text);
    *text = (att_text){0};
}
