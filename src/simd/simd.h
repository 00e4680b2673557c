/* Includes the vocabulary of the instruction set for which this file is compiled. The build defines ATT_SIMD_NAME
 * (avx2), the name of the header. */
#ifndef ATT_SIMD_H
#define ATT_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_ISA_JOIN2(name, isa) name##_##isa
#define ATT_ISA_JOIN(name, isa) ATT_ISA_JOIN2(name, isa)
#define ATTEND_ISA(name) ATT_ISA_JOIN(name, ATT_SIMD_NAME) /* name_avx2 */

/* A loop over the registers of a tile: ATT_UNROLL (r, rows) { ... }. Its arrays become registers only when it is
 * unrolled completely. */
#if defined(__clang__)
#define ATT_UNROLL(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define ATT_UNROLL(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

#define ATT_INLINE static inline __attribute__((always_inline))

/* The unequal steps of IQ4, whose weights are about normal */
#define ATT_IQ4_STEPS -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

#define ATT_SIMD_TEXT2(x) #x
#define ATT_SIMD_TEXT(x) ATT_SIMD_TEXT2(x)
#include ATT_SIMD_TEXT(ATT_SIMD_NAME.h)

/* v_ldexp_flushed is a 2^floor(x), or 0 if x < -126. It must be between v_flush_begin and v_flush_end, which gets the
 * result of the former. Other numbers below 2^-126 may become 0 there, too. */
#if !defined(ATT_SIMD_DETECT) && !defined(ATT_FLUSHES)
static inline unsigned v_flush_begin(void) { return 0; }
static inline void v_flush_end(unsigned before) { (void)before; }
static inline vf v_ldexp_flushed(vf a, vf x)
{
    return v_select(v_lt(x, v_set(-126)), v_set(0), v_ldexp(a, v_floor(x)));
}
#endif

#endif
