/* Categories of characters as the `tokenizers` package has them: Unicode 16, where utf8proc and PCRE2 may have 14. */
#ifndef ATT_TEXT_PIPELINE_UNICODE_V16_H
#define ATT_TEXT_PIPELINE_UNICODE_V16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The general category: "Lu"; "Cn" if there is none. */
const char *att_char_category(uint32_t c);
/* White_Space */
bool att_char_is_space(uint32_t c);
/* \w of Rust's regular expressions */
bool att_char_is_word(uint32_t c);
/* A mark for StripAccents, which has Unicode 9 */
bool att_char_is_accent(uint32_t c);

typedef struct att_newer_range {
    uint32_t first, last;
    const char *category;
} att_newer_range;

/* Characters of Unicode 15 and 16; returns their number. */
size_t att_newer_chars(const att_newer_range **ranges);

#endif
