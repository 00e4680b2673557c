/* Functions for UTF-8 in addition to the public ones. */
#ifndef ATT_UTF8_H
#define ATT_UTF8_H

#include "attend_text.h"

#define ATT_REPLACEMENT 0xFFFDu

/* Returns how many of the first bytes of s [bytes] are valid UTF-8. */
size_t att_utf8_prefix(const char *s, size_t bytes);

#endif
