#include "base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(FILE *f, const void *bytes, size_t n)
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
