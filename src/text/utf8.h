/* UTF-8; each maximal invalid subpart is read as one U+FFFD (Unicode 15, section 3.9; Python's errors='replace'). */
#ifndef ATT_UTF8_H
#define ATT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_REPLACEMENT 0xFFFDu

/* Decodes the first character of s [bytes], bytes > 0; returns its length, at least 1. */
size_t att_utf8_decode(const unsigned char *s, size_t bytes, uint32_t *c);
/* How many of the first bytes of s [bytes] are valid UTF-8; and are all? */
size_t att_utf8_prefix(const char *s, size_t bytes);
bool att_utf8_valid(const char *s, size_t bytes);
/* Encodes c, which is not a surrogate; returns its length. */
size_t att_utf8_encode(uint32_t c, char out[4]);

#endif
