/* Unicode normalization forms. Each character keeps track of its origin, as in the `tokenizers` package: the first
 * character of a decomposition replaces the old one and the others are new; a composition replaces all its parts. */
#include <string.h>

#include <utf8proc.h>

#include "text/pipeline/step.h"
#include "text/unicode_v8.h"

enum { MAX_EXPANSION = 18, FIRST_MARK = 0x300, CLASSES = 256, SHORT_RUN = 32 };

typedef struct form_char {
    uint32_t c;
    int change; /* 1: a new character; 0: replaces one; -n: replaces one and n more */
    int class;  /* canonical combining class */
} form_char;

static int combining_class(uint32_t c) { return c < FIRST_MARK ? 0 : att_char_combining(c); }

/* Returns whether a character's decomposition is newer than the package's tables (Unicode 9). That of U+11938 is
 * canonical, and NFKC composes it again. */
static bool is_young(uint32_t c)
{
    return c == 0x32FF || (c >= 0xA7F2 && c <= 0xA7F4) || c == 0xAB69 || (c >= 0x10781 && c <= 0x107BA) ||
           c == 0x11938 || (c >= 0x1E030 && c <= 0x1E06D) || c == 0x1F16C || (c >= 0x1FBF0 && c <= 0x1FBF9);
}

static size_t decompose(uint32_t c, bool compatibly, uint32_t out[MAX_EXPANSION])
{
    if (!compatibly)
        return (size_t)att_char_decompose(c, out);
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, (utf8proc_int32_t *)out, MAX_EXPANSION,
                                                       UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    if (n >= 1 && n <= MAX_EXPANSION && !is_young(c))
        return (size_t)n;
    out[0] = c;
    return 1;
}

/* Returns the composition of two characters; 0: there is none. utf8proc loses U+11A7 after a syllable, although it is
 * not a trailing consonant. */
static uint32_t compose(uint32_t a, form_char b)
{
    const bool may = b.class > 0 || (b.c >= 0x900 && b.c < 0x1200) || b.c == 0x1B35 || b.c >= 0x11000;
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b.c};
    if (!may || b.c == 0x11A7 || utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1)
        return 0;
    uint32_t parts[ATT_MAX_DECOMPOSITION]; /* none: it is newer than the package's tables */
    return att_char_decompose((uint32_t)pair[0], parts) > 1 ? (uint32_t)pair[0] : 0;
}

/* Sorts marks x [n] by class, stably. Runs are usually short; a long run, which only crafted texts have, is sorted by
 * counting. */
static void sort_run(form_char *x, size_t n, att_bytes *chars)
{
    if (n <= SHORT_RUN) {
        for (size_t i = 1; i < n; i++) {
            const form_char one = x[i];
            size_t k = i;
            for (; k > 0 && x[k - 1].class > one.class; k--)
                x[k] = x[k - 1];
            x[k] = one;
        }
        return;
    }
    size_t first[CLASSES + 1] = {0}; /* where the marks of a class begin */
    form_char *unsorted = att_alloc(chars->ctx, n, sizeof *unsorted);
    if (!unsorted) {
        chars->status = ATT_ERR_MEMORY;
        return;
    }
    memcpy(unsorted, x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        first[x[i].class + 1]++;
    for (size_t class = 0; class < CLASSES; class ++)
        first[class + 1] += first[class];
    for (size_t i = 0; i < n; i++)
        x[first[unsorted[i].class]++] = unsorted[i];
    att_free(chars->ctx, unsorted);
}

static form_char *chars_of(const att_bytes *chars) { return (form_char *)(void *)chars->data; }

/* Returns the piece as an array of characters, each decomposed, and marks in canonical order. */
static size_t decompose_all(att_edit e, bool compatibly, att_bytes *chars)
{
    size_t n = 0, run = 0; /* run: first character after the last starter */
    for (uint32_t c; e.at < e.bytes;) {
        uint32_t parts[MAX_EXPANSION];
        e.at += att_edit_peek(&e, &c);
        const size_t count = decompose(c, compatibly, parts);
        for (size_t i = 0; i < count; i++) {
            const form_char x = {parts[i], i > 0, combining_class(parts[i])};
            if (x.class == 0) {
                if (n > run)
                    sort_run(chars_of(chars) + run, n - run, chars);
                run = n + 1;
            }
            att_bytes_add(chars, &x, sizeof x);
            n++;
            if (chars->status)
                return 0;
        }
    }
    if (n > run)
        sort_run(chars_of(chars) + run, n - run, chars);
    return chars->status ? 0 : n;
}

/* Composes in place; returns the new number. A mark is blocked from the starter by a mark of at least its class.
 */
static size_t compose_all(form_char *x, size_t n)
{
    size_t kept = 0, starter = SIZE_MAX;
    int last = 0; /* class of the preceding mark that has not been composed with the starter */
    for (size_t i = 0; i < n; i++) {
        const form_char one = x[i];
        const bool blocked = starter == SIZE_MAX || (last > 0 && last >= one.class);
        const uint32_t c = blocked ? 0 : compose(x[starter].c, one);
        if (c) {
            x[starter].c = c;
            x[starter].change += one.change - 1;
            continue;
        }
        if (one.class == 0)
            starter = kept;
        last = one.class;
        x[kept++] = one;
    }
    return kept;
}

void att_rewrite_form(int form, att_edit *e)
{
    const bool compatibly = form == ATT_NFKC || form == ATT_NFKD, composes = form == ATT_NFC || form == ATT_NFKC;
    const unsigned char first_changed = compatibly || !composes ? 0xC2 : 0xCC; /* lead bytes of U+0080, U+0300 */
    size_t same = 0;
    while (same < e->bytes && (unsigned char)e->s[same] < first_changed)
        same++;
    if (same == e->bytes) {
        att_edit_copy(e, e->bytes);
        return;
    }
    att_bytes chars = {.ctx = e->to->text.ctx};
    size_t n = decompose_all(*e, compatibly, &chars);
    form_char *x = chars_of(&chars);
    if (composes)
        n = compose_all(x, n);
    for (size_t i = 0; i < n; i++)
        if (x[i].change > 0)
            att_edit_insert(e, x[i].c);
        else
            att_edit_replace(e, x[i].c, (size_t)-x[i].change);
    if (chars.status)
        e->to->text.status = chars.status;
    att_bytes_free(&chars);
}
