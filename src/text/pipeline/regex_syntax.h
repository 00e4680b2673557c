/* Translates regular expressions written for Oniguruma (with Ruby's syntax, as `tokenizers` compiles it) for PCRE2. */
#ifndef ATT_REGEX_SYNTAX_H
#define ATT_REGEX_SYNTAX_H

#include "io/settings.h"

/* Appends to `out` an expression for PCRE2 with the matches that `pattern`, the value of `key` in s, has in Oniguruma.
 * Parts that the two read differently are rewritten, or refused by an error in s that names them. */
void att_regex_translate(att_settings *s, const char *key, const char *pattern, att_bytes *out);

#endif
