/* Normalizers: each rewrites the text piece by piece. */
#include <string.h>

#include <utf8proc.h>

#include "text/base64.h"
#include "text/pipeline/step.h"
#include "text/pipeline/unicode_v16.h"
#include "text/unicode_v8.h"
#include "text/utf8.h"

/* ---- from characters to characters */

/* Writes each character c for which keep(c) is true, and removes the others, which count as part of the character
 * before. */
static void keep_only(att_edit *e, bool (*keep)(uint32_t c))
{
    uint32_t c, next;
    while (e->at < e->bytes && (att_edit_peek(e, &c), !keep(c)))
        att_edit_skip(e, 1);
    while (e->at < e->bytes) {
        size_t removed = 0;
        att_edit_peek(e, &c);
        for (att_edit ahead = *e; att_edit_skip(&ahead, 1), ahead.at < ahead.bytes; removed++)
            if (att_edit_peek(&ahead, &next), keep(next))
                break;
        att_edit_replace(e, c, removed);
    }
}

static bool is_no_accent(uint32_t c) { return !att_char_is_accent(c); }
static bool is_no_nonspacing_mark(uint32_t c) { return !(att_char_class(c) & ATT_CHAR_MARK); }
static bool is_not_removed(uint32_t c) { return !(att_char_class(c) & ATT_CHAR_REMOVED); }
static bool is_no_nmt_control(uint32_t c)
{
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F);
}

static void rewrite_strip_accents(const void *step, att_edit *e)
{
    (void)step;
    keep_only(e, is_no_accent);
}

static void rewrite_lowercase(const void *step, att_edit *e)
{
    (void)step;
    for (uint32_t c, lower[2]; e->at < e->bytes;) {
        att_edit_peek(e, &c);
        const int n = att_char_lower(c, lower);
        att_edit_replace(e, lower[0], 0);
        if (n > 1)
            att_edit_insert(e, lower[1]);
    }
}

static void rewrite_form(const void *step, att_edit *e) { att_rewrite_form(((const att_step *)step)->form, e); }

/* Writes every space (is_space) as U+0020. */
static void write_spaces(att_edit *e, bool (*is_space)(uint32_t c))
{
    for (uint32_t c; e->at < e->bytes;) {
        att_edit_peek(e, &c);
        att_edit_replace(e, is_space(c) ? ' ' : c, 0);
    }
}

static void rewrite_nmt_controls(const void *step, att_edit *e)
{
    (void)step;
    keep_only(e, is_no_nmt_control);
}

static bool is_nmt_space(uint32_t c)
{
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static void rewrite_nmt_spaces(const void *step, att_edit *e)
{
    (void)step;
    write_spaces(e, is_nmt_space);
}

static void apply_nmt(const att_step *s, att_pieces *p)
{
    att_pieces_rewrite(p, rewrite_nmt_controls, s);
    att_pieces_rewrite(p, rewrite_nmt_spaces, s);
}

/* ---- BertNormalizer, as five rewritings */

static void rewrite_removed(const void *step, att_edit *e)
{
    (void)step;
    keep_only(e, is_not_removed);
}

static bool is_bert_space(uint32_t c) { return att_char_class(c) & ATT_CHAR_SPACE; }

static void rewrite_spaces(const void *step, att_edit *e)
{
    (void)step;
    write_spaces(e, is_bert_space);
}

static void rewrite_ideographs(const void *step, att_edit *e)
{
    (void)step;
    for (uint32_t c; e->at < e->bytes;) {
        att_edit_peek(e, &c);
        const bool is = att_char_class(c) & ATT_CHAR_CJK;
        att_edit_replace(e, is ? ' ' : c, 0);
        if (is) {
            att_edit_insert(e, c);
            att_edit_insert(e, ' ');
        }
    }
}

static void rewrite_nfd(const void *step, att_edit *e)
{
    (void)step;
    att_rewrite_form(ATT_NFD, e);
}

static void rewrite_nonspacing_marks(const void *step, att_edit *e)
{
    (void)step;
    keep_only(e, is_no_nonspacing_mark);
}

static void apply_bert(const att_step *s, att_pieces *p)
{
    const struct {
        bool wanted;
        void (*rewrite)(const void *step, att_edit *e);
    } parts[] = {{s->clean, rewrite_removed},
                 {s->clean, rewrite_spaces},
                 {s->ideographs, rewrite_ideographs},
                 {s->accents, rewrite_nfd},
                 {s->accents, rewrite_nonspacing_marks},
                 {s->lowercase, rewrite_lowercase}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].wanted)
            att_pieces_rewrite(p, parts[i].rewrite, s);
}

