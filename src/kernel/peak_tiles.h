/* The machine's limits on AMX tiles of bf16 and of int8: products of random tiles that stay in the registers. */
#ifndef ATT_KERNEL_PEAK_TILES_H
#define ATT_KERNEL_PEAK_TILES_H

#include "kernel/peak_words.h"

#include <stdint.h>

enum { EDGE = ATT_TILE_EDGE, SUMS = 4, OPERANDS = 4, ROUNDS = 4, BYTES = EDGE * sizeof(uint32_t) /* of a row */ };
typedef uint32_t tile_words[EDGE][EDGE];

/* Configures the tiles: 0 to 3 are sums, which begin at 0, 4 and 5 left operands, 6 and 7 right ones. */
static void begin(peak_words kind, tile_words *tile)
{
    peak_fill(kind, OPERANDS * EDGE * EDGE, tile[0][0]);
    v_tiles_begin(); /* after the words are written */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, tile[0], BYTES);
    _tile_loadd(5, tile[1], BYTES);
    _tile_loadd(6, tile[2], BYTES);
    _tile_loadd(7, tile[3], BYTES);
}

/* Releases the tiles. Returns the bits of the sums, and the operations of products of `numbers` numbers of a word. */
static double end(int numbers, int64_t repeats, tile_words *tile, double *operations)
{
    uint32_t all = 0;
    _tile_stored(0, tile[0], BYTES);
    _tile_stored(1, tile[1], BYTES);
    _tile_stored(2, tile[2], BYTES);
    _tile_stored(3, tile[3], BYTES);
    v_tiles_end();
    for (int i = 0; i < SUMS * EDGE * EDGE; i++)
        all ^= tile[i / (EDGE * EDGE)][i / EDGE % EDGE][i % EDGE];
    *operations = 2.0 * numbers * EDGE * EDGE * EDGE * SUMS * ROUNDS * (double)repeats;
    return all;
}

static double peak_of_bf16(int64_t repeats, double *operations)
{
    _Alignas(64) tile_words tile[OPERANDS];
    begin(peak_bf16_words, tile);
    for (int64_t r = 0; r < repeats; r++)
        ATT_UNROLL (u, ROUNDS) {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    return end(2, repeats, tile, operations);
}

static double peak_of_int8(int64_t repeats, double *operations)
{
    _Alignas(64) tile_words tile[OPERANDS];
    begin(peak_int8_words, tile);
    for (int64_t r = 0; r < repeats; r++)
        ATT_UNROLL (u, ROUNDS) {
            _tile_dpbssd(0, 4, 6);
            _tile_dpbssd(1, 4, 7);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
    return end(4, repeats, tile, operations);
}

#endif
