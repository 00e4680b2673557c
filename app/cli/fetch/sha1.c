#include "sha1.h"

#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

/* Returns the function of round t, with its constant: the square roots of 2, 3, 5 and 10, times 2^30. */
static uint32_t round_of(int t, uint32_t b, uint32_t c, uint32_t d)
{
    return t < 20   ? ((b & c) | (~b & d)) + 0x5a827999
           : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1
           : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                    : (b ^ c ^ d) + 0xca62c1d6;
}

static void hash_block(uint32_t state[5], const uint8_t block[64])
{
    uint32_t w[80], s[5];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
               block[4 * t + 3];
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    memcpy(s, state, sizeof s);
    for (int t = 0; t < 80; t++) {
        const uint32_t next = rotate(s[0], 5) + round_of(t, s[1], s[2], s[3]) + s[4] + w[t];
        memmove(s + 1, s, 4 * sizeof *s);
        s[2] = rotate(s[2], 30);
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += s[i];
}

void sha1_begin(sha1 *h) { *h = (sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}}; }

void sha1_add(sha1 *h, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    while (bytes > 0) {
        const size_t used = h->bytes % 64, n = bytes < 64 - used ? bytes : 64 - used;
        memcpy(h->block + used, p, n);
        h->bytes += n;
        p += n;
        bytes -= n;
        if (used + n == 64)
            hash_block(h->state, h->block);
    }
}

void sha1_end(sha1 *h, char text[SHA1_TEXT])
{
    const uint64_t bits = 8 * h->bytes;
    const uint8_t one = 0x80, zero = 0;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha1_add(h, &one, 1);
    while (h->bytes % 64 != 56)
        sha1_add(h, &zero, 1);
    sha1_add(h, length, sizeof length);
    for (int i = 0; i < 5; i++)
        snprintf(text + 8 * i, 9, "%08x", (unsigned)h->state[i]);
}
