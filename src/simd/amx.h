/* The vocabulary on AMX with BF16 and INT8: that of avx512bf16.h, and products of tiles. */
// rank: 4
// arch: x86_64
// extends: avx512bf16
// flags: -mamx-tile -mamx-bf16 -mamx-int8 -mprfchw
#ifdef ATT_SIMD_DETECT
/* Not all versions of the compilers have names for these features. The system saves tiles only for processes that
 * request it (os.c). */
static bool att_detect_amx(void)
{
    enum { LEAF = 7, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
    uint32_t a, b, c, d;
    return att_cpu_saves(ATT_STATE_TILES) && att_detect_avx512bf16() && __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) &&
           (d & AMX_BF16) && (d & AMX_TILE) && (d & AMX_INT8);
}
#else
#include "simd/avx512bf16.h"
#include "simd/amx_tiles.h"
#define ATT_TILES_BF16 /* has the functions of amx_tiles.h */
#endif
