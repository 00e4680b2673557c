/* The vocabulary on AVX-512 with BF16: that of avx512.h, and sums of products of pairs. */
// rank: 3
// arch: x86_64
// extends: avx512
// flags: -mavx512bf16
#ifdef ATT_SIMD_DETECT
static bool att_detect_avx512bf16(void) { return att_detect_avx512() && __builtin_cpu_supports("avx512bf16"); }
#else
#include "simd/avx512.h"
#define ATT_DOT2_BF16 /* has what is below */

typedef __m512bh vbf16; /* 2 ATT_LANES numbers of bf16 */

static inline vbf16 v_load_bf16(const uint16_t *p) { return (vbf16)_mm512_loadu_si512(p); }
/* Lane i: sum + a[2 i + 1] b[2 i + 1] + a[2 i] b[2 i], rounded to even in each step; denormals count as 0. */
static inline vf v_dot2_bf16(vf sum, vbf16 a, vbf16 b) { return _mm512_dpbf16_ps(sum, a, b); }
#endif
