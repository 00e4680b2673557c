/* The vocabulary on AVX-512 (F, DQ, BW, VL). */
// rank: 2
// arch: x86_64
// flags: -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mf16c -mprefer-vector-width=512 -falign-functions=64
#ifdef ATT_SIMD_DETECT
static bool att_detect_avx512(void)
{
    return att_cpu_saves(ATT_STATE_ZMM) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}
#else
#include "simd/x86_blocks.h"
#include <immintrin.h>
#define ATT_LANES 16
#define ATT_PANEL_VECTORS 2
#define ATT_TILE_ROWS 8
#define ATT_TALL_ROWS 12 /* rows of tiles of scores, if a row is short */
#define ATT_WIDE_ROWS 6  /* ten loads for 24 multiply-adds; eight rows of one panel need ten for 16 */

typedef __m512 vf;
typedef __mmask16 vm;

static inline vf v_set(float x) { return _mm512_set1_ps(x); }
static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
static inline vm v_first(int n) { return (vm)((1u << n) - 1); } /* the first n lanes */
static inline void v_store_int8(int8_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a)));
}
static inline vf v_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
static inline void v_store_n(float *p, vf x, int n) { _mm512_mask_storeu_ps(p, v_first(n), x); }
static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf v_fma_onto(vf a, vf b, vf sum) /* see scalar.h */
{
    __asm__("vfmadd231ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
static inline vf v_dot4(vf a, vf b, vf sum) /* see scalar.h */
{
#ifdef __AVX512VNNI__
    return _mm512_castsi512_ps(
        _mm512_dpbusd_epi32(_mm512_castps_si512(sum), _mm512_castps_si512(a), _mm512_castps_si512(b)));
#else
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)); /* below 2^15 */
    const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(sum), fours));
#endif
}
static inline vf v_dot4_onto(vf a, vf b, vf sum) /* see v_fma_onto */
{
#ifdef __AVX512VNNI__
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return v_dot4(a, b, sum);
#endif
}
#ifdef __AVX512VNNI__ /* (w + 128) x */
enum { ATT_SIGNED4_START = -128 };
static inline vf v_signed4_word(vf w)
{
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(w), _mm512_set1_epi8((char)0x80)));
}
static inline vf v_signed4_left(vf w) { return w; }
static inline vf v_signed4(vf left, vf w, vf x, vf sum)
{
    (void)left;
    return v_dot4_onto(w, x, sum);
}
#else                 /* |w| (w < 0 ? -x : x), where 2 * 128 * 127 is below 2^15 */
enum { ATT_SIGNED4_START = 0 };
static inline vf v_signed4_word(vf w) { return w; }
static inline vf v_signed4_left(vf w) { return _mm512_castsi512_ps(_mm512_abs_epi8(_mm512_castps_si512(w))); }
static inline vf v_signed4(vf left, vf w, vf x, vf sum)
{
    const __m512i y = _mm512_castps_si512(x);
    const __mmask64 negative = _mm512_movepi8_mask(_mm512_castps_si512(w));
    return v_dot4(left, _mm512_castsi512_ps(_mm512_mask_sub_epi8(y, negative, _mm512_setzero_si512(), y)), sum);
}
#endif
static inline vf v_two_blocks(__m256i a, __m256i b)
{
    return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}
static inline vf v_block(const uint8_t *q, int half, int64_t next) /* two of them; see scalar.h */
{
    (void)half;
    return v_two_blocks(_mm256_loadu_si256((const __m256i *)q), _mm256_loadu_si256((const __m256i *)(q + next)));
}
static inline vf v_block_of_halves(const uint8_t *q, int half, int64_t next)
{
    (void)half;
    return v_two_blocks(v_halves_at(q), v_halves_at(q + next));
}
static inline vf v_add_whole(vf a, vf b)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
ATT_INLINE vf v_from_f16_at(const uint8_t *const p[ATT_LANES])
{
    return _mm512_cvtph_ps(_mm256_set_m128i(v_codes_at(p + 8), v_codes_at(p)));
}
ATT_INLINE void v_from_f16_pairs_at(const uint8_t *const p[ATT_LANES], vf *first, vf *second)
{
    const __m256i a = v_code_pairs_at(p), b = v_code_pairs_at(p + 8);
    *first = _mm512_cvtph_ps(_mm256_permute2x128_si256(a, b, 0x20));
    *second = _mm512_cvtph_ps(_mm256_permute2x128_si256(a, b, 0x31));
}
ATT_INLINE vf v_words_at(const uint8_t *const p[ATT_LANES])
{
    return v_two_blocks(v_eight_words_at(p), v_eight_words_at(p + 8));
}
static inline vf v_steps(vf x)
{
    const __m512i steps = _mm512_broadcast_i32x4(_mm_setr_epi8(ATT_IQ4_STEPS));
    return _mm512_castsi512_ps(_mm512_shuffle_epi8(steps, _mm512_castps_si512(x)));
}
static inline vf v_from_whole(vf a) { return _mm512_cvtepi32_ps(_mm512_castps_si512(a)); }
static inline vf v_to_whole(vf a) { return _mm512_castsi512_ps(_mm512_cvtps_epi32(a)); }
static inline vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm v_is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); } /* b if either is NaN */
static inline vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf v_abs(vf a) { return _mm512_abs_ps(a); }
static inline vf v_sign_of(vf mag, vf sign) { return _mm512_or_ps(v_abs(mag), _mm512_and_ps(v_set(-0.0f), sign)); }
static inline vf v_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf v_rest(vf a) { return _mm512_reduce_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf v_ldexp(vf a, vf n) { return _mm512_scalef_ps(a, n); } /* a 2^n, n whole, -126 <= n <= 127 */
#define ATT_FLUSHES /* in hardware: see simd.h */
static inline unsigned v_flush_begin(void)
{
    enum { FLUSH_TO_ZERO = 0x8000 };
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_TO_ZERO);
    __asm__ volatile("" ::: "memory"); /* what follows is computed from what is loaded after this */
    return before;
}
static inline void v_flush_end(unsigned before)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(before);
}
static inline vf v_ldexp_flushed(vf a, vf x) { return _mm512_scalef_ps(a, x); }
/* A table of sixteen numbers fits a register (math.h): returns a minus the sixteenth at or below it, and the table's
 * number for that sixteenth's fraction. */
