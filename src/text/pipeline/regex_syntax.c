#include "text/pipeline/regex_syntax.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "text/pipeline/unicode_v16.h"

/* Oniguruma's \s and \w: PCRE2 counts U+180E as a space, but not marks as letters. In a set, \w does not include the
 * digits and fractions of Latin-1. */
#define SPACE "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define WORD_IN_SET                                                                                                    \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}"                                                             \
    "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
#define WORD WORD_IN_SET "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

typedef struct translator {
    att_settings *s;
    const char *key, *pattern;
    att_bytes *out;
    bool in_class;
    int depth;       /* of groups */
    int insensitive; /* 1 + the depth outside of the group that ignores case; 0: none */
} translator;

static void put(translator *t, const char *text) { att_bytes_add(t->out, text, strlen(text)); }

static void refuse(translator *t, const char *what, size_t n)
{
    att_settings_fail(t->s, ATT_ERR_UNSUPPORTED, "\"%s%s\" is \"%.80s\": %.*s in a regular expression is not supported",
                      t->s->within, t->key, t->pattern, (int)strnlen(what, n), what);
}

/* ---- sets of characters */

/* Returns whether a category is in a list such as "L M Nd". "L" stands for "Lu", "Ll" and so on. */
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

/* Writes a set of characters, or a part of one, with characters of its categories that PCRE2 may not know yet. */
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

/* Scripts, and the characters of each that PCRE2 may not know yet. */
static const struct {
    const char *name, *newer;
} scripts[] = {{"Arabic", "\\x{897}\\x{10EC2}-\\x{10EC4}\\x{10EFC}-\\x{10EFF}"},
               {"Bopomofo", ""},
               {"Cyrillic", "\\x{1C89}\\x{1C8A}\\x{1E030}-\\x{1E06D}\\x{1E08F}"},
               {"Devanagari", "\\x{11B00}-\\x{11B09}"},
               {"Greek", ""},
               {"Han", "\\x{2B739}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}"},
               {"Hangul", ""},
               {"Hebrew", ""},
               {"Hiragana", "\\x{1B132}"},
               {"Katakana", "\\x{1B155}"},
               {"Latin", "\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{1DF25}-\\x{1DF2A}"},
               {"Thai", ""}};

/* Returns whether a category has letters of one case. If case is ignored, a set of them matches both cases in
 * Oniguruma, but not in PCRE2. */
static bool has_case(const char *category)
{
    return !strcmp(category, "Lu") || !strcmp(category, "Ll") || !strcmp(category, "Lt");
}

/* Writes the set of a property by its name; false: the name is not supported. */
static bool put_property(translator *t, const char *name, bool negated)
{
    static const char categories[] =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs "
        "Zl Zp Cc Cf Co ";
    char text[80];
    snprintf(text, sizeof text, " %s ", name);
    if (strstr(categories, text)) {
        snprintf(text, sizeof text, "\\p{%s}", name);
        put_set(t, negated, text, name);
        return !(t->insensitive && has_case(name));
    }
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        if (!strcmp(scripts[i].name, name)) {
            /* Without sc: it would be Script_Extensions. */
            snprintf(text, sizeof text, "\\p{sc:%s}%s", name, scripts[i].newer);
            put_set(t, negated, text, "");
            return true;
        }
    return false;
}

/* Translates "\p{L}", "\P{L}", "\p{^L}"; returns the bytes that were read. */
static size_t translate_property(translator *t, const char *at)
{
    char name[24] = "";
    const bool braces = at[2] == '{', caret = braces && at[3] == '^', negated = (at[1] == 'P') != caret;
    const char *begin = at + 3 + caret;
    const size_t length = braces ? strcspn(begin, "}") : 0;
    const size_t all = length ? (size_t)(begin - at) + length + (begin[length] == '}') : 2;
    if (length > 0 && length < sizeof name)
        memcpy(name, begin, length);
    if (!*name || (negated && t->in_class) || !put_property(t, name, negated))
        refuse(t, at, all);
    return all;
}

/* ---- the syntax */

