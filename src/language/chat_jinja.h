/* Compares the texts of chat templates, which are Jinja programs. In their normal form, programs that differ in spaces
 * and quotes are equal; patterns match it. */
#ifndef ATT_LANGUAGE_CHAT_JINJA_H
#define ATT_LANGUAGE_CHAT_JINJA_H

#include "io/bytes.h"

/* Appends the normal form of a template [bytes] as `transformers` compiles it (trim_blocks, lstrip_blocks). Text
 * outside of tags becomes {{'text'}}; white space in tags, "-" of tags and comments are removed; adjacent outputs are
 * joined, {{a+b}}, and so are adjacent strings; strings are in single quotes; a['b'] becomes a.b. Returns false if it
 * cannot be read. */
bool att_jinja_normal_form(const char *text, size_t bytes, att_bytes *out);

/* Returns whether the pattern, which is zero-terminated, matches text [bytes]. "*" matches the rest of a branch of
 * {%if%}, whose condition in the pattern asks for tools or for content other than text. "^" matches any number of
 * {%if...%}...{%endif%} and of branches {%elif...%} whose conditions ask for tools. "$" and "?" match any text inside a
 * string; *found becomes that of "$". */
bool att_jinja_match(const char *pattern, const char *text, size_t bytes, att_byte_view *found);
/* Appends the content of a string [bytes] of the normal form. */
void att_jinja_unescape(att_byte_view string, att_bytes *out);

#endif