#define ATT_SIXTEENTHS
static inline vf v_sixteenth(vf a) { return _mm512_reduce_ps(a, 4 << 4 | _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf v_of_sixteenth(const float table[16], vf a)
{
    const vf at = _mm512_add_round_ps(a, v_set(0x1.8p19f), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return _mm512_permutexvar_ps(_mm512_castps_si512(at), _mm512_load_ps(table));
}
/* a = m 2^n with m from sqrt(1/2) to sqrt(2); gives m. a is normal, > 0. */
static inline vf v_split(vf a, vf *n)
{
    const __m512i x = _mm512_castps_si512(a), above = _mm512_sub_epi32(x, _mm512_set1_epi32(0x3f3504f3));
    *n = _mm512_cvtepi32_ps(_mm512_srai_epi32(above, 23));
    return _mm512_castsi512_ps(_mm512_sub_epi32(x, _mm512_and_si512(above, _mm512_set1_epi32((int)0xff800000))));
}
static inline vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline float v_sum(vf a)
{
    const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
static inline float v_top(vf a)
{
    const __m256 y = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
static inline vf v_from_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
static inline vf v_from_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
/* Rounded to the nearest, to even between two; NaN stays NaN. */
static inline void v_to_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline void v_to_bf16(uint16_t *p, vf x)
{
    const __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(1 << 22));
    const __m512i y = _mm512_mask_blend_epi32(v_is_nan(x), up, quiet);
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(y, 16)));
}
/* x[i][j] <-> x[j][i]: pairs, fours, then quarters of a register */
ATT_INLINE void v_transpose(vf x[ATT_LANES])
{
    vf y[16];
    ATT_UNROLL (i, 8) {
        y[2 * i] = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]);
        y[2 * i + 1] = _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    }
    ATT_UNROLL (i, 4)
        ATT_UNROLL (j, 2) {
            x[4 * i + 2 * j] = _mm512_shuffle_ps(y[4 * i + j], y[4 * i + j + 2], 0x44);
            x[4 * i + 2 * j + 1] = _mm512_shuffle_ps(y[4 * i + j], y[4 * i + j + 2], 0xee);
        }
    ATT_UNROLL (i, 4)
        ATT_UNROLL (j, 2) {
            y[8 * j + i] = _mm512_shuffle_f32x4(x[8 * j + i], x[8 * j + i + 4], 0x88);
            y[8 * j + i + 4] = _mm512_shuffle_f32x4(x[8 * j + i], x[8 * j + i + 4], 0xdd);
        }
    ATT_UNROLL (i, 8) {
        x[i] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0x88);
        x[i + 8] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0xdd);
    }
}
/* Adds the words of each block; those of block i are lanes 8 i to 8 i + 7. */
ATT_INLINE void v_sum_words(const vf t[ATT_LANES], vf y[2])
{
    vf x[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        x[i] = t[i];
    v_transpose(x);
    ATT_UNROLL (i, 2)
        y[i] =
            v_add_whole(v_add_whole(v_add_whole(x[8 * i], x[8 * i + 1]), v_add_whole(x[8 * i + 2], x[8 * i + 3])),
                        v_add_whole(v_add_whole(x[8 * i + 4], x[8 * i + 5]), v_add_whole(x[8 * i + 6], x[8 * i + 7])));
}
/* Returns a vector with lane i of a if bit i is set, otherwise of b. */
static inline vf v_pick(uint32_t bits, vf a, vf b) { return _mm512_mask_blend_ps((vm)bits, b, a); }
/* Unsigned numbers of 64 bits, ATT_LANES / 2 in a vector. */
typedef __m512i vw;
static inline vw w_set(uint64_t x) { return _mm512_set1_epi64((long long)x); }
static inline vw w_xor(vw a, vw b) { return _mm512_xor_si512(a, b); }
static inline vw w_mul(vw a, vw b) { return _mm512_mul_epu32(a, b); } /* of the low 32 bits of each */
static inline vw w_high(vw a) { return _mm512_srli_epi64(a, 32); }
/* ATT_LANES words <-> the low halves of two vectors, in an order of their own; at_least: bit i is p[i] >= x. */
static inline void w_widen(const uint32_t *p, vw a[2])
{
    const __m512i x = _mm512_loadu_si512(p);
    a[0] = _mm512_unpacklo_epi32(x, x);
    a[1] = _mm512_unpackhi_epi32(x, x);
}
static inline uint32_t w_at_least(const vw a[2], uint32_t x)
{
    const __m512 p = _mm512_shuffle_ps(_mm512_castsi512_ps(a[0]), _mm512_castsi512_ps(a[1]), 0x88);
    return _mm512_cmpge_epu32_mask(_mm512_castps_si512(p), _mm512_set1_epi32((int)x));
}
static inline vf v_keep(vf a)
{
    __asm__("" : "+v"(a));
    return a;
}
#endif
