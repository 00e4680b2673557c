/* The vocabulary on AVX2 with FMA. */
// rank: 1
// arch: x86_64
// flags: -mavx2 -mfma -mf16c
#ifdef ATT_SIMD_DETECT
/* F16C is older than AVX2, and clang 14 has no name for it. */
static bool att_detect_avx2(void)
{
    return att_cpu_saves(ATT_STATE_YMM) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#include "simd/x86_blocks.h"
#include <immintrin.h>
#define ATT_LANES 8
#define ATT_PANEL_VECTORS 2
#define ATT_TILE_ROWS 6
#define ATT_TALL_ROWS ATT_TILE_ROWS
#define ATT_WIDE_ROWS 2

typedef __m256 vf;
typedef __m256 vm;

static inline vf v_set(float x) { return _mm256_set1_ps(x); }
static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
static inline vm v_first(int n) /* the first n lanes */
{
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}
static inline void v_store_int8(int8_t *p, vf a)
{
    const __m256i x = _mm256_cvtps_epi32(a);
    const __m128i y = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(y, y));
}
static inline vf v_load_n(const float *p, int n) { return _mm256_maskload_ps(p, _mm256_castps_si256(v_first(n))); }
static inline void v_store_n(float *p, vf x, int n) /* a masked store takes AMD some ten times as long as a whole one */
{
    if (n < ATT_LANES)
        _mm256_maskstore_ps(p, _mm256_castps_si256(v_first(n)), x);
    else
        v_store(p, x);
}
static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf v_fma_onto(vf a, vf b, vf sum) /* see scalar.h */
{
    __asm__("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
}
static inline vf v_add_whole(vf a, vf b)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
static inline __m256i v_fours(vf a, vf b)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b)); /* below 2^15 */
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
static inline vf v_dot4(vf a, vf b, vf sum) /* see scalar.h */
{
    return v_add_whole(sum, _mm256_castsi256_ps(v_fours(a, b)));
}
static inline vf v_dot4_onto(vf a, vf b, vf sum) /* see v_fma_onto */
{
    __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(v_fours(a, b)));
    return sum;
}
enum { ATT_SIGNED4_START = 0 };
static inline vf v_signed4_word(vf w) { return w; }
static inline vf v_signed4_left(vf w) { return _mm256_castsi256_ps(_mm256_abs_epi8(_mm256_castps_si256(w))); }
static inline vf v_signed4(vf left, vf w, vf x, vf sum) /* |w| (w < 0 ? -x : x), where 2 * 128 * 127 is below 2^15 */
{
    const __m256i y = _mm256_sign_epi8(_mm256_castps_si256(x), _mm256_castps_si256(w));
    return v_dot4(left, _mm256_castsi256_ps(y), sum);
}
static inline vf v_block(const uint8_t *q, int half, int64_t next) /* all of it; see scalar.h */
{
    (void)half, (void)next;
    return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)q));
}
static inline vf v_block_of_halves(const uint8_t *q, int half, int64_t next)
{
    (void)half, (void)next;
    return _mm256_castsi256_ps(v_halves_at(q));
}
static inline vf v_pair_sums(vf a, vf b,
                             bool doubles) /* of each half: a0 + a2, b0 + b2, a1 + a3, b1 + b3, or of doubles */
{
    const __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    return _mm256_castsi256_ps(doubles ? _mm256_add_epi32(_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y))
                                       : _mm256_add_epi32(_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y)));
}
ATT_INLINE void v_sum_words(const vf t[ATT_LANES], vf y[1])
{
    vf four[2];
    ATT_UNROLL (i, 2)
        four[i] = v_pair_sums(v_pair_sums(t[4 * i], t[4 * i + 1], false),
                              v_pair_sums(t[4 * i + 2], t[4 * i + 3], false), true);
    y[0] = v_add_whole(_mm256_permute2f128_ps(four[0], four[1], 0x20), _mm256_permute2f128_ps(four[0], four[1], 0x31));
}
ATT_INLINE vf v_from_f16_at(const uint8_t *const p[ATT_LANES]) { return _mm256_cvtph_ps(v_codes_at(p)); }
ATT_INLINE void v_from_f16_pairs_at(const uint8_t *const p[ATT_LANES], vf *first, vf *second)
{
    const __m256i codes = v_code_pairs_at(p);
    *first = _mm256_cvtph_ps(_mm256_castsi256_si128(codes));
    *second = _mm256_cvtph_ps(_mm256_extracti128_si256(codes, 1));
}
ATT_INLINE vf v_words_at(const uint8_t *const p[ATT_LANES]) { return _mm256_castsi256_ps(v_eight_words_at(p)); }
static inline vf v_steps(vf x)
{
    const __m256i steps = _mm256_broadcastsi128_si256(_mm_setr_epi8(ATT_IQ4_STEPS));
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(steps, _mm256_castps_si256(x)));
}
static inline vf v_from_whole(vf a) { return _mm256_cvtepi32_ps(_mm256_castps_si256(a)); }
static inline vf v_to_whole(vf a) { return _mm256_castsi256_ps(_mm256_cvtps_epi32(a)); }
static inline vm v_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm v_is_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
static inline vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); } /* b if either is NaN */
static inline vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf v_abs(vf a) { return _mm256_andnot_ps(v_set(-0.0f), a); }
static inline vf v_sign_of(vf mag, vf sign) { return _mm256_or_ps(v_abs(mag), _mm256_and_ps(v_set(-0.0f), sign)); }
static inline vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf v_floor(vf a) { return _mm256_floor_ps(a); }
static inline vf v_rest(vf a) { return v_sub(a, v_round(a)); }
static inline vf v_fraction(vf a) { return v_sub(a, v_floor(a)); }
static inline vf v_ldexp(vf a, vf n) /* a 2^n, n whole, -126 <= n <= 127 */
{
    const __m256i e = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(a, _mm256_castsi256_ps(e));
}
/* a = m 2^n with m from sqrt(1/2) to sqrt(2); gives m. a is normal, > 0. */
static inline vf v_split(vf a, vf *n)
{
    const __m256i x = _mm256_castps_si256(a), above = _mm256_sub_epi32(x, _mm256_set1_epi32(0x3f3504f3));
    *n = _mm256_cvtepi32_ps(_mm256_srai_epi32(above, 23));
    return _mm256_castsi256_ps(_mm256_sub_epi32(x, _mm256_and_si256(above, _mm256_set1_epi32((int)0xff800000))));
}
static inline vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline float v_sum(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
static inline float v_top(vf a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
static inline vf v_from_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
static inline vf v_from_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
/* Rounded to the nearest, to even between two; NaN stays NaN. */
static inline void v_to_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline void v_to_bf16(uint16_t *p, vf x)
{
    const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256 quiet = _mm256_or_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(1 << 22)));
    const __m256i y = _mm256_srli_epi32(_mm256_castps_si256(v_select(v_is_nan(x), quiet, _mm256_castsi256_ps(up))), 16);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1)));
}
/* x[i][j] <-> x[j][i]: pairs, fours, halves */
ATT_INLINE void v_transpose(vf x[ATT_LANES])
{
    vf y[8];
    ATT_UNROLL (i, 4) {
        y[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
        y[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    }
    ATT_UNROLL (i, 2)
        ATT_UNROLL (j, 2) {
            x[4 * i + 2 * j] = _mm256_shuffle_ps(y[4 * i + j], y[4 * i + j + 2], 0x44);
            x[4 * i + 2 * j + 1] = _mm256_shuffle_ps(y[4 * i + j], y[4 * i + j + 2], 0xee);
        }
    ATT_UNROLL (i, 4) {
        y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    ATT_UNROLL (i, 8)
        x[i] = y[i];
}
/* Returns a vector with lane i of a if bit i is set, otherwise of b. */
static inline vf v_pick(uint32_t bits, vf a, vf b)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i on = _mm256_and_si256(_mm256_set1_epi32((int)bits), lane);
    return v_select(_mm256_castsi256_ps(_mm256_cmpeq_epi32(on, lane)), a, b);
}
/* Unsigned numbers of 64 bits, ATT_LANES / 2 in a vector. */
typedef __m256i vw;
static inline vw w_set(uint64_t x) { return _mm256_set1_epi64x((long long)x); }
static inline vw w_xor(vw a, vw b) { return _mm256_xor_si256(a, b); }
static inline vw w_mul(vw a, vw b) { return _mm256_mul_epu32(a, b); } /* of the low 32 bits of each */
static inline vw w_high(vw a) { return _mm256_srli_epi64(a, 32); }
/* ATT_LANES words <-> the low halves of two vectors, in an order of their own; at_least: bit i is p[i] >= x. */
static inline void w_widen(const uint32_t *p, vw a[2])
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    a[0] = _mm256_unpacklo_epi32(x, x);
    a[1] = _mm256_unpackhi_epi32(x, x);
}
static inline uint32_t w_at_least(const vw a[2], uint32_t x)
{
    const __m256 p = _mm256_shuffle_ps(_mm256_castsi256_ps(a[0]), _mm256_castsi256_ps(a[1]), 0x88);
    const __m256i top = _mm256_max_epu32(_mm256_castps_si256(p), _mm256_set1_epi32((int)x));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(top, _mm256_castps_si256(p))));
}
static inline vf v_keep(vf a)
{
    __asm__("" : "+x"(a));
    return a;
}
#endif
