/* UTF-8, besides att_utf8_decode, att_utf8_encode and att_utf8_valid. */
#ifndef ATT_UTF8_H
#define ATT_UTF8_H

#include "attend_text.h"

#define ATT_REPLACEMENT 0xFFFDu

/* How many of the first bytes of s [bytes] are valid UTF-8. */
size_t att_utf8_prefix(const char *s, size_t bytes);

#endif
