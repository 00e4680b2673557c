#include "text/tokenizer.h"

#include <string.h>

void att_tokenizer_free(att_tokenizer *t)
{
    if (!t)
        return;
    att_vocabulary_free(&t->vocabulary);
    att_free(t->ctx, t->added);
    att_free(t->ctx, t);
}

int64_t att_tokenizer_size(const att_tokenizer *t) { return t->vocabulary.size; }

const char *att_tokenizer_token(const att_tokenizer *t, int32_t id) { return att_vocabulary_get(&t->vocabulary, id); }

/* ---- encoding */

typedef struct encoder {
    const att_tokenizer *t;
    int64_t limit; /* tokens of the text itself */
    int64_t capacity;
    att_tokens tokens;
    att_status status;
    att_words words;
} encoder;

/* Makes room for `more` tokens. */
static bool reserve(encoder *e, int64_t more)
{
    int64_t need = e->tokens.count + more;
    if (need <= e->capacity)
        return true;
    int64_t capacity = need < 32 ? 64 : 2 * need;
    int32_t *ids = att_alloc(e->t->ctx, (size_t)capacity, sizeof *ids);
    if (!ids) {
        e->status = ATT_ERR_MEMORY;
        return false;
    }
    if (e->tokens.count > 0)
        memcpy(ids, e->tokens.ids, (size_t)e->tokens.count * sizeof *ids);
    att_free(e->t->ctx, e->tokens.ids);
    e->tokens.ids = ids;
    e->capacity = capacity;
    return true;
}

static void append(encoder *e, const int32_t *ids, int64_t n)
{
    if (n == 0 || !reserve(e, n))
        return;
    memcpy(e->tokens.ids + e->tokens.count, ids, (size_t)n * sizeof *ids);
    e->tokens.count += n;
}

/* The same for tokens of the text, which are limited. */
static void append_text(encoder *e, const int32_t *ids, int64_t n)
{
    int64_t room = e->limit - e->tokens.count;
    if (n > room)
        e->words.cut = true;
    append(e, ids, n < room ? n : room);
    e->words.full = e->tokens.count == e->limit;
    if (e->status != ATT_OK)
        e->words.cut = true;
}

static void on_word(void *user, const char *word, size_t bytes, bool too_long)
{
    encoder *e = user;
    int32_t ids[4 * ATT_MAX_WORD];
    int n = 1;
    if (too_long)
        ids[0] = e->t->vocabulary.unknown;
    else
        n = att_wordpiece(&e->t->vocabulary, word, bytes, ids);
    append_text(e, ids, n);
}

/* The first of the tokens [first, end) whose byte i is at least this; all are sorted, equal up to i, and longer. */
static const att_added_token *first_from(const att_added_token *first, const att_added_token *end, size_t i, int byte)
{
    while (first < end) {
        const att_added_token *middle = first + (end - first) / 2;
        if ((unsigned char)middle->text[i] < byte)
            first = middle + 1;
        else
            end = middle;
    }
    return end;
}

/* The longest added token at the start of s[bytes]; NULL: none. Byte by byte, those are left that begin as s does. */
static const att_added_token *find_added(const att_tokenizer *t, const char *s, size_t bytes)
{
    const att_added_token *first = t->added, *end = first + t->n_added, *longest = NULL;
    for (size_t i = 0; first < end; i++) {
        for (; first < end && first->bytes == i; first++)
            longest = first;
        if (i == bytes)
            break;
        const int byte = (unsigned char)s[i];
        first = first_from(first, end, i, byte);
        end = first_from(first, end, i, byte + 1);
    }
    return longest;
}

static void encode_text(encoder *e, const char *text, size_t bytes)
{
    const att_tokenizer *t = e->t;
    att_words *w = &e->words;
    const unsigned char *s = (const unsigned char *)(bytes > 0 ? text : "");
    size_t i = 0;
    while (!w->cut && (i += att_words_run(w, s + i, bytes - i, t->begins_added)) < bytes && !w->cut) {
        const att_added_token *a = find_added(t, text + i, bytes - i);
        if (!a) {
            i += att_words_take(w, s + i, bytes - i);
            continue;
        }
        att_words_end(w);
        if (!w->cut)
            append_text(e, &a->id, 1);
        i += a->bytes;
    }
    if (!w->cut)
        att_words_end(w);
}

att_status att_encode(const att_tokenizer *t, const char *text, size_t bytes, const att_encode_options *opt,
                      att_tokens *out)
{
    att_encode_options o;
    *out = (att_tokens){0};
    const att_status s = att_take_options(&o, sizeof o, opt, "att_encode_options");
    if (s)
        return s;
    if (!text && bytes > 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_encode: text is NULL, but bytes is %zu", bytes);
    const bool special = !o.no_special;
    const int64_t max_tokens = o.max_tokens, n_special = special ? t->n_before + t->n_after : 0;
    if (max_tokens < 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, less than 0", (long long)max_tokens);
    if (max_tokens > 0 && max_tokens < n_special)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "max_tokens is %lld, but the special tokens alone are %lld",
                        (long long)max_tokens, (long long)n_special);

    encoder e; /* not zeroed: its buffers are large */
    e.t = t;
    e.limit = max_tokens > 0 ? max_tokens - (special ? t->n_after : 0) : INT64_MAX;
    e.capacity = 0;
    e.tokens = (att_tokens){0};
    e.status = ATT_OK;
    att_words_init(&e.words, &t->settings, on_word, &e);
    if (!reserve(&e, 1)) /* an empty text has ids as well, though none in them */
        return e.status;
    if (special)
        append(&e, t->special, t->n_before);
    e.words.full = e.tokens.count == e.limit;
    encode_text(&e, text, bytes);
    e.tokens.truncated = e.words.cut;
    if (special)
        append(&e, t->special + t->n_before, t->n_after);
    if (e.status != ATT_OK) {
        att_free(t->ctx, e.tokens.ids);
        return e.status;
    }
    *out = e.tokens;
    return ATT_OK;
}

void att_tokens_free(const att_tokenizer *t, att_tokens *tokens)
{
    att_free(t->ctx, tokens->ids);
    *tokens = (att_tokens){0};
}
