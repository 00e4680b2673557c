/* Eight tiles of AMX, each of 16 rows of 16 floats or of 16 words of two numbers of bf16 (avx512bf16.h): kernels call
 * the compiler's _tile_loadd and so on, because a tile's number must be a constant. */
#ifndef ATT_AMX_TILES_H
#define ATT_AMX_TILES_H

#include <stdint.h>

enum { ATT_TILE_EDGE = 16 };

/* Orders what was written before tiles are loaded: to compilers _tile_loadd reads no memory. */
static inline void v_tiles_written(void) { __asm__ volatile("" ::: "memory"); }

typedef struct att_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} att_tile_config;

/* Configures the tiles of this thread as a constant specifies, until v_tiles_end. */
static inline void v_tiles_configure(const att_tile_config *config)
{
    _tile_loadconfig(config);
    v_tiles_written();
}
static inline void v_tiles_begin(void)
{
    static const att_tile_config all = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    v_tiles_configure(&all);
}
static inline void v_tiles_end(void)
{
    __asm__ volatile("" ::: "memory");
    _tile_release();
}

#endif
