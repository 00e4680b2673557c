/* UTF-8, with each maximal invalid subpart read as one U+FFFD (Unicode 15, section 3.9; Python's errors='replace'). */
#ifndef ATT_UTF8_H
#define ATT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_REPLACEMENT 0xFFFDu

/* The first character of s[bytes], bytes > 0; returns how many bytes it took, at least 1. */
size_t att_utf8_decode(const unsigned char *s, size_t bytes, uint32_t *c);
/* Whether s[bytes] is valid. */
bool att_utf8_valid(const char *s, size_t bytes);
/* Writes c, a code point that is no surrogate; returns how many bytes. */
size_t att_utf8_encode(uint32_t c, char out[4]);

#endif
