/* The text of values: as Python's str and repr write it, and as JSON. */
#include "jinja/string.h"

#include "text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Adds the first n characters of a number, with "." whatever the locale is. */
static void add_number(att_jinja_builder *b, char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("-0123456789", text[i]))
            text[i] = '.';
    att_jinja_add(b, text, n, false);
}

/* Writes the shortest number that reads back as x, as Python's repr does. */
static void add_float(att_jinja_builder *b, double x, bool json)
{
    char text[40], digits[32];
    if (!isfinite(x)) {
        att_jinja_add_word(b, isnan(x) ? (json ? "NaN" : "nan")
                              : x < 0  ? (json ? "-Infinity" : "-inf")
                                       : (json ? "Infinity" : "inf"));
        return;
    }
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, x);
    while (strtod(text, NULL) != x && precision++ < 17);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        const size_t n = strcspn(text, "e");
        snprintf(digits, sizeof digits, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        add_number(b, text, n);
        att_jinja_add_word(b, digits);
        return;
    }
    snprintf(text, sizeof text, "%.*f", precision > exponent ? precision - exponent : 1, x);
    add_number(b, text, strlen(text));
}

static bool is_printable(uint32_t c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return c == ' ' ||
           !(category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CS ||
             category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_ZL ||
             category == UTF8PROC_CATEGORY_ZP || category == UTF8PROC_CATEGORY_ZS);
}

static void add_quoted(att_jinja_builder *b, const att_jinja_string *x)
{
    const bool single = x->bytes > 0 && memchr(x->data, '\'', x->bytes),
               twice = single && !memchr(x->data, '"', x->bytes);
    const char *const quote = twice ? "\"" : "'";
    att_jinja_add_word(b, quote);
    for (size_t at = 0, n; at < x->bytes; at += n) {
        static const char from[] = "\n\r\t\\", to[] = "nrt\\";
        uint32_t c;
        char escape[12];
        const bool message = att_jinja_is_message(x, at);
        n = att_utf8_decode(x->data + at, x->bytes - at, &c);
        const char *simple = c < 0x80 && c ? strchr(from, (int)c) : NULL;
        if (simple || c == (unsigned char)*quote) {
            escape[0] = '\\';
            escape[1] = simple ? to[simple - from] : *quote;
            att_jinja_add(b, escape, 2, message);
        } else if (is_printable(c)) {
            att_jinja_add(b, x->data + at, n, message);
        } else {
            snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
            att_jinja_add(b, escape, strlen(escape), message);
        }
    }
    att_jinja_add_word(b, quote);
}

/* Writes a value that is not a text, a list or a dict. */
static void add_simple(att_jinja_builder *b, att_jinja_value v, bool json)
{
    static const char *const words[2][3] = {{"None", "False", "True"}, {"null", "false", "true"}};
    char text[32];
    if (v.type == ATT_JINJA_NONE || v.type == ATT_JINJA_BOOL) {
        att_jinja_add_word(b, words[json][v.type == ATT_JINJA_NONE ? 0 : 1 + v.truth]);
    } else if (v.type == ATT_JINJA_INT) {
        snprintf(text, sizeof text, "%lld", (long long)v.number);
        att_jinja_add_word(b, text);
    } else if (v.type == ATT_JINJA_FLOAT) {
        add_float(b, v.real, json);
    } else if (v.type != ATT_JINJA_UNDEFINED || json) {
        att_jinja_fail(b->s, "a %s cannot be written%s", att_jinja_type_name(v.type), json ? " as JSON" : "");
    }
}

static void add_items(att_jinja_builder *b, att_jinja_value v)
{
    att_jinja_add_word(b, v.type == ATT_JINJA_LIST ? "[" : "(");
    for (size_t i = 0; i < v.list->n; i++) {
        att_jinja_add_word(b, i ? ", " : "");
        att_jinja_repr(b, v.list->item[i]);
    }
    att_jinja_add_word(b, v.type == ATT_JINJA_LIST ? "]" : v.list->n == 1 ? ",)" : ")");
}

void att_jinja_repr(att_jinja_builder *b, att_jinja_value v)
{
    att_jinja_enter(b->s);
    if (v.type == ATT_JINJA_STRING) {
        add_quoted(b, v.string);
    } else if (att_jinja_is_list(v)) {
        add_items(b, v);
    } else if (v.type == ATT_JINJA_DICT) {
        att_jinja_add_word(b, "{");
        for (size_t i = 0; i < v.dict->n; i++) {
            att_jinja_add_word(b, i ? ", " : "");
            att_jinja_repr(b, v.dict->key[i]);
            att_jinja_add_word(b, ": ");
            att_jinja_repr(b, v.dict->value[i]);
        }
        att_jinja_add_word(b, "}");
    } else if (v.type == ATT_JINJA_UNDEFINED) {
        att_jinja_add_word(b, "Undefined");
    } else {
        add_simple(b, v, false);
    }
    att_jinja_leave(b->s);
}

