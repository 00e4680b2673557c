#include "text/utf8.h"

#include <string.h>

/* The first byte determines the number of following bytes and the range of the second, which excludes overlong forms,
 * surrogates and values beyond U+10FFFF (Unicode 15, table 3-7). */
typedef struct lead {
    unsigned char first, last, more, low, high;
} lead;

static const lead leads[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F},
    {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

size_t att_utf8_decode(const char *text, size_t bytes, uint32_t *c)
{
    if (!text || !c)
        return 0;
    const unsigned char *s = (const unsigned char *)text;
    *c = s[0];
    if (s[0] < 0x80)
        return 1;
    *c = ATT_REPLACEMENT;
    const lead *l = leads, *end = leads + sizeof leads / sizeof leads[0];
    while (l < end && s[0] > l->last)
        l++;
    if (l == end || s[0] < l->first)
        return 1;

    uint32_t value = s[0] & (0x3Fu >> l->more);
    unsigned low = l->low, high = l->high;
    for (size_t i = 1; i <= l->more; i++) {
        if (i == bytes || s[i] < low || s[i] > high)
            return i;
        value = value << 6 | (s[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *c = value;
    return 1u + l->more;
}

size_t att_utf8_prefix(const char *s, size_t bytes)
{
    static const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t eight = 0;
    uint32_t c;
    for (size_t i = 0, n; i < bytes; i += n) {
        if (bytes - i >= sizeof eight)
            memcpy(&eight, s + i, n = sizeof eight);
        if (bytes - i >= sizeof eight && !(eight & high)) /* ASCII */
            continue;
        n = att_utf8_decode(s + i, bytes - i, &c);
        if (c == ATT_REPLACEMENT && !(n == 3 && (unsigned char)s[i] == 0xEF))
            return i;
    }
    return bytes;
}

bool att_utf8_valid(const char *s, size_t bytes) { return s && att_utf8_prefix(s, bytes) == bytes; }

size_t att_utf8_encode(uint32_t c, char out[4])
{
    if (!out)
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)((0xFF80u >> more & 0xFF) | c); /* 110xxxxx, 1110xxxx, 11110xxx */
    return more + 1;
}
