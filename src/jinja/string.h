/* Texts with the mark of where their characters are from: parts, joined texts, and strings of Python by characters. */
#ifndef ATT_JINJA_STRING_H
#define ATT_JINJA_STRING_H

#include "jinja/value.h"

/* A text that grows. */
typedef struct att_jinja_builder {
    att_jinja_state *s;
    char *data;
    size_t bytes, room;
    att_literal *range;
    size_t n, range_room;
} att_jinja_builder;

/* Appends bytes, which are from a message or from the template. */
void att_jinja_add(att_jinja_builder *b, const char *data, size_t bytes, bool message);
void att_jinja_add_word(att_jinja_builder *b, const char *word); /* from the template */
void att_jinja_add_part(att_jinja_builder *b, const att_jinja_string *x, size_t begin, size_t end);
void att_jinja_add_string(att_jinja_builder *b, const att_jinja_string *x);
const att_jinja_string *att_jinja_built(att_jinja_builder *b);
static inline att_jinja_value att_jinja_built_value(att_jinja_builder *b)
{
    return att_jinja_string_value(att_jinja_built(b));
}
const att_jinja_string *att_jinja_part(att_jinja_state *s, const att_jinja_string *x, size_t begin, size_t end);
/* Returns whether the byte at an offset is from a message. */
bool att_jinja_is_message(const att_jinja_string *x, size_t at);

/* Returns the number of characters, and the offset of a character. */
size_t att_jinja_characters(const att_jinja_string *x);
size_t att_jinja_offset(const att_jinja_string *x, size_t character);
/* Returns the offset of y in x [begin, end), or SIZE_MAX. */
size_t att_jinja_search(const att_jinja_string *x, size_t begin, size_t end, const att_jinja_string *y);
size_t att_jinja_search_last(const att_jinja_string *x, size_t begin, size_t end, const att_jinja_string *y);
bool att_jinja_starts(const att_jinja_string *x, size_t at, const att_jinja_string *y);

bool att_jinja_is_space(uint32_t c); /* as Python's str.isspace */
/* Trims the sides that are true. characters: those that are removed; NULL: white space. */
const att_jinja_string *att_jinja_strip(att_jinja_state *s, const att_jinja_string *x,
                                        const att_jinja_string *characters, bool left, bool right);
const att_jinja_string *att_jinja_replace(att_jinja_state *s, const att_jinja_string *x, const att_jinja_string *from,
                                          const att_jinja_string *to, int64_t max);

typedef enum att_jinja_case { ATT_JINJA_UPPER, ATT_JINJA_LOWER, ATT_JINJA_CAPITALIZE, ATT_JINJA_TITLE } att_jinja_case;
const att_jinja_string *att_jinja_change_case(att_jinja_state *s, const att_jinja_string *x, att_jinja_case to);

/* Reads a number with a "." whatever the locale is, from its text, which it changes; *end: as strtod. */
double att_jinja_read_float(char *text, char **end);

/* Formats values [n] as "..." % (...) does. (format.c) */
att_jinja_value att_jinja_format(att_jinja_state *s, const att_jinja_string *x, const att_jinja_value *value, size_t n);

/* The text of a value, as Python's str and repr write it, and as JSON. */
const att_jinja_string *att_jinja_str(att_jinja_state *s, att_jinja_value v);
void att_jinja_repr(att_jinja_builder *b, att_jinja_value v);
typedef struct att_jinja_json_style {
    bool ascii, sort;
    int64_t indent;                     /* < 0: one line */
    const att_jinja_string *item, *key; /* what separates items, and keys from values */
} att_jinja_json_style;
void att_jinja_to_json(att_jinja_builder *b, att_jinja_value v, const att_jinja_json_style *style, int64_t level);

#endif
