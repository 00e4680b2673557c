/* Categories of characters as the `tokenizers` package has them: Unicode 16, where utf8proc and PCRE2 may have 14. */
#ifndef ATT_TEXT_PIPELINE_UNICODE_V16_H
#define ATT_TEXT_PIPELINE_UNICODE_V16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the general category: "Lu"; "Cn" if there is none. */
const char *att_char_category(uint32_t c);
/* Returns whether a character has the property White_Space. */
bool att_char_is_space(uint32_t c);
/* Returns whether \w of Rust's regular expressions matches a character. */
bool att_char_is_word(uint32_t c);
/* Returns whether a character is a mark for StripAccents, which uses Unicode 9. */
bool att_char_is_accent(uint32_t c);

typedef struct att_newer_range {
    uint32_t first, last;
    const char *category;
} att_newer_range;

/* Lists characters of Unicode 15 and 16; returns their number. */
size_t att_newer_chars(const att_newer_range **ranges);

#endif
