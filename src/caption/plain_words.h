/* Words of a caption: lower case, without punctuation. */
#ifndef ATT_CAPTION_PLAIN_WORDS_H
#define ATT_CAPTION_PLAIN_WORDS_H

#include "io/bytes.h"

/* Adds the words of a text, separated by one space, to `out`. Returns their number. Letters, marks and digits of
 * Unicode are kept, in lower case (each becomes one character, whatever the language). Separators and control
 * characters separate words. All others are dropped, also within words. */
int64_t att_plain_words(att_byte_view text, att_bytes *out);
/* Returns the next word of a text of words separated by one space. It begins at *at, which moves to its end. Empty:
 * there is no word. */
att_byte_view att_next_plain_word(const char **at);

#endif
