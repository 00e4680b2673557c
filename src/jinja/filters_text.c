/* Filters that make texts and numbers. */
#include "jinja/filters.h"
#include "jinja/string.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const att_jinja_string *text;
#define FILTER(name)                                                                                                   \
    static att_jinja_value name(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)

FILTER(to_string) { return (void)a, att_jinja_string_value(att_jinja_str(s, *self)); }

FILTER(trim)
{
    const att_jinja_value *characters = att_jinja_argument(a, 0, "chars");
    const text x = att_jinja_str(s, *self);
    return att_jinja_string_value(
        att_jinja_strip(s, x, characters ? att_jinja_argument_text(s, a, 0, "chars", NULL) : NULL, true, true));
}

static att_jinja_value change_case(att_jinja_state *s, const att_jinja_value *self, att_jinja_case to)
{
    return att_jinja_string_value(att_jinja_change_case(s, att_jinja_str(s, *self), to));
}
FILTER(upper) { return (void)a, change_case(s, self, ATT_JINJA_UPPER); }
FILTER(lower) { return (void)a, change_case(s, self, ATT_JINJA_LOWER); }
FILTER(capitalize) { return (void)a, change_case(s, self, ATT_JINJA_CAPITALIZE); }

/* Writes words, which begin after white space or one of -({[<, with a large first letter. */
FILTER(title)
{
    const text x = att_jinja_str(s, *self);
    att_jinja_builder b = {.s = s};
    (void)a;
    for (size_t at = 0, end; at < x->bytes; at = end) {
        end = at;
        while (end < x->bytes && !strchr("-({[< \t\n\r\f\v", x->data[end]))
            end++;
        att_jinja_add_string(&b, att_jinja_change_case(s, att_jinja_part(s, x, at, end), ATT_JINJA_CAPITALIZE));
        if (end < x->bytes)
            att_jinja_add_part(&b, x, end, end + 1), end++;
    }
    return att_jinja_built_value(&b);
}

FILTER(replace)
{
    const text from = att_jinja_argument_text(s, a, 0, "old", NULL), to = att_jinja_argument_text(s, a, 1, "new", NULL);
    return att_jinja_string_value(
        att_jinja_replace(s, att_jinja_str(s, *self), from, to, att_jinja_argument_int(s, a, 2, "count", -1)));
}

FILTER(escape)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const text x = att_jinja_str(s, *self);
    att_jinja_builder b = {.s = s};
    (void)a;
    for (size_t at = 0; at < x->bytes; at++) {
        const char *special = x->data[at] ? strchr(from, x->data[at]) : NULL;
        if (special)
            att_jinja_add(&b, to[special - from], strlen(to[special - from]), att_jinja_is_message(x, at));
        else
            att_jinja_add_part(&b, x, at, at + 1);
    }
    return att_jinja_built_value(&b);
}

/* Returns the end of the line that begins at `at`. */
static size_t line_end(text x, size_t at)
{
    const char *end = at < x->bytes ? memchr(x->data + at, '\n', x->bytes - at) : NULL;
    return end ? (size_t)(end - x->data) : x->bytes;
}

FILTER(indent)
{
    const att_jinja_value *width = att_jinja_argument(a, 0, "width");
    const bool first = att_jinja_argument_truth(a, 1, "first", false),
               blank = att_jinja_argument_truth(a, 2, "blank", false);
    const text x = att_jinja_str(s, *self);
    att_jinja_builder prefix = {.s = s}, b = {.s = s};
    if (width && width->type == ATT_JINJA_STRING)
        att_jinja_add_string(&prefix, width->string);
    else
        for (int64_t i = width ? att_jinja_integer(s, *width, "width") : 4; i > 0; i--)
            att_jinja_add_word(&prefix, " ");
    const text indentation = att_jinja_built(&prefix);
    for (size_t at = 0, end; at <= x->bytes; at = end + 1) {
        end = line_end(x, at);
        const bool empty = at == end && !blank;
        if (at == 0 ? first : !empty)
            att_jinja_add_string(&b, indentation);
        att_jinja_add_part(&b, x, at, end < x->bytes ? end + 1 : end);
    }
    return att_jinja_built_value(&b);
}

FILTER(center)
{
    const text x = att_jinja_str(s, *self);
    const int64_t more = att_jinja_argument_int(s, a, 0, "width", 80) - (int64_t)att_jinja_characters(x);
    att_jinja_builder b = {.s = s};
    const int64_t width = more > 0 ? more : 0,
                  left = width / 2 + (width & (width + (int64_t)att_jinja_characters(x)) & 1);
    for (int64_t i = 0; i < left; i++)
        att_jinja_add_word(&b, " ");
    att_jinja_add_string(&b, x);
    for (int64_t i = left; i < width; i++)
        att_jinja_add_word(&b, " ");
    return att_jinja_built_value(&b);
}

FILTER(wordcount)
{
    const text x = att_jinja_str(s, *self);
    int64_t n = 0;
    bool inside = false;
    (void)a;
    for (size_t at = 0; at < x->bytes; at++) {
        const char c = x->data[at];
        const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                          (unsigned char)c >= 0x80;
        n += word && !inside;
        inside = word;
    }
    return att_jinja_int(n);
}

