/* The text of chat templates, Jinja programs: a normal form, in which programs that differ in spaces and quotes are the
 * same, and patterns that it matches. */
#ifndef ATT_LANGUAGE_CHAT_JINJA_H
#define ATT_LANGUAGE_CHAT_JINJA_H

#include "io/bytes.h"

/* Appends the normal form of a template [bytes] as `transformers` compiles it (trim_blocks, lstrip_blocks): text
 * outside of tags becomes {{'text'}}; white space in tags, "-" of tags and comments vanish; adjacent outputs are one,
 * {{a+b}}, and adjacent strings, too; strings are in single quotes; a['b'] becomes a.b. False: it cannot be read. */
bool att_jinja_normal_form(const char *text, size_t bytes, att_bytes *out);

/* Does the pattern, zero-terminated, match text [bytes]? "*" is the rest of a branch of {%if%}, whose condition before
 * it asks for tools or other content than text; "^" any number of {%if...%}...{%endif%} and branches {%elif...%} that
 * themselves ask for tools; "$" and "?" any text inside a string, "$" becomes *found. */
bool att_jinja_match(const char *pattern, const char *text, size_t bytes, att_byte_view *found);
/* Appends the content of a string [bytes] of the normal form. */
void att_jinja_unescape(att_byte_view string, att_bytes *out);

#endif
