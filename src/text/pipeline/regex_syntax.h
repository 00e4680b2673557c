/* Regular expressions written for Oniguruma (with Ruby's syntax, as `tokenizers` compiles it) as PCRE2 reads them. */
#ifndef ATT_REGEX_SYNTAX_H
#define ATT_REGEX_SYNTAX_H

#include "io/settings.h"

/* Appends to `out` an expression for PCRE2 with the matches that `pattern`, the value of `key` in s, has in Oniguruma.
 * What the two read differently is rewritten, or refused: an error in s that names it. */
void att_regex_translate(att_settings *s, const char *key, const char *pattern, att_bytes *out);

#endif
