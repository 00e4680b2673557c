/* Character properties as the `tokenizers` package has them: categories of Unicode 8, decompositions of Unicode 9. */
#ifndef ATT_TEXT_UNICODE_V8_H
#define ATT_TEXT_UNICODE_V8_H

#include <stdint.h>

enum {
    ATT_CHAR_REMOVED = 1,     /* Cc, Cf, Co, U+0000, U+FFFD except tab, LF, CR; unassigned characters are not removed */
    ATT_CHAR_SPACE = 2,       /* White_Space */
    ATT_CHAR_PUNCTUATION = 4, /* P*, and ASCII that is neither letter nor digit */
    ATT_CHAR_MARK = 8,        /* Mn */
    ATT_CHAR_CJK = 16,        /* ideographs; each is a word */
};

#define ATT_MAX_DECOMPOSITION 4

/* Returns a sum of ATT_CHAR_*; 0: part of a word. */
unsigned att_char_class(uint32_t c);
/* Returns the canonical combining class; 0: a starter. */
int att_char_combining(uint32_t c);
/* Writes the canonical decomposition (NFD, before reordering), or c itself; returns its length. */
int att_char_decompose(uint32_t c, uint32_t out[ATT_MAX_DECOMPOSITION]);
/* Writes the lower case without context (final sigma, language); returns its length, 1 or 2. */
int att_char_lower(uint32_t c, uint32_t out[2]);

#endif
