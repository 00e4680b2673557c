#include "text/bert_normalizer.h"

#include "text/unicode_v8.h"
#include "text/utf8.h"

void att_bert_normalizer_init(att_bert_normalizer *w, const att_bert_settings *settings,
                              void (*emit)(void *user, const char *word, size_t bytes, bool too_long), void *user)
{
    w->settings = settings;
    w->emit = emit;
    w->user = user;
    w->full = w->truncated = false;
    w->n_pending = w->chars = 0;
    w->bytes = 0;
}

/* ---- splitting normalized characters into words */

static void end_word(att_bert_normalizer *w)
{
    if (w->chars > 0)
        w->emit(w->user, w->word, w->bytes, w->chars > w->settings->max_word);
    w->chars = 0;
    w->bytes = 0;
}

static void append(att_bert_normalizer *w, uint32_t c)
{
    if (w->chars == 0 && w->full)
        w->truncated = true;
    if (w->truncated || w->chars > w->settings->max_word)
        return;
    if (w->chars++ < w->settings->max_word)
        w->bytes += att_utf8_encode(c, w->word + w->bytes);
}

static void split(att_bert_normalizer *w, uint32_t c)
{
    unsigned class = att_char_class(c);
    if (class & (ATT_CHAR_SPACE | ATT_CHAR_PUNCTUATION))
        end_word(w);
    if (class & ATT_CHAR_SPACE)
        return;
    append(w, c);
    if (class & ATT_CHAR_PUNCTUATION)
        end_word(w);
}

/* ---- normalization */

static void lower(att_bert_normalizer *w, uint32_t c)
{
    uint32_t low[2] = {c};
    int n = w->settings->lowercase ? att_char_lower(c, low) : 1;
    for (int i = 0; i < n; i++)
        split(w, low[i]);
}

static void flush_pending(att_bert_normalizer *w)
{
    for (int i = 0; i < w->n_pending; i++)
        lower(w, w->pending[i]);
    w->n_pending = 0;
}

/* Inserts a mark in canonical order (Unicode 15, section 3.11): marks between starters are sorted by combining class,
 * stably. Marks that will be removed need not be sorted. If there are more marks than a word may have, the order has no
 * effect. */
static void insert_mark(att_bert_normalizer *w, uint32_t c, int class)
{
    if (w->n_pending > w->settings->max_word)
        return;
    int i = w->n_pending++;
    for (; i > 0 && att_char_combining(w->pending[i - 1]) > class; i--)
        w->pending[i] = w->pending[i - 1];
    w->pending[i] = c;
}

static void strip(att_bert_normalizer *w, uint32_t c)
{
    uint32_t part[ATT_MAX_DECOMPOSITION];
    int n = att_char_decompose(c, part);
    for (int i = 0; i < n; i++) {
        int class = att_char_combining(part[i]);
        bool removed = att_char_class(part[i]) & ATT_CHAR_MARK;
        if (class == 0)
            flush_pending(w);
        if (class == 0 && !removed)
            lower(w, part[i]);
        else if (!removed)
            insert_mark(w, part[i], class);
    }
}

static void normalize(att_bert_normalizer *w, uint32_t c)
{
    const att_bert_settings *s = w->settings;
    unsigned class = att_char_class(c);
    if (s->clean_text && class & ATT_CHAR_REMOVED)
        return;
    bool alone = s->handle_chinese_chars && class & ATT_CHAR_CJK;
    if (alone || class & ATT_CHAR_SPACE)
        att_bert_normalizer_end(w);
    if (class & ATT_CHAR_SPACE)
        return;
    if (s->strip_accents)
        strip(w, c);
    else
        lower(w, c);
    if (alone)
        att_bert_normalizer_end(w);
}

/* ---- input */

void att_bert_normalizer_end(att_bert_normalizer *w)
{
    flush_pending(w);
    end_word(w);
}

size_t att_bert_normalizer_step(att_bert_normalizer *w, const unsigned char *s, size_t bytes)
{
    unsigned char c = s[0];
    bool capital = c >= 'A' && c <= 'Z';
    if (capital || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) { /* fast path: all steps at once */
        flush_pending(w);
        append(w, capital && w->settings->lowercase ? c + ('a' - 'A') : c);
        return 1;
    }
    uint32_t code;
    size_t n = att_utf8_decode((const char *)s, bytes, &code);
    normalize(w, code);
    return n;
}

size_t att_bert_normalizer_run(att_bert_normalizer *w, const unsigned char *s, size_t bytes, const bool pause[256])
{
    size_t i = 0;
    while (i < bytes && !w->truncated && !pause[s[i]])
        i += att_bert_normalizer_step(w, s + i, bytes - i);
    return i;
}