static bool need_bool(att_settings *s, const char *key)
{
    att_settings_need(s, key);
    return att_settings_bool(s, key, false);
}

static void read_bert(att_settings *s, att_step *step)
{
    step->clean = need_bool(s, "clean_text");
    step->ideographs = need_bool(s, "handle_chinese_chars");
    step->lowercase = need_bool(s, "lowercase");
    step->accents = att_settings_bool(s, "strip_accents", step->lowercase);
}

/* ---- Strip, Prepend, Replace */

static void rewrite_strip(const void *step, att_edit *e)
{
    const att_step *s = step;
    size_t end = e->bytes, spaces = 0;
    uint32_t c;
    for (; s->left && e->at < e->bytes; att_edit_skip(e, 1))
        if (att_edit_peek(e, &c), !att_char_is_space(c))
            break;
    for (att_edit ahead = *e; s->right && ahead.at < ahead.bytes; att_edit_skip(&ahead, 1)) {
        att_edit_peek(&ahead, &c);
        if (!att_char_is_space(c))
            spaces = 0;
        else if (spaces++ == 0)
            end = ahead.at;
    }
    att_edit_copy(e, s->right && spaces ? end : e->bytes);
}

static void read_strip(att_settings *s, att_step *step)
{
    step->left = att_settings_bool(s, "strip_left", false);
    step->right = att_settings_bool(s, "strip_right", false);
}

/* Writes text before the piece: its first character replaces the piece's first, which follows as a new one, so that all
 * have its origin. */
void att_rewrite_prepend(const void *step, att_edit *e)
{
    const att_step *s = step;
    uint32_t c, first;
    att_edit_peek(e, &first);
    for (size_t i = 0, n; i < s->bytes; i += n) {
        n = att_utf8_decode(s->text + i, s->bytes - i, &c);
        if (i == 0)
            att_edit_replace(e, c, 0);
        else
            att_edit_insert(e, c);
    }
    att_edit_insert(e, first);
    att_edit_copy(e, e->bytes);
}

static void read_prepend(att_settings *s, att_step *step)
{
    att_step_read_text(s, "prepend", false, &step->text, &step->bytes);
}

typedef struct replacing {
    const att_step *s;
    att_pieces *p;
} replacing;

static void rewrite_matches(const void *arg, att_edit *e)
{
    const replacing *r = arg;
    const size_t n = att_pattern_find(r->p, &r->s->pattern, e->s, e->bytes);
    for (size_t i = 0; i < n; i++) {
        const att_match m = att_matches(r->p)[i];
        if (!m.is) {
            att_edit_copy(e, m.end);
            continue;
        }
        e->at = m.end;
        uint32_t c;
        for (size_t k = 0; k < r->s->bytes;) {
            k += att_utf8_decode(r->s->text + k, r->s->bytes - k, &c);
            att_edit_insert(e, c);
        }
    }
}

void att_rewrite_matches(const att_step *s, att_pieces *p)
{
    att_pieces_rewrite(p, rewrite_matches, &(replacing){s, p});
}

/* ---- Precompiled: a charsmap of SentencePiece */

/* The last character, which is not written yet, because characters that are removed after it change what it stands
 * for. */
typedef struct last_char {
    uint32_t c;
    int64_t change; /* 1: a new character; 0: replaces one; -n: replaces one and n more */
    bool there;
} last_char;

static void write_last(att_edit *e, last_char *l)
{
    if (l->there && l->change > 0)
        att_edit_insert(e, l->c);
    else if (l->there)
        att_edit_replace(e, l->c, (size_t)-l->change);
    l->there = false;
}

