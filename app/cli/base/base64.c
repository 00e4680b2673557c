#include "base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cli_base64_write(FILE *f, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    char text[1024];
    size_t used = 0;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t x = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        text[used++] = alphabet[x >> 18];
        text[used++] = alphabet[x >> 12 & 63];
        text[used++] = left > 1 ? alphabet[x >> 6 & 63] : '=';
        text[used++] = left > 2 ? alphabet[x & 63] : '=';
        if (used == sizeof text) {
            fwrite(text, 1, used, f);
            used = 0;
        }
    }
    fwrite(text, 1, used, f);
}

/* Returns the value of a character; 64: it is none. */
static unsigned value_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (unsigned)(at - alphabet) : 64;
}

bool cli_base64_read(const char *text, size_t n, unsigned char *to, size_t *bytes)
{
    uint32_t x = 0;
    unsigned digits = 0, padding = 0;
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr(" \t\r\n", text[i]) && text[i])
            continue;
        const unsigned v = value_of(text[i]);
        if (text[i] == '=')
            padding++;
        else if (v == 64 || padding > 0)
            return false;
        x = x << 6 | (v & 63);
        if (++digits % 4 > 0)
            continue;
        for (int shift = 16; shift >= 0; shift -= 8)
            to[(*bytes)++] = (unsigned char)(x >> shift);
    }
    *bytes -= padding < 3 ? padding : 0;
    return digits % 4 == 0 && padding < 3;
}