/* Translates an escape after its backslash; returns the bytes that were read. */
static size_t translate_escape(translator *t, const char *at)
{
    static const char refused[] = "bBhHKGRXyYZCgkNvVQE123456789";
    const char c = at[1];
    char text[16];
    if (c == 'p' || c == 'P')
        return translate_property(t, at);
    if (c == 's' || (c == 'S' && !t->in_class))
        put_set(t, c == 'S', SPACE, "");
    else if (c == 'S')
        put(t, "\\S\\x{180E}-\\x{180E}"); /* U+180E is a space for PCRE2 */
    else if (c == 'w' || (c == 'W' && !t->in_class))
        put_set(t, c == 'W', t->in_class ? WORD_IN_SET : WORD, "L M Nd");
    else if (c == 'd' || (c == 'D' && !t->in_class))
        put_set(t, c == 'D', "\\p{Nd}", "Nd");
    else if (c && (strchr(refused, c) || (t->in_class && strchr("WD", c))))
        refuse(t, at, 2);
    else if (c == 'u' && strspn(at + 2, "0123456789abcdefABCDEF") >= 4) {
        snprintf(text, sizeof text, "\\x{%.4s}", at + 2);
        put(t, text);
        return 6;
    } else {
        const size_t n = c && strchr("xo", c) && at[2] == '{' ? strcspn(at, "}") + 1 : 2; /* "\x{3042}" */
        const size_t there = strnlen(at, n);
        att_bytes_add(t->out, at, there);
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
    att_bytes_add(t->out, at, 1);
    size_t n = 1;
    if (begins && at[n] == '^')
        att_bytes_add(t->out, &at[n++], 1);
    if (begins && at[n] == ']') { /* the first ] is a member */
        put(t, "\\]");
        n++;
    }
    return n;
}

/* Returns whether a known group follows "(?": without a number, atomic, with a name, looking ahead or back, or
 * ignoring case. */
static bool is_known_group(const char *at)
{
    const size_t flags = strspn(at, "i-");
    return flags > 0 ? at[flags] == ':' || at[flags] == ')' : *at && strchr(":=!<>", *at);
}

static void translate_group(translator *t, const char *at)
{
    const size_t flags = at[1] == '?' ? strspn(at + 2, "i-") : 0;
    const bool to_the_end = flags > 0 && at[2 + flags] == ')';
    if (at[1] == '*')
        refuse(t, at, 2);
    /* "a(?i)b|c" is a(?i:b|c) in Oniguruma, and a(?i:b)|(?i:c) in PCRE2 */
    if ((at[1] == '?' && !is_known_group(at + 2)) || (to_the_end && at != t->pattern))
        refuse(t, at, 3);
    if (flags > 0 && at[2] == 'i' && !t->insensitive)
        t->insensitive = to_the_end ? 1 : t->depth + 1;
    t->depth++;
}

/* Returns whether a pair of letters folds to one: if case is ignored, Oniguruma matches some pairs with one letter,
 * such as "ss" with U+00DF, and PCRE2 does not. */
static bool folds_to_one(const char *at)
{
    static const char *const pairs[] = {"ss", "st", "ff", "fi", "fl"};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!strncasecmp(at, pairs[i], 2))
            return true;
    return false;
}

/* Refuses intervals that differ: "{3}?" is optional in Oniguruma and reluctant in PCRE2; "{,3}" is {0,3} in Oniguruma
 * and a text in PCRE2; "{3}+" is repeated in Oniguruma and possessive in PCRE2. */
static void check_interval(translator *t, const char *at)
{
    const size_t digits = strspn(at + 1, "0123456789"), all = strcspn(at, "}");
    if (at[1] == ',' || (at[1 + digits] == '}' && at[2 + digits] == '?') || (at[all] == '}' && at[all + 1] == '+'))
        refuse(t, at, all + 2);
}

static size_t translate_one(translator *t, const char *at)
{
    if (*at == '\\')
        return translate_escape(t, at);
    if (t->in_class || *at == '[')
        return translate_class(t, at);
    if (*at == '{')
        check_interval(t, at);
    else if (*at == '(')
        translate_group(t, at);
    else if (*at == ')' && --t->depth < t->insensitive && t->insensitive > 1)
        t->insensitive = 0;
    else if (t->insensitive && folds_to_one(at))
        refuse(t, at, 2);
    att_bytes_add(t->out, at, 1);
    return 1;
}

void att_regex_translate(att_settings *s, const char *key, const char *pattern, att_bytes *out)
{
    translator t = {.s = s, .key = key, .pattern = pattern, .out = out};
    for (const char *at = pattern; !s->status && *at;)
        at += translate_one(&t, at);
    if (!s->status)
        s->status = out->status;
}
