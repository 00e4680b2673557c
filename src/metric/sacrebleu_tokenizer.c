#include "metric/sacrebleu_tokenizer.h"

#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Returns whether a character is a space, like str.isspace of Python. */
bool att_is_space(uint32_t c)
{
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    return p->category == UTF8PROC_CATEGORY_ZS || p->bidi_class == UTF8PROC_BIDI_CLASS_WS ||
           p->bidi_class == UTF8PROC_BIDI_CLASS_B || p->bidi_class == UTF8PROC_BIDI_CLASS_S;
}

att_status att_code_points_read(att_ctx *ctx, att_byte_view text, att_code_points *out)
{
    *out = (att_code_points){.c = att_alloc(ctx, text.bytes, sizeof *out->c)};
    if (!out->c)
        return ATT_ERR_MEMORY;
    for (size_t i = 0; i < text.bytes; out->n++)
        i += att_utf8_decode(text.data + i, text.bytes - i, &out->c[out->n]);
    return ATT_OK;
}

/* ---- 13a: first, some strings are replaced, in this order */

static bool begins(const uint32_t *c, size_t n, const char *word)
{
    size_t i = 0;
    while (word[i] && i < n && c[i] == (unsigned char)word[i])
        i++;
    return !word[i];
}

/* Replaces all occurrences of `from`; `to` must not be longer. */
static void replace(att_code_points *t, const char *from, const char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n;) {
        if (!begins(t->c + i, t->n - i, from)) {
            t->c[n++] = t->c[i++];
            continue;
        }
        for (const char *p = to; *p; p++)
            t->c[n++] = (unsigned char)*p;
        i += strlen(from);
    }
    t->n = n;
}

static void unescape(att_code_points *t)
{
    static const char *const pairs[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                           {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        replace(t, pairs[i][0], pairs[i][1]);
}

/* ---- then, spaces are inserted around characters, in four passes over the result of the previous one */

static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool is_no_digit(uint32_t c) { return !is_digit(c); }
static bool is_stop(uint32_t c) { return c == '.' || c == ','; }
static bool is_dash(uint32_t c) { return c == '-'; }

/* ASCII punctuation except ' , - . (handled by later passes), and the space. */
static bool is_symbol(uint32_t c)
{
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* A pair of adjacent characters that match two predicates: spaces are inserted around one of them. */
typedef struct pass {
    bool (*first)(uint32_t), (*second)(uint32_t); /* second NULL: a single character */
    int apart;                                    /* 0: around the first, 1: around the second */
} pass;

static const pass passes[] = {
    {is_symbol, NULL, 0},
    {is_no_digit, is_stop, 1},
    {is_stop, is_no_digit, 0},
    {is_digit, is_dash, 1},
};
/* A pass inserts two spaces per character, and at most two passes match a character. */
enum { MAX_GROWTH = 5 };

/* Applies a pass to from [n]; returns the length of `to`. Matches do not overlap. */
static size_t separate(const pass *p, const uint32_t *from, size_t n, uint32_t *to)
{
    const size_t width = p->second ? 2 : 1;
    uint32_t *end = to;
    for (size_t i = 0; i < n;) {
        if (i + width > n || !p->first(from[i]) || (p->second && !p->second(from[i + 1]))) {
            *end++ = from[i++];
            continue;
        }
        for (size_t k = 0; k < width; k++, i++) {
            const bool apart = (int)k == p->apart;
            if (apart)
                *end++ = ' ';
            *end++ = from[i];
            if (apart)
                *end++ = ' ';
        }
    }
    return (size_t)(end - to);
}

att_status att_tokenize_13a(att_ctx *ctx, att_code_points *t)
{
    while (t->n > 0 && att_is_space(t->c[t->n - 1]))
        t->n--;
    unescape(t);
    const size_t room = MAX_GROWTH * (t->n + 2);
    uint32_t *a = att_alloc(ctx, room, sizeof *a), *b = att_alloc(ctx, room, sizeof *b);
    if (!a || !b) {
        att_free(ctx, a);
        att_free(ctx, b);
        return ATT_ERR_MEMORY;
    }
    size_t n = t->n + 2;
    a[0] = a[n - 1] = ' ';
    memcpy(a + 1, t->c, t->n * sizeof *a);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        n = separate(&passes[i], a, n, b);
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    att_free(ctx, t->c);
    att_free(ctx, b);
    *t = (att_code_points){a, n};
    return ATT_OK;
}
