/* Text as a terminal shows it: code points, columns, padding. Independent of the locale. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How many bytes the character at s [bytes > 0] has; where it is not UTF-8 minus the number of bytes that together are
 * replaced by one U+FFFD: those that could begin a character (Unicode, "maximal subpart"). */
int utf8_length(const char *s, size_t bytes);
/* The code point at *s (zero-terminated), which moves behind it; U+FFFD for a single byte that is not UTF-8. */
uint32_t utf8_next(const char **s);
/* Whether s [bytes] is UTF-8. */
int utf8_valid(const char *s, size_t bytes);
/* Columns of one code point: 0 (combining), 1, or 2 (East Asian wide, emoji). */
int utf8_columns(uint32_t code);
/* Columns of a string; a control character counts as the one U+FFFD that is shown for it. */
int utf8_width(const char *s);
/* Writes s in exactly `width` columns: padded on the left (right != 0: flush right) or on the right, or cut
 * with an ellipsis. A control character shows as U+FFFD. */
void utf8_field(FILE *f, const char *s, int width, int right);
/* Writes one code point. */
void utf8_put(FILE *f, uint32_t code);

#endif
