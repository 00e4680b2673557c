#include "text/pipeline/regex.h"
#include "text/pipeline/unicode16.h"

#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    MAX_PATTERN = 1 << 14, /* bytes; the longest known one has 400 */
    MAX_STEPS = 1 << 24,   /* of PCRE2's matcher, for one match; known patterns need a few for each character */
    MAX_KIB = 1 << 18      /* of its memory */
};

struct att_regex {
    att_ctx *ctx;
    pcre2_code *code;
    pcre2_match_context *limits;
    char pattern[64]; /* its beginning, for errors */
};

/* What Oniguruma means by \\s and \\w: PCRE2 counts U+180E as a space, and marks not as letters. */
#define SPACE "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define WORD                                                                                                           \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}"                         \
    "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"

/* ---- from Oniguruma's syntax to PCRE2's */

typedef struct translator {
    att_settings *s;
    const char *key, *pattern;
    att_bytes out;
    bool in_class;
} translator;

static void put(translator *t, const char *text) { att_bytes_add(&t->out, text, strlen(text)); }

static void refuse(translator *t, const char *what, int n)
{
    att_settings_fail(t->s, ATT_ERR_UNSUPPORTED, "\"%s%s\" is \"%.80s\": %.*s in a regular expression is not supported",
                      t->s->within, t->key, t->pattern, n, what);
}

/* Is a category in this list: "L M Nd"? "L" stands for "Lu", "Ll" and so on. */
static bool is_among(const char *categories, const char *category)
{
    for (const char *at = categories; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (strncmp(at, category, n) == 0)
            return true;
        at += n;
    }
    return false;
}

/* Writes a set of characters, as one or as a part of one, with those of its categories that PCRE2 may not know yet. */
static void put_set(translator *t, bool negated, const char *set, const char *categories)
{
    const att_newer_range *r;
    const size_t n = att_newer_chars(&r);
    if (!t->in_class)
        put(t, negated ? "[^" : "[");
    put(t, set);
    for (size_t i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", (unsigned)r[i].first, (unsigned)r[i].last);
        if (is_among(categories, r[i].category))
            put(t, text);
    }
    if (!t->in_class)
        put(t, "]");
}

/* "\\p{L}", "\\p{Lu}", "\\P{L}", "\\p{^L}": returns the bytes that were read; 0: it is something else, as a script. */
static size_t translate_property(translator *t, const char *at)
{
    char name[8] = "", set[16];
    const bool negated = (at[1] == 'P') != (at[2] == '{' && at[3] == '^');
    if ((at[1] != 'p' && at[1] != 'P') || at[2] != '{')
        return 0;
    const char *begin = at + 3 + (at[3] == '^');
    const size_t length = strcspn(begin, "}");
    if (begin[length] != '}' || length < 1 || length > 2 || (negated && t->in_class))
        return 0;
    memcpy(name, begin, length);
    snprintf(set, sizeof set, "\\p{%s}", name);
    put_set(t, negated, set, name);
    return (size_t)(begin - at) + length + 1;
}

/* After a backslash: returns the bytes that were read. */
static size_t translate_escape(translator *t, const char *at)
{
    static const char refused[] = "bBhHKGRXyYZCgkN";
    const char c = at[1];
    const size_t property = translate_property(t, at);
    if (property)
        return property;
    if (c == 's' || (c == 'S' && !t->in_class)) /* [\\S] is the same but for U+180E */
        put_set(t, c == 'S', SPACE, "");
    else if (c == 'w' || (c == 'W' && !t->in_class))
        put_set(t, c == 'W', WORD, "L M Nd");
    else if (c == 'd' || (c == 'D' && !t->in_class))
        put_set(t, c == 'D', "\\p{Nd}", "Nd");
    else if (c && (strchr(refused, c) || (c >= '1' && c <= '9') || (t->in_class && strchr("WD", c))))
        refuse(t, at, 2);
    else {
        const size_t n = c && strchr("pPxo", c) && at[2] == '{' ? strcspn(at, "}") + 1 : 2; /* "\\p{Han}" */
        const size_t there = strnlen(at, n);
        att_bytes_add(&t->out, at, there);
        return there;
    }
    return 2;
}

static size_t translate_class(translator *t, const char *at)
{
    const bool begins = at[0] == '[' && !t->in_class;
    if (at[0] == ']')
        t->in_class = false;
    else if (begins)
        t->in_class = true;
    else if (at[0] == '[') /* a set in a set, or [:alpha:] */
        refuse(t, at, at[1] == ':' ? 2 : 1);
    else if (at[0] == '&' && at[1] == '&')
        refuse(t, at, 2);
    att_bytes_add(&t->out, at, 1);
    size_t n = 1;
    if (begins && at[n] == '^')
        att_bytes_add(&t->out, &at[n++], 1);
    if (begins && at[n] == ']') /* the first one is a member */
        att_bytes_add(&t->out, "\\]", 2), n++;
    return n;
}

