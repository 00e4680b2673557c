/* Base64 (RFC 4648), with the alphabet of chapter 4. */
#ifndef CLI_BASE_BASE64_H
#define CLI_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes bytes [n]. */
void cli_base64_write(FILE *f, const void *bytes, size_t n);
/* Decodes text [n] to `to` [3 (n / 4) + 3]; *bytes: how many. White space is skipped. False: it is not base64. */
bool cli_base64_read(const char *text, size_t n, unsigned char *to, size_t *bytes);

#endif
