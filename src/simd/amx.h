/* The vocabulary on AMX with BF16: that of avx512bf16.h, and products of tiles. */
// rank: 4
// arch: x86_64
// extends: avx512bf16
// flags: -mamx-tile -mamx-bf16
#ifdef ATT_SIMD_DETECT
/* Not all versions of the compilers have names for these features. The system saves tiles only for processes that
 * request it (os.c). */
static bool att_detect_amx(void)
{
    enum { LEAF = 7, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    uint32_t a, b, c, d;
    return att_cpu_saves(ATT_STATE_TILES) && att_detect_avx512bf16() && __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) &&
           (d & AMX_BF16) && (d & AMX_TILE);
}
#else
#include "simd/avx512bf16.h"
#define ATT_TILES_BF16 /* has the functions below */

/* Eight tiles of 16 rows of 16 floats, or of 16 words of two numbers of bf16 (avx512bf16.h): kernels call the
 * compiler's _tile_loadd and so on, because a tile's number must be a constant. */
enum { ATT_TILE_EDGE = 16 };

static inline void v_tiles_begin(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&all);
    __asm__ volatile("" ::: "memory"); /* what tiles read must have been written */
}
static inline void v_tiles_end(void)
{
    __asm__ volatile("" ::: "memory");
    _tile_release();
}
#endif