/* Writes `to` instead of `old` characters. If `to` has more, the rest are new; if it has fewer, its last one replaces
 * the rest. Removed characters belong to the character before them; at the start they shift what follows. */
static void write_rule(att_edit *e, last_char *l, const char *to, size_t old)
{
    const size_t bytes = strlen(to);
    int64_t now = 0, done = 0;
    uint32_t c;
    for (size_t i = 0; i < bytes; now++)
        i += att_utf8_decode(to + i, bytes - i, &c);
    for (size_t i = 0; i < bytes; done++) {
        i += att_utf8_decode(to + i, bytes - i, &c);
        write_last(e, l);
        *l = (last_char){c, done >= (int64_t)old, true};
    }
    if (now < (int64_t)old)
        l->change += now - (int64_t)old;
}

/* Returns the bytes and characters of the grapheme cluster at the start of s [bytes]. */
static size_t grapheme(const char *s, size_t bytes, size_t *chars)
{
    uint32_t a, b;
    utf8proc_int32_t state = 0;
    size_t at = att_utf8_decode(s, bytes, &a);
    for (*chars = 1; at < bytes; ++*chars, a = b) {
        const size_t n = att_utf8_decode(s + at, bytes - at, &b);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, &state))
            break;
        at += n;
    }
    return at;
}

static void rewrite_precompiled(const void *step, att_edit *e)
{
    enum { LONGEST = 6 }; /* the package searches clusters of fewer bytes as a whole */
    const att_charsmap *m = &((const att_step *)step)->charsmap;
    last_char last = {0};
    for (size_t at = 0; at < e->bytes;) {
        size_t chars;
        const size_t cluster = grapheme(e->s + at, e->bytes - at, &chars), end = at + cluster;
        const char *to;
        if (cluster < LONGEST && att_charsmap_find_shortest(m, e->s + at, cluster, &to)) {
            write_rule(e, &last, to, chars);
            at = end;
        }
        for (size_t n; at < end; at += n) {
            uint32_t c;
            n = att_utf8_decode(e->s + at, end - at, &c);
            if (att_charsmap_find_shortest(m, e->s + at, n, &to)) {
                write_rule(e, &last, to, 1);
            } else {
                write_last(e, &last);
                last = (last_char){c, 0, true};
            }
        }
    }
    write_last(e, &last);
}

static void read_precompiled(att_settings *s, att_step *step)
{
    const char *text = att_settings_text(s, "precompiled_charsmap", NULL);
    att_bytes field = {.ctx = s->ctx};
    if (!s->status && !att_base64_read(&field, text, strlen(text)))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%sprecompiled_charsmap\" is not in base64", s->within);
    if (field.status && !s->status)
        s->status = field.status;
    att_proto p = {.ctx = s->ctx, .path = s->path, .status = s->status};
    att_charsmap_read(&step->charsmap, &p, (att_byte_view){field.data, field.count});
    s->status = p.status;
    att_bytes_free(&field);
}

/* ---- the table */

const att_step_type att_normalizer_types[] = {
    {.name = "BertNormalizer", .read = read_bert, .apply = apply_bert},
    {.name = "ByteLevel", .rewrite = att_rewrite_bytes},
    {.name = "Lowercase", .rewrite = rewrite_lowercase},
    {.name = "NFC", .rewrite = rewrite_form, .form = ATT_NFC},
    {.name = "NFD", .rewrite = rewrite_form, .form = ATT_NFD},
    {.name = "NFKC", .rewrite = rewrite_form, .form = ATT_NFKC},
    {.name = "NFKD", .rewrite = rewrite_form, .form = ATT_NFKD},
    {.name = "Nmt", .apply = apply_nmt},
    {.name = "Precompiled", .read = read_precompiled, .rewrite = rewrite_precompiled},
    {.name = "Prepend", .read = read_prepend, .rewrite = att_rewrite_prepend},
    {.name = "Replace", .read = att_step_read_replace, .apply = att_rewrite_matches},
    {.name = "Strip", .read = read_strip, .rewrite = rewrite_strip},
    {.name = "StripAccents", .rewrite = rewrite_strip_accents},
    {.name = NULL},
};
