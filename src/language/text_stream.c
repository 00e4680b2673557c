/* A decoder may treat the first token differently (it strips its space), and a character may consist of several tokens.
 * Therefore the text of new tokens is decoded together with a few tokens before them, and the text of those is removed.
 * It is complete unless it ends in U+FFFD, which decoders write for an incomplete character. */
#include "language/text_stream.h"

#include <string.h>

enum { MAX_HELD = 16 }; /* tokens without a whole character, after which the text really is U+FFFD */

static int64_t window_count(const att_text_stream *s) { return (int64_t)(s->window.count / sizeof(int32_t)); }

static void add_to_window(att_text_stream *s, int32_t id)
{
    if (id >= 0 && id < att_tokenizer_size(s->tokenizer)) /* models have ids that no token has */
        att_bytes_add(&s->window, &id, sizeof id);
}

void att_text_stream_begin(att_text_stream *s, att_ctx *ctx, const att_tokenizer *t, const int32_t *ids, int64_t n)
{
    s->tokenizer = t;
    s->text.ctx = s->window.ctx = ctx;
    for (int64_t i = n > ATT_STREAM_CONTEXT ? n - ATT_STREAM_CONTEXT : 0; i < n; i++)
        add_to_window(s, ids[i]);
    s->decoded = window_count(s);
}

void att_text_stream_free(att_text_stream *s)
{
    att_bytes_free(&s->text);
    att_bytes_free(&s->window);
}

/* ---- text */

static att_status decode(const att_text_stream *s, int64_t n, att_text *out)
{
    return att_detokenize(s->tokenizer, (const int32_t *)(const void *)s->window.data, n, out);
}

static bool ends_in_replacement(const att_text *t)
{
    return t->bytes >= 3 && memcmp(t->text + t->bytes - 3, "\xEF\xBF\xBD", 3) == 0;
}

/* Returns the beginning of the new tokens' text in `all`: the end of `before`, but before a character that is whole
 * only now. */
static size_t begin_of_new(const att_text *before, const att_text *all)
{
    size_t at = before->bytes;
    if (ends_in_replacement(before) && (all->bytes < at || memcmp(before->text, all->text, at) != 0))
        at -= 3;
    at = at < all->bytes ? at : all->bytes;
    while (at < all->bytes && ((unsigned char)all->text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

/* Forgets the tokens before the last ones that have text. */
static void move_window(att_text_stream *s)
{
    const int64_t count = window_count(s);
    memmove(s->window.data, s->window.data + (size_t)s->decoded * sizeof(int32_t),
            (size_t)(count - s->decoded) * sizeof(int32_t));
    s->window.count -= (size_t)s->decoded * sizeof(int32_t);
    s->decoded = count - s->decoded;
}

static att_status add_text(att_text_stream *s, bool last)
{
    const int64_t count = window_count(s);
    att_text before = {0}, all = {0};
    if (count == s->decoded)
        return ATT_OK;
    att_status e = decode(s, s->decoded, &before);
    e = e ? e : decode(s, count, &all);
    if (!e && (last || count - s->decoded > MAX_HELD || !ends_in_replacement(&all))) {
        const size_t from = begin_of_new(&before, &all);
        att_bytes_add(&s->text, all.text + from, all.bytes - from);
        e = s->text.status;
        if (all.bytes > from)
            move_window(s);
    }
    att_text_free(s->text.ctx, &before);
    att_text_free(s->text.ctx, &all);
    return e;
}

/* ---- stop strings */

/* Ends the text before the first stop string in the text that was not delivered. */
static void find_stop(att_text_stream *s)
{
    for (size_t at = s->sent; at < s->text.count && !s->stopped; at++)
        for (int64_t i = 0; i < s->n_stop && !s->stopped; i++) {
            const size_t n = strlen(s->stop[i]);
            if (n <= s->text.count - at && memcmp(s->text.data + at, s->stop[i], n) == 0) {
                s->text.count = at;
                s->stopped = true;
            }
        }
}

/* Returns the number of bytes at the end of the text that may be the beginning of a stop string. */
static size_t begun_stop(const att_text_stream *s)
{
    const size_t max = s->text.count - s->sent;
    size_t longest = 0;
    for (int64_t i = 0; i < s->n_stop; i++)
        for (size_t n = strlen(s->stop[i]) - 1; n > longest; n--)
            if (n <= max && memcmp(s->text.data + s->text.count - n, s->stop[i], n) == 0)
                longest = n;
    return longest;
}

att_status att_text_stream_add(att_text_stream *s, int32_t id, bool last)
{
    add_to_window(s, id);
    att_status e = s->window.status ? s->window.status : add_text(s, last);
    if (e)
        return e;
    find_stop(s);
    s->ready = s->text.count;
    if (!last && !s->stopped)
        s->ready -= begun_stop(s);
    return ATT_OK;
}
