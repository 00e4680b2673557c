/* Text on a terminal: code points, columns, padding. Independent of the locale. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the length of the character at s [bytes > 0]; if it is not UTF-8, minus the length of the maximal subpart,
 * which is replaced by one U+FFFD. */
int utf8_length(const char *s, size_t bytes);
/* Decodes the character at *s (zero-terminated) and advances *s. Returns U+FFFD if it is not UTF-8, as att_utf8_decode
 * does. */
uint32_t utf8_next(const char **s);
/* Returns the bytes of the characters of s (zero-terminated) that are whole within the first `bytes`, for "%.*s" */
int utf8_prefix(const char *s, int bytes);
/* Returns whether a character can control a terminal, or the order or lines of the text around it: C0, DEL, C1, line
 * and paragraph separators, and marks of the direction of text. */
int utf8_is_control(uint32_t code);
/* Returns the columns of one code point: 0 (combining), 1, or 2 (East Asian wide, emoji). */
int utf8_columns(uint32_t code);
/* Returns the columns of a string. A control character is shown as U+FFFD, one column. */
int utf8_width(const char *s);
/* Writes s in exactly `width` columns: padded on the left (right != 0: flush right) or on the right, or truncated with
 * an ellipsis. A control character is shown as U+FFFD. */
void utf8_field(FILE *f, const char *s, int width, int right);
/* Writes one code point. */
void utf8_put(FILE *f, uint32_t code);

#endif
