/* The caller's own table: true = attend. */
#include "attn/stage/stage.h"

#include <string.h>

enum { SIDE = 8 }; /* queries and keys that are looked at together: a word of bytes */

static bool keep(const att_head *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    return at->mask[q * at->mask_stride[0] + k * at->mask_stride[1]] != 0;
}

/* Byte j: 1 where query q attends to key k + j. */
static uint64_t ones(const att_head *at, int64_t q, int64_t k, int64_t keys)
{
    const uint64_t low = UINT64_C(0x0101010101010101), rest = 0x7f * low;
    const uint8_t *row = at->mask + q * at->mask_stride[0] + k * at->mask_stride[1];
    uint8_t byte[SIDE] = {0};
    uint64_t x;
    if (keys >= SIDE && at->mask_stride[1] == 1)
        memcpy(byte, row, SIDE);
    else
        for (int64_t j = 0; j < keys && j < SIDE; j++)
            byte[j] = row[j * at->mask_stride[1]];
    memcpy(&x, byte, SIDE);
    return (((x & rest) + rest) | x) >> 7 & low; /* any bit of a byte, whatever true is */
}

/* As many queries put their bits side by side into each key's byte. */
static void bits(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys,
                 uint64_t *bits)
{
    (void)user;
    memset(bits, 0, (size_t)keys * sizeof *bits);
    for (int64_t j = 0; j < keys; j += SIDE)
        for (int64_t i = 0; i < queries; i += SIDE) {
            uint64_t x = 0;
            uint8_t byte[SIDE];
            for (int64_t r = 0; r < SIDE && i + r < queries; r++)
                x |= ones(at, q + i + r, k + j, keys - j) << r;
            memcpy(byte, &x, SIDE);
            for (int64_t c = 0; c < SIDE && j + c < keys; c++)
                bits[j + c] |= (uint64_t)byte[c] << i;
        }
}

const att_mask att_mask_boolean = {.name = "boolean", .keep = keep, .bits = bits};
