/* Base64 (RFC 4648, chapter 4): bytes as text, as tokenizer.json stores the rules of a charsmap. */
#ifndef ATT_TEXT_BASE64_H
#define ATT_TEXT_BASE64_H

#include "io/bytes.h"

/* Adds data as base64, with padding. */
void att_base64_write(att_bytes *text, att_byte_view data);
/* Adds the bytes that text [n] stands for; returns false if it is not base64: its length must be a multiple of 4. */
bool att_base64_read(att_bytes *data, const char *text, size_t n);

#endif
