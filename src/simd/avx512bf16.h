/* The vocabulary on AVX-512 with BF16: that of avx512.h, and sums of products of pairs. */
// rank: 3
// arch: x86_64
// extends: avx512
// flags: -mavx512bf16 -mavx512vnni
#ifdef ATT_SIMD_DETECT
static bool att_detect_avx512bf16(void)
{
    return att_detect_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
}
#else
#include "simd/avx512.h"

/* Words are two bf16, the lower address in the lower half. Lane i: sum + a[2 i + 1] b[2 i + 1] + a[2 i] b[2 i], rounded
 * to even in each step; denormals count as 0. */
static inline vf v_dot2_words(vf a, vf b, vf sum) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
static inline __m512i v_halves(const uint16_t *p, int n) /* n numbers, in the lower halves of words */
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)v_first(n), p));
}
static inline vf v_words(__m512i low, __m512i high)
{
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
/* Words of two vectors, rounded to the nearest, to even between two; denormals become 0. */
static inline vf v_words_of(vf low, vf high)
{
    static const uint16_t order[2 * ATT_LANES] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(high, low); /* all of low, then all of high */
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_loadu_si512(order), halves));
}
/* Words of 32 numbers in a row, rounded in the same way. */
static inline vf v_pairs_of(vf first, vf second) { return (vf)_mm512_cvtne2ps_pbh(second, first); }
#endif
