/* Writes the field of Unicode normalization form NFKC, as the rules of a SentencePiece model, from utf8proc. */
#include "text/charsmap.h"

#include <string.h>
#include <utf8proc.h>

#include "text/utf8.h"

enum { LONGEST = 32, LAST = 0x10FFFF }; /* no character expands to more than 18 */

typedef struct text {
    char utf8[4 * LONGEST];
    size_t bytes;
} text;

typedef struct rules {
    att_bytes texts, rules; /* att_rule[] */
} rules;

static text encode(const utf8proc_int32_t *c, utf8proc_ssize_t n)
{
    text t = {.bytes = 0};
    for (utf8proc_ssize_t i = 0; i < n; i++)
        t.bytes += att_utf8_encode((uint32_t)c[i], t.utf8 + t.bytes);
    return t;
}

/* Composes c [n], which has space for LONGEST; returns the new length. */
static utf8proc_ssize_t compose(utf8proc_int32_t *c, utf8proc_ssize_t n)
{
    return utf8proc_normalize_utf32(c, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
}

/* Writes the full decomposition of a character, canonical or (COMPAT) compatibility; returns its length. */
static utf8proc_ssize_t decompose(utf8proc_int32_t c, int options, utf8proc_int32_t out[LONGEST])
{
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, out, LONGEST, (utf8proc_option_t)options, &boundary);
    return n > 0 && n <= LONGEST ? n : 0;
}

static void add(rules *r, text key, text to)
{
    const att_rule one = {r->texts.count, key.bytes, to.bytes};
    att_bytes_add(&r->texts, key.utf8, key.bytes);
    att_bytes_add(&r->texts, to.utf8, to.bytes);
    att_bytes_add(&r->rules, &one, sizeof one);
}

static bool is_same(text a, text b) { return a.bytes == b.bytes && memcmp(a.utf8, b.utf8, a.bytes) == 0; }

static bool is_space(utf8proc_int32_t c, utf8proc_category_t category)
{
    return (c >= '\t' && c <= '\r') || c == 0x85 || c == 0x200B || c == 0xFEFF || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* Adds rules for all spellings of c as several characters. */
static void add_sequences(rules *r, utf8proc_int32_t c, text to)
{
    utf8proc_int32_t whole[LONGEST], part[LONGEST];
    const utf8proc_ssize_t n = decompose(c, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, whole);
    if (n < 2)
        return;
    memcpy(part, whole, sizeof part);
    if (compose(part, n) != 1)
        return; /* excluded from composition */
    add(r, encode(whole, n), to);
    memcpy(part, whole, sizeof part);
    const utf8proc_ssize_t before = n > 2 ? compose(part, n - 1) : 0; /* all but the last mark */
    if (before > 0 && before < n - 1) {
        part[before] = whole[n - 1];
        add(r, encode(part, before + 1), to);
    }
}

static void add_character(rules *r, utf8proc_int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    const text self = encode(&c, 1);
    text to = self;
    if (category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CO)
        return;
    if (is_space(c, category)) {
        to = (text){" ", 1};
    } else if (category == UTF8PROC_CATEGORY_CC) {
        to.bytes = 0;
    } else {
        utf8proc_int32_t all[LONGEST];
        const utf8proc_ssize_t n = decompose(c, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_STABLE, all);
        to = encode(all, compose(all, n));
    }
    if (!is_same(self, to))
        add(r, self, to);
    add_sequences(r, c, to);
}

att_status att_nfkc_write(att_bytes *out)
{
    rules r = {.texts.ctx = out->ctx, .rules.ctx = out->ctx};
    for (utf8proc_int32_t c = 1; c <= LAST; c++)
        add_character(&r, c);
    const att_rule *all = (const att_rule *)(const void *)r.rules.data;
    att_status s = r.texts.status ? r.texts.status : r.rules.status;
    s = s ? s : att_charsmap_write(out, r.texts.data, all, r.rules.count / sizeof *all);
    att_bytes_free(&r.texts);
    att_bytes_free(&r.rules);
    return s;
}
