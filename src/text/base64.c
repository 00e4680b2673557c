/* Converts bytes to base64, and back. */
#include "text/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void att_base64_write(att_bytes *text, att_byte_view data)
{
    const unsigned char *x = (const unsigned char *)data.data;
    for (size_t i = 0; i < data.bytes; i += 3) {
        const size_t n = data.bytes - i < 3 ? data.bytes - i : 3;
        const uint32_t bits = (uint32_t)x[i] << 16 | (n > 1 ? (uint32_t)x[i + 1] << 8 : 0) | (n > 2 ? x[i + 2] : 0);
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
        att_bytes_add(text, four, sizeof four);
    }
}

/* Returns the value of a digit, or -1 if c is not one. */
static int value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool att_base64_read(att_bytes *data, const char *text, size_t n)
{
    uint32_t bits = 0;
    size_t i = 0;
    for (; i < n && value_of(text[i]) >= 0; i++) {
        bits = bits << 6 | (uint32_t)value_of(text[i]);
        if (i % 4 > 0)
            att_bytes_add_number(data, bits >> (6 - 2 * (i % 4)) & 0xFF, 1);
    }
    const size_t padding = n - i;
    return n % 4 == 0 && padding < 3 && memcmp(text + i, "==", padding) == 0;
}
