/* Parts of quantized blocks, and their scales, as avx2.h and avx512.h load them. */
#ifndef ATT_SIMD_X86_BLOCKS_H
#define ATT_SIMD_X86_BLOCKS_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Returns the halves of 16 bytes: all low ones, all high ones. */
static inline __m256i v_halves_at(const uint8_t *q)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)q);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(x, 4), x), _mm256_set1_epi8(15));
}
/* Loads eight codes of f16 from p[]. */
ATT_INLINE __m128i v_codes_at(const uint8_t *const *p)
{
    uint16_t c[8];
    ATT_UNROLL (i, 8)
        memcpy(&c[i], p[i], sizeof c[i]);
    return _mm_set_epi16((int16_t)c[7], (int16_t)c[6], (int16_t)c[5], (int16_t)c[4], (int16_t)c[3], (int16_t)c[2],
                         (int16_t)c[1], (int16_t)c[0]);
}
/* Loads eight words from p[]. */
ATT_INLINE __m256i v_eight_words_at(const uint8_t *const *p)
{
    int w[8];
    ATT_UNROLL (i, 8)
        memcpy(&w[i], p[i], sizeof w[i]);
    return _mm256_set_epi32(w[7], w[6], w[5], w[4], w[3], w[2], w[1], w[0]);
}
/* Loads eight pairs of codes from p[] -> all first codes, then all second ones. */
ATT_INLINE __m256i v_code_pairs_at(const uint8_t *const *p)
{
    const __m128i apart = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    int c[8];
    ATT_UNROLL (i, 8)
        memcpy(&c[i], p[i], sizeof c[i]);
    const __m128i a = _mm_shuffle_epi8(_mm_set_epi32(c[3], c[2], c[1], c[0]), apart);
    const __m128i b = _mm_shuffle_epi8(_mm_set_epi32(c[7], c[6], c[5], c[4]), apart);
    return _mm256_set_m128i(_mm_unpackhi_epi64(a, b), _mm_unpacklo_epi64(a, b));
}

#endif
