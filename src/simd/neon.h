/* The vocabulary on AArch64's NEON (Advanced SIMD), which every such processor has. */
// rank: 1
// arch: aarch64
// flags:
#ifdef ATT_SIMD_DETECT
static bool att_detect_neon(void) { return true; }
#else
#include <arm_neon.h>
#include <string.h>
#define ATT_LANES 4
#define ATT_PANEL_VECTORS 4 /* six rows of four: 29 of 32 registers, and the fewest loads for a multiply-add */
#define ATT_TILE_ROWS 6
#define ATT_TALL_ROWS ATT_TILE_ROWS
#define ATT_WIDE_ROWS 2

typedef float32x4_t vf;
typedef uint32x4_t vm;

static inline vf v_set(float x) { return vdupq_n_f32(x); }
static inline vf v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vf x) { vst1q_f32(p, x); }
static inline vm v_first(int n) /* the first n lanes */
{
    static const int32_t lane[] = {0, 1, 2, 3};
    return vcltq_s32(vld1q_s32(lane), vdupq_n_s32(n));
}
/* NEON has no masked loads, so a pair is loaded, then one number. */
static inline void v_store_int8(int8_t *p, vf a)
{
    const int16x4_t x = vqmovn_s32(vcvtq_s32_f32(a));
    vst1_lane_s32((int32_t *)(void *)p, vreinterpret_s32_s8(vqmovn_s16(vcombine_s16(x, x))), 0);
}
static inline vf v_load_n(const float *p, int n)
{
    if (n >= ATT_LANES)
        return v_load(p);
    const float32x2_t none = vdup_n_f32(0);
    float32x2_t low = none, high = none;
    if (n >= 2)
        low = vld1_f32(p);
    if (n == 1)
        low = vld1_lane_f32(p, low, 0);
    else if (n == 3)
        high = vld1_lane_f32(p + 2, high, 0);
    return vcombine_f32(low, high);
}
static inline void v_store_n(float *p, vf x, int n)
{
    if (n >= ATT_LANES) {
        v_store(p, x);
        return;
    }
    if (n >= 2)
        vst1_f32(p, vget_low_f32(x));
    if (n == 1)
        vst1q_lane_f32(p, x, 0);
    else if (n == 3)
        vst1q_lane_f32(p + 2, x, 2);
}
static inline vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf v_fma_onto(vf a, vf b, vf sum) { return v_fma(a, b, sum); }
static inline vf v_dot4(vf a, vf b, vf sum) /* see scalar.h */
{
    const int8x16_t x = vreinterpretq_s8_f32(a), y = vreinterpretq_s8_f32(b);
    const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y)), high = vmull_high_s8(x, y);
    return vreinterpretq_f32_s32(vpadalq_s16(vreinterpretq_s32_f32(sum), vpaddq_s16(low, high)));
}
static inline vf v_dot4_onto(vf a, vf b, vf sum) { return v_dot4(a, b, sum); }
enum { ATT_SIGNED4_START = 0 };
static inline vf v_signed4_word(vf w) { return w; }
static inline vf v_signed4_left(vf w) { return w; }
static inline vf v_signed4(vf left, vf w, vf x, vf sum) /* sums of two products fit into 16 bits: 2 * 128 * 127 */
{
    (void)left;
    return v_dot4(w, x, sum);
}
static inline vf v_block(const uint8_t *q, int half, int64_t next) /* half of it; see scalar.h */
{
    (void)next;
    return vreinterpretq_f32_u8(vld1q_u8(q + 16 * half));
}
static inline vf v_block_of_halves(const uint8_t *q, int half, int64_t next)
{
    (void)next;
    const uint8x16_t x = vld1q_u8(q);
    return vreinterpretq_f32_u8(half ? vshrq_n_u8(x, 4) : vandq_u8(x, vdupq_n_u8(15)));
}
static inline vf v_add_whole(vf a, vf b)
{
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(b)));
}
ATT_INLINE void v_sum_words(const vf t[ATT_LANES], vf y[1])
{
    const int32x4_t low = vpaddq_s32(vreinterpretq_s32_f32(t[0]), vreinterpretq_s32_f32(t[1]));
    const int32x4_t high = vpaddq_s32(vreinterpretq_s32_f32(t[2]), vreinterpretq_s32_f32(t[3]));
    y[0] = vreinterpretq_f32_s32(vpaddq_s32(low, high));
}
ATT_INLINE vf v_from_f16_at(const uint8_t *const p[ATT_LANES])
{
    uint16_t c[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        memcpy(&c[i], p[i], sizeof c[i]);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(c)));
}
ATT_INLINE void v_from_f16_pairs_at(const uint8_t *const p[ATT_LANES], vf *first, vf *second)
{
    const uint8_t *after[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        after[i] = p[i] + sizeof(uint16_t);
    *first = v_from_f16_at(p);
    *second = v_from_f16_at(after);
}
ATT_INLINE vf v_words_at(const uint8_t *const p[ATT_LANES])
{
    uint32_t w[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        memcpy(&w[i], p[i], sizeof w[i]);
    return vreinterpretq_f32_u32(vld1q_u32(w));
}
static inline vf v_steps(vf x)
{
    static const int8_t steps[16] = {ATT_IQ4_STEPS};
    return vreinterpretq_f32_s8(vqtbl1q_s8(vld1q_s8(steps), vreinterpretq_u8_f32(x)));
}
static inline vf v_from_whole(vf a) { return vcvtq_f32_s32(vreinterpretq_s32_f32(a)); }
static inline vf v_to_whole(vf a) { return vreinterpretq_f32_s32(vcvtq_s32_f32(a)); }
static inline vm v_lt(vf a, vf b) { return vcltq_f32(a, b); }
static inline vm v_is_nan(vf a) { return vmvnq_u32(vceqq_f32(a, a)); }
static inline vf v_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
/* Returns b if either is NaN, as the x86 instruction does. FMAX would return NaN, FMAXNM the other number. */
static inline vf v_max(vf a, vf b) { return v_select(vcgtq_f32(a, b), a, b); }
static inline vf v_min(vf a, vf b) { return v_select(vcltq_f32(a, b), a, b); }
static inline vf v_abs(vf a) { return vabsq_f32(a); }
static inline vf v_sign_of(vf mag, vf sign) { return v_select(vdupq_n_u32(0x80000000), sign, mag); }
static inline vf v_round(vf a) { return vrndnq_f32(a); }
static inline vf v_floor(vf a) { return vrndmq_f32(a); }
static inline vf v_rest(vf a) { return v_sub(a, v_round(a)); }
static inline vf v_fraction(vf a) { return v_sub(a, v_floor(a)); }
static inline vf v_ldexp(vf a, vf n) /* a 2^n, n whole, -126 <= n <= 127 */
{
    const int32x4_t e = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    return vmulq_f32(a, vreinterpretq_f32_s32(e));
}
/* a = m 2^n with m from sqrt(1/2) to sqrt(2); gives m. a is normal, > 0. */
static inline vf v_split(vf a, vf *n)
{
    const int32x4_t x = vreinterpretq_s32_f32(a), above = vsubq_s32(x, vdupq_n_s32(0x3f3504f3));
    *n = vcvtq_f32_s32(vshrq_n_s32(above, 23));
    return vreinterpretq_f32_s32(vsubq_s32(x, vandq_s32(above, vdupq_n_s32((int32_t)0xff800000u))));
}
static inline vf v_sqrt(vf a) { return vsqrtq_f32(a); }
static inline float v_sum(vf a) { return vaddvq_f32(a); } /* (0 + 1) + (2 + 3) */
static inline float v_top(vf a) { return vmaxnmvq_f32(a); }
static inline vf v_from_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
static inline vf v_from_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
/* Rounded to the nearest, to even between two; NaN stays NaN. */
static inline void v_to_f16(uint16_t *p, vf x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
static inline void v_to_bf16(uint16_t *p, vf x)
{
    const uint32x4_t u = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))), quiet = vorrq_u32(u, vdupq_n_u32(1 << 22));
    vst1_u16(p, vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), up, quiet), 16));
}
/* x[i][j] <-> x[j][i]: pairs, then halves */
ATT_INLINE void v_transpose(vf x[ATT_LANES])
{
    const float32x4x2_t a = vtrnq_f32(x[0], x[1]), b = vtrnq_f32(x[2], x[3]);
    ATT_UNROLL (i, 2) {
        x[i] = vcombine_f32(vget_low_f32(a.val[i]), vget_low_f32(b.val[i]));
        x[i + 2] = vcombine_f32(vget_high_f32(a.val[i]), vget_high_f32(b.val[i]));
    }
}
/* Returns a vector with lane i of a if bit i is set, otherwise of b. */
static inline vf v_pick(uint32_t bits, vf a, vf b)
{
    static const uint32_t lane[] = {1, 2, 4, 8};
    return v_select(vtstq_u32(vdupq_n_u32(bits), vld1q_u32(lane)), a, b);
}
/* Unsigned numbers of 64 bits, ATT_LANES / 2 in a vector. */
typedef uint64x2_t vw;
static inline vw w_set(uint64_t x) { return vdupq_n_u64(x); }
static inline vw w_xor(vw a, vw b) { return veorq_u64(a, b); }
static inline vw w_mul(vw a, vw b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); } /* of the low 32 bits of each */
static inline vw w_high(vw a) { return vshrq_n_u64(a, 32); }
/* ATT_LANES words <-> the low halves of two vectors, in an order of their own; at_least: bit i is p[i] >= x. */
static inline void w_widen(const uint32_t *p, vw a[2])
{
    a[0] = vmovl_u32(vld1_u32(p));
    a[1] = vmovl_u32(vld1_u32(p + 2));
}
static inline uint32_t w_at_least(const vw a[2], uint32_t x)
{
    static const uint32_t lane[] = {1, 2, 4, 8};
    const uint32x4_t p = vcombine_u32(vmovn_u64(a[0]), vmovn_u64(a[1]));
    return vaddvq_u32(vandq_u32(vcgeq_u32(p, vdupq_n_u32(x)), vld1q_u32(lane)));
}
static inline vf v_keep(vf a)
{
    __asm__ volatile("" : "+w"(a)); /* in order: gcc would load more ahead than there are registers */
    return a;
}
#endif
