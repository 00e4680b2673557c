/* Words of a caption: lower case, without punctuation. */
#ifndef ATT_CAPTION_PLAIN_WORDS_H
#define ATT_CAPTION_PLAIN_WORDS_H

#include "io/bytes.h"

/* Adds the words of a text, separated by one space, to `out` -> their number. Letters, marks and digits of Unicode
 * stay, in lower case (one character each, whatever the language); separators and control characters separate words;
 * all others are dropped, also within words. */
int64_t att_plain_words(att_byte_view text, att_bytes *out);
/* Returns the next word of a text of words separated by one space, which begins at *at; *at moves after it. Empty:
 * none. */
att_byte_view att_next_plain_word(const char **at);

#endif