/* After "(?": a group without a number, one that is atomic or has a name, looking ahead or back, ignoring case? */
static bool is_known_group(const char *at)
{
    const size_t flags = strspn(at, "i-");
    return flags > 0 ? at[flags] == ':' || at[flags] == ')' : *at && strchr(":=!<>", *at);
}

static size_t translate_one(translator *t, const char *at)
{
    if (*at == '\\')
        return translate_escape(t, at);
    if (t->in_class || *at == '[')
        return translate_class(t, at);
    if (*at == '}' && at[1] == '+') /* possessive in PCRE2, repeated in Oniguruma */
        refuse(t, at, 2);
    if (*at == '(' && at[1] == '*')
        refuse(t, at, 2);
    if (*at == '(' && at[1] == '?' && !is_known_group(at + 2))
        refuse(t, at, 3);
    att_bytes_add(&t->out, at, 1);
    return 1;
}

/* ---- compiling */

static att_regex *compile(translator *t)
{
    att_ctx *ctx = t->s->ctx;
    int code;
    PCRE2_SIZE where;
    att_regex *r = att_calloc(ctx, 1, sizeof *r);
    pcre2_compile_context *newline = pcre2_compile_context_create(NULL);
    if (r)
        r->ctx = ctx;
    if (r && newline && (r->limits = pcre2_match_context_create(NULL))) {
        pcre2_set_newline(newline, PCRE2_NEWLINE_LF);
        pcre2_set_match_limit(r->limits, MAX_STEPS);
        pcre2_set_heap_limit(r->limits, MAX_KIB);
        strncpy(r->pattern, t->pattern, sizeof r->pattern - 1);
        r->code =
            pcre2_compile((PCRE2_SPTR)t->out.data, t->out.count,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &where, newline);
        char message[120] = "";
        if (!r->code && pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message))
            att_settings_fail(t->s, ATT_ERR_FORMAT, "\"%s%s\" is \"%.80s\", which is no regular expression: %s",
                              t->s->within, t->key, t->pattern, message);
        if (r->code)
            pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without it, matching is only slower */
    } else {
        t->s->status = att_fail(ctx, ATT_ERR_MEMORY, "out of memory for a regular expression");
    }
    pcre2_compile_context_free(newline);
    if (t->s->status) {
        att_regex_free(r);
        return NULL;
    }
    return r;
}

att_regex *att_regex_new(att_settings *s, const char *key, const char *pattern)
{
    translator t = {.s = s, .key = key, .pattern = pattern, .out.ctx = s->ctx};
    if (strlen(pattern) > MAX_PATTERN)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%s\" has %zu bytes, more than %d", s->within, key,
                          strlen(pattern), MAX_PATTERN);
    for (const char *at = pattern; !s->status && *at;)
        at += translate_one(&t, at);
    if (t.out.status && !s->status)
        s->status = t.out.status;
    att_regex *r = s->status ? NULL : compile(&t);
    att_bytes_free(&t.out);
    return r;
}

void att_regex_free(att_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    att_free(r->ctx, r);
}

/* ---- matching */

bool att_regex_find(const att_regex *r, att_regex_match *m, const char *s, size_t bytes, size_t from, size_t *begin,
                    size_t *end)
{
    if (m->status)
        return false;
    if (!m->data && !(m->data = pcre2_match_data_create(1, NULL))) {
        m->status = att_fail(r->ctx, ATT_ERR_MEMORY, "out of memory for a regular expression");
        return false;
    }
    int code = pcre2_match(r->code, (PCRE2_SPTR)s, bytes, from, PCRE2_NO_UTF_CHECK, m->data, r->limits);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter has its memory on the heap */
        code = pcre2_match(r->code, (PCRE2_SPTR)s, bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, r->limits);
    if (code >= 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
        *begin = at[0];
        *end = at[1];
        return true;
    }
    if (code != PCRE2_ERROR_NOMATCH) {
        char message[120] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        m->status = att_fail(r->ctx, code == PCRE2_ERROR_NOMEMORY ? ATT_ERR_MEMORY : ATT_ERR_UNSUPPORTED,
                             "the regular expression \"%s\" fails on this text: %s", r->pattern, message);
    }
    return false;
}

void att_regex_match_free(att_regex_match *m)
{
    pcre2_match_data_free(m->data);
    *m = (att_regex_match){0};
}
