#include "hash.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, WORDS = BLOCK / 4 };

static uint32_t rotate_left(uint32_t x, int n) { return x << n | x >> (32 - n); }
static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* ---- SHA-1 */

/* Returns the function of round t, with its constant: the square roots of 2, 3, 5 and 10, times 2^30. */
static uint32_t round_of(int t, uint32_t b, uint32_t c, uint32_t d)
{
    return t < 20   ? ((b & c) | (~b & d)) + 0x5a827999
           : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1
           : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                    : (b ^ c ^ d) + 0xca62c1d6;
}

/* Runs the rounds of a block, whose words are w[0 .. WORDS), on s. */
static void sha1_rounds(uint32_t w[80], uint32_t s[8])
{
    for (int t = WORDS; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        const uint32_t next = rotate_left(s[0], 5) + round_of(t, s[1], s[2], s[3]) + s[4] + w[t];
        memmove(s + 1, s, 4 * sizeof *s);
        s[2] = rotate_left(s[2], 30);
        s[0] = next;
    }
}

/* ---- SHA-256 */

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes */
static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Runs the rounds of a block, whose words are w[0 .. WORDS), on s. */
static void sha256_rounds(uint32_t w[80], uint32_t s[8])
{
    for (int t = WORDS; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] =
            w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    for (int t = 0; t < 64; t++) {
        const uint32_t a = s[0], e = s[4];
        const uint32_t t1 =
            s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + constant[t] + w[t];
        const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
}

/* ---- what both have */

static const struct {
    int words; /* of the hash */
    uint32_t state[8];
    void (*rounds)(uint32_t w[80], uint32_t s[8]);
} kinds[] = {
    [HASH_SHA1] = {5, {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}, sha1_rounds},
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes */
    [HASH_SHA256] = {8,
                     {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
                     sha256_rounds}};

static void hash_block(hash *h)
{
    uint32_t w[80], s[8];
    for (int t = 0; t < WORDS; t++)
        w[t] = (uint32_t)h->block[4 * t] << 24 | (uint32_t)h->block[4 * t + 1] << 16 |
               (uint32_t)h->block[4 * t + 2] << 8 | h->block[4 * t + 3];
    memcpy(s, h->state, sizeof s);
    kinds[h->kind].rounds(w, s);
    for (int i = 0; i < kinds[h->kind].words; i++)
        h->state[i] += s[i];
}

void hash_begin(hash *h, hash_kind kind)
{
    *h = (hash){.kind = kind};
    memcpy(h->state, kinds[kind].state, sizeof h->state);
}

void hash_add(hash *h, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    while (bytes > 0) {
        const size_t used = h->bytes % BLOCK, n = bytes < BLOCK - used ? bytes : BLOCK - used;
        memcpy(h->block + used, p, n);
        h->bytes += n;
        p += n;
        bytes -= n;
        if (used + n == BLOCK)
            hash_block(h);
    }
}

void hash_end(hash *h, char text[HASH_TEXT])
{
    const uint64_t bits = 8 * h->bytes;
    const uint8_t one = 0x80, zero = 0;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    hash_add(h, &one, 1);
    while (h->bytes % BLOCK != BLOCK - sizeof length)
        hash_add(h, &zero, 1);
    hash_add(h, length, sizeof length);
    for (int i = 0; i < kinds[h->kind].words; i++)
        snprintf(text + 8 * i, 9, "%08x", (unsigned)h->state[i]);
}