FILTER(to_json)
{
    att_jinja_builder b = {.s = s};
    const att_jinja_value *indent = att_jinja_argument(a, 1, "indent"),
                          *separators = att_jinja_argument(a, 2, "separators");
    att_jinja_json_style style = {.ascii = att_jinja_argument_truth(a, 0, "ensure_ascii", false),
                                  .sort = att_jinja_argument_truth(a, 3, "sort_keys", false),
                                  .indent = -1};
    if (indent && indent->type != ATT_JINJA_NONE)
        style.indent = att_jinja_integer(s, *indent, "indent");
    if (style.indent > 1000)
        att_jinja_fail(s, "an indent of %lld is too large", (long long)style.indent);
    style.item = att_jinja_text(s, ", ", style.indent < 0 ? 2 : 1, false).string;
    style.key = att_jinja_text(s, ": ", 2, false).string;
    if (separators && att_jinja_is_list(*separators)) {
        const att_jinja_arguments both = {.value = separators->list->item, .n = separators->list->n};
        style.item = att_jinja_argument_text(s, &both, 0, "separators", NULL);
        style.key = att_jinja_argument_text(s, &both, 1, "separators", NULL);
    }
    att_jinja_to_json(&b, *self, &style, 0);
    return att_jinja_built_value(&b);
}

/* ---- numbers */

/* Reads a text as a number, as Python's int or float. Returns false if it is not one. */
static bool read_number(att_jinja_state *s, text x, int base, bool real, att_jinja_value *out)
{
    char digits[64], *end;
    const text clean = att_jinja_strip(s, x, NULL, true, true);
    if (clean->bytes == 0 || clean->bytes >= sizeof digits)
        return false;
    memcpy(digits, clean->data, clean->bytes);
    digits[clean->bytes] = 0;
    if (real && strpbrk(digits, "xX"))
        return false;
    errno = 0;
    *out = real ? att_jinja_float(att_jinja_read_float(digits, &end)) : att_jinja_int(strtoll(digits, &end, base));
    if (!real && errno == ERANGE)
        att_jinja_fail(s, "the integer %s is too large", digits);
    return end == digits + clean->bytes;
}

FILTER(to_int)
{
    const att_jinja_value *other = att_jinja_argument(a, 0, "default");
    att_jinja_value v;
    const int64_t base = att_jinja_argument_int(s, a, 1, "base", 10);
    if (self->type == ATT_JINJA_UNDEFINED)
        att_jinja_fail(s, "int of an undefined value");
    if (base < 2 || base > 36)
        att_jinja_fail(s, "the base of int is %lld", (long long)base);
    if (self->type == ATT_JINJA_BOOL || self->type == ATT_JINJA_INT)
        return att_jinja_int(att_jinja_integer(s, *self, "a number"));
    if (self->type == ATT_JINJA_STRING && read_number(s, self->string, (int)base, false, &v))
        return v;
    if (self->type == ATT_JINJA_FLOAT)
        v = *self;
    else if (self->type != ATT_JINJA_STRING || !read_number(s, self->string, 10, true, &v))
        return other ? *other : att_jinja_int(0);
    if (!(fabs(v.real) < 9e18))
        return other ? *other : att_jinja_int(0);
    return att_jinja_int((int64_t)v.real);
}

FILTER(to_float)
{
    const att_jinja_value *other = att_jinja_argument(a, 0, "default");
    att_jinja_value v;
    if (att_jinja_is_number(*self))
        return att_jinja_float(att_jinja_real(*self));
    if (self->type == ATT_JINJA_STRING && read_number(s, self->string, 10, true, &v))
        return v;
    return other ? *other : att_jinja_float(0);
}

static att_jinja_value number(att_jinja_state *s, att_jinja_value v)
{
    if (!att_jinja_is_number(v))
        att_jinja_fail(s, "a %s is not a number", att_jinja_type_name(v.type));
    return v.type == ATT_JINJA_BOOL ? att_jinja_int(v.truth) : v;
}

FILTER(absolute)
{
    const att_jinja_value v = number(s, *self);
    (void)a;
    if (v.type == ATT_JINJA_FLOAT)
        return att_jinja_float(fabs(v.real));
    return att_jinja_int(v.number < 0 && v.number > INT64_MIN ? -v.number : v.number);
}

FILTER(round_to)
{
    const double x = att_jinja_real(number(s, *self));
    const int64_t digits = att_jinja_argument_int(s, a, 0, "precision", 0);
    const text method = att_jinja_argument_text(s, a, 1, "method", "common");
    if (digits < 0 || digits > 15)
        att_jinja_fail(s, "round to %lld digits is not supported", (long long)digits);
    const double scale = pow(10, (double)digits);
    if (att_jinja_same(method, "ceil"))
        return att_jinja_float(ceil(x * scale) / scale);
    if (att_jinja_same(method, "floor"))
        return att_jinja_float(floor(x * scale) / scale);
    char text[400]; /* 309 digits before the point */
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return att_jinja_float(strtod(text, NULL));
}

FILTER(format)
{
    if (a->named > 0)
        att_jinja_fail(s, "format with names of values is not supported");
    return att_jinja_format(s, att_jinja_str(s, *self), a->value, a->n);
}

const att_jinja_filter att_jinja_text_filters[] = {
    {"trim", trim},     {"string", to_string},      {"safe", to_string},      {"upper", upper},    {"lower", lower},
    {"title", title},   {"capitalize", capitalize}, {"replace", replace},     {"escape", escape},  {"e", escape},
    {"indent", indent}, {"center", center},         {"wordcount", wordcount}, {"format", format},  {"tojson", to_json},
    {"int", to_int},    {"float", to_float},        {"abs", absolute},        {"round", round_to}, {0}};
