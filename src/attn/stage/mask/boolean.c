/* The caller's own table: true = attend. */
#include "attn/stage/stage.h"

#include <string.h>

enum { SIDE = 8 }; /* queries, and keys, that are read together as bytes of a 64-bit word */

static bool keep(const att_mask_block *b)
{
    return b->param->boolean[b->q * b->param->stride[0] + b->k * b->param->stride[1]] != 0;
}

/* Returns a word whose byte j is 1 if query q attends to key k + j. */
static uint64_t ones(const att_param_view *table, int64_t q, int64_t k, int64_t keys)
{
    const uint64_t low = UINT64_C(0x0101010101010101), rest = 0x7f * low;
    const uint8_t *row = table->boolean + q * table->stride[0] + k * table->stride[1];
    uint8_t byte[SIDE] = {0};
    uint64_t x;
    if (keys >= SIDE && table->stride[1] == 1)
        memcpy(byte, row, SIDE);
    else
        for (int64_t j = 0; j < keys && j < SIDE; j++)
            byte[j] = row[j * table->stride[1]];
    memcpy(&x, byte, SIDE);
    return (((x & rest) + rest) | x) >> 7 & low; /* tests all bits of a byte: true may be any nonzero value */
}

/* Sets bits: SIDE queries put their bits side by side into each key's byte. */
static void bits(const att_mask_block *b, uint64_t *bits)
{
    memset(bits, 0, (size_t)b->keys * sizeof *bits);
    for (int64_t j = 0; j < b->keys; j += SIDE)
        for (int64_t i = 0; i < b->queries; i += SIDE) {
            uint64_t x = 0;
            uint8_t byte[SIDE];
            for (int64_t r = 0; r < SIDE && i + r < b->queries; r++)
                x |= ones(b->param, b->q + i + r, b->k + j, b->keys - j) << r;
            memcpy(byte, &x, SIDE);
            for (int64_t c = 0; c < SIDE && j + c < b->keys; c++)
                bits[j + c] |= (uint64_t)byte[c] << i;
        }
}

static const att_param_shape table = {.name = "mask", .kind = ATT_PARAM_PER_PAIR, .dtype = ATT_BOOL};

static const att_mask mask = {
    .size = sizeof mask, .name = "boolean", .param = &table, .n_params = 1, .keep = keep, .bits = bits};
const att_mask *const att_mask_boolean = &mask;