const att_jinja_string *att_jinja_str(att_jinja_state *s, att_jinja_value v)
{
    att_jinja_builder b = {.s = s};
    if (v.type == ATT_JINJA_STRING)
        return v.string;
    if (att_jinja_is_list(v) || v.type == ATT_JINJA_DICT)
        att_jinja_repr(&b, v);
    else
        add_simple(&b, v, false);
    return att_jinja_built(&b);
}

/* ---- JSON, as Python's json.dumps */

static void add_json_text(att_jinja_builder *b, const att_jinja_string *x, bool ascii)
{
    att_jinja_add_word(b, "\"");
    for (size_t at = 0, n; at < x->bytes; at += n) {
        static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
        uint32_t c;
        char escape[16];
        const bool message = att_jinja_is_message(x, at);
        n = att_utf8_decode(x->data + at, x->bytes - at, &c);
        const char *simple = c < 0x80 && c ? strchr(from, (int)c) : NULL;
        if (simple) {
            escape[0] = '\\';
            escape[1] = to[simple - from];
            att_jinja_add(b, escape, 2, message);
        } else if (c < 0x20 || (ascii && (c > 0x7E))) {
            if (c == 0x7F)
                snprintf(escape, sizeof escape, "\x7f");
            else if (c < 0x10000)
                snprintf(escape, sizeof escape, "\\u%04x", c);
            else
                snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                         0xDC00 + ((c - 0x10000) & 0x3FF));
            att_jinja_add(b, escape, strlen(escape), message);
        } else {
            att_jinja_add(b, x->data + at, n, message);
        }
    }
    att_jinja_add_word(b, "\"");
}

static void add_line(att_jinja_builder *b, const att_jinja_json_style *style, int64_t level)
{
    if (style->indent < 0)
        return;
    att_jinja_add_word(b, "\n");
    for (int64_t i = 0; i < style->indent * level; i++)
        att_jinja_add_word(b, " ");
}

static void add_json_key(att_jinja_builder *b, att_jinja_value key, const att_jinja_json_style *style)
{
    if (key.type == ATT_JINJA_STRING) {
        add_json_text(b, key.string, style->ascii);
    } else {
        att_jinja_add_word(b, "\"");
        add_simple(b, key, true);
        att_jinja_add_word(b, "\"");
    }
}

/* Returns the keys of a dict in their order, or sorted. */
static att_jinja_value keys(att_jinja_state *s, att_jinja_value dict, bool sort)
{
    const att_jinja_value list = att_jinja_iterate(s, dict);
    for (size_t i = 1; sort && i < list.list->n; i++) {
        const att_jinja_value key = list.list->item[i];
        size_t at = i;
        for (; at > 0 && att_jinja_compare(s, key, list.list->item[at - 1]) < 0; at--)
            list.list->item[at] = list.list->item[at - 1];
        list.list->item[at] = key;
        att_jinja_work(s, i);
    }
    return list;
}

void att_jinja_to_json(att_jinja_builder *b, att_jinja_value v, const att_jinja_json_style *style, int64_t level)
{
    if (v.type == ATT_JINJA_STRING) {
        add_json_text(b, v.string, style->ascii);
        return;
    }
    const bool dict = v.type == ATT_JINJA_DICT;
    if (!dict && !att_jinja_is_list(v)) {
        add_simple(b, v, true);
        return;
    }
    att_jinja_enter(b->s);
    const att_jinja_list *list = (dict ? keys(b->s, v, style->sort) : v).list;
    att_jinja_add_word(b, dict ? "{" : "[");
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            att_jinja_add_string(b, style->item);
        add_line(b, style, level + 1);
        if (dict) {
            add_json_key(b, list->item[i], style);
            att_jinja_add_string(b, style->key);
        }
        att_jinja_to_json(b, dict ? *att_jinja_find(b->s, v.dict, list->item[i]) : list->item[i], style, level + 1);
    }
    if (list->n > 0)
        add_line(b, style, level);
    att_jinja_add_word(b, dict ? "}" : "]");
    att_jinja_leave(b->s);
}
