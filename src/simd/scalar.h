/* The vocabulary in portable C: four lanes, which any compiler maps to the baseline instruction set. With -O1 it is as
 * fast as with -O2, and compiles in two thirds of the time. */
// rank: 0
// arch: any
// flags: -O1
#ifdef ATT_SIMD_DETECT
static bool att_detect_scalar(void) { return true; }
#else
#include <math.h>
#include <string.h>
#define ATT_BRIEF /* kernels leave out variants that are only faster */
#define ATT_LANES 4
#define ATT_PANEL_VECTORS 2 /* vectors across one GEMM panel or one block of queries */
#define ATT_TILE_ROWS 4     /* rows of a register tile beside them */
#define ATT_TALL_ROWS ATT_TILE_ROWS
#define ATT_WIDE_ROWS 2 /* rows of a tile across two panels */

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16))); /* a mask: all bits of a lane, or none */

static inline vf v_set(float x) { return (vf){x, x, x, x}; }
static inline vf v_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void v_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
static inline void v_store_int8(int8_t *p, vf a) /* whole numbers in [-128, 127] */
{
    for (int i = 0; i < ATT_LANES; i++)
        p[i] = (int8_t)a[i];
}
static inline vf v_load_n(const float *p, int n)
{
    vf x = v_set(0);
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}
static inline void v_store_n(float *p, vf x, int n) { memcpy(p, &x, (size_t)n * sizeof *p); }
static inline vm v_first(int n) { return (vm){0, 1, 2, 3} < n; } /* the first n lanes */
static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
} /* rounds twice here, but once in sets with an instruction for it */
/* v_fma in the register of the sum: if the compiler can choose, it moves sums between registers or spills them. */
static inline vf v_fma_onto(vf a, vf b, vf sum) { return v_fma(a, b, sum); }
/* On words of four int8: sum (int32) + a0 b0 + a1 b1 + a2 b2 + a3 b3. Bytes of a are in [0, 127], of b in [-128, 127]:
 * the sum of two products is within int16. Here a may be in [-128, 127] if those of b are in [-127, 127]. */
static inline vf v_dot4(vf a, vf b, vf sum)
{
    typedef int16_t v_halves __attribute__((vector_size(16)));
    typedef uint16_t v_bits __attribute__((vector_size(16)));
    typedef uint32_t v_words __attribute__((vector_size(16)));
    const v_halves odd = ((v_halves)a >> 8) * ((v_halves)b >> 8);
    const v_halves even = ((v_halves)((v_bits)a << 8) >> 8) * ((v_halves)((v_bits)b << 8) >> 8);
    const vm pairs = (vm)(odd + even);
    return (vf)((vm)sum + (pairs >> 16) + ((vm)((v_words)pairs << 16) >> 16));
}
static inline vf v_dot4_onto(vf a, vf b, vf sum) { return v_dot4(a, b, sum); } /* as v_fma_onto */
/* On words of four int8: sum (int32) + w0 x0 + w1 x1 + w2 x2 + w3 x3. Bytes of w are in [-128, 127], of x in [-127,
 * 127]. w is v_signed4_word of what a block has, left is v_signed4_left(w), which many products share, and a sum begins
 * with ATT_SIGNED4_START times all numbers of x, added. */
enum { ATT_SIGNED4_START = 0 };
static inline vf v_signed4_word(vf w) { return w; }
static inline vf v_signed4_left(vf w) { return w; }
static inline vf v_signed4(vf left, vf w, vf x, vf sum)
{
    (void)left;
    return v_dot4(w, x, sum); /* which allows any signs here */
}
/* Returns the bytes of a block of 32 as words: in this set half of them (half: 0 or 1); in sets whose vectors have room
 * for two blocks, also those of the block at q + next. The second function returns the halves of 16 bytes, in [0, 15]:
 * the low halves are the first half of the block. */
static inline vf v_block(const uint8_t *q, int half, int64_t next)
{
    vf x;
    (void)next;
    memcpy(&x, q + 16 * half, sizeof x);
    return x;
}
static inline vf v_block_of_halves(const uint8_t *q, int half, int64_t next)
{
    typedef uint8_t v_bytes __attribute__((vector_size(16)));
    v_bytes x;
    (void)next;
    memcpy(&x, q, sizeof x);
    return (vf)(half ? x >> 4 : x & 15);
}
static inline vf v_add_whole(vf a, vf b) { return (vf)((vm)a + (vm)b); }
/* Computes in lane r of y the sum of the words of t[r], int32; if a vector has two blocks, y[1] has the sums of the
 * second. */
ATT_INLINE void v_sum_words(const vf t[ATT_LANES], vf y[1])
{
    vm sum = {0};
    for (int r = 0; r < ATT_LANES; r++)
        for (int i = 0; i < ATT_LANES; i++)
            sum[r] += ((vm)t[r])[i];
    y[0] = (vf)sum;
}
static inline vf v_from_whole(vf a) { return __builtin_convertvector((vm)a, vf); } /* integers -> floats */
static inline vf v_to_whole(vf a) { return (vf) __builtin_convertvector(a, vm); }  /* whole numbers -> integers */
static inline vm v_lt(vf a, vf b) { return a < b; }
static inline vm v_is_nan(vf a) { return a != a; }
static inline vf v_select(vm m, vf a, vf b) { return (vf)((m & (vm)a) | (~m & (vm)b)); }
/* Returns b if either is NaN, as the x86 instruction does. */
static inline vf v_max(vf a, vf b) { return v_select(a > b, a, b); }
static inline vf v_min(vf a, vf b) { return v_select(a < b, a, b); }
static inline vf v_abs(vf a) { return (vf)((vm)a & 0x7fffffff); }
static inline vf v_sign_of(vf mag, vf sign) { return (vf)(((vm)mag & 0x7fffffff) | ((vm)sign & (int32_t)0x80000000u)); }
static inline vf v_round(vf a) /* to nearest even, |a| < 2^22 */
{
    const vf big = v_set(12582912.0f);
    return (a + big) - big;
}
static inline vf v_floor(vf a) /* |a| < 2^22 */
{
    const vf near = v_round(a);
    return near - v_select(near > a, v_set(1), v_set(0));
}
/* Return what v_round and v_floor subtract. */
static inline vf v_rest(vf a) { return v_sub(a, v_round(a)); }
static inline vf v_fraction(vf a) { return v_sub(a, v_floor(a)); }
static inline vf v_ldexp(vf a, vf n) /* a 2^n, n whole, -126 <= n <= 127 */
{
    const vf magic = v_set(12582912.0f + 127.0f);
    return a * (vf)((vm)(n + magic) << 23);
}
/* a = m 2^n with m from sqrt(1/2) to sqrt(2); gives m. a is normal, > 0. */
static inline vf v_split(vf a, vf *n)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    const vu above = (vu)a - 0x3f3504f3; /* the number after sqrt(1/2) */
    *n = __builtin_convertvector((vm)above >> 23, vf);
    return (vf)((vu)a - (above & 0xff800000));
}
static inline vf v_sqrt(vf a) { return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }
static inline float v_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline float v_top(vf a)
{
    const float x = a[0] > a[2] ? a[0] : a[2], y = a[1] > a[3] ? a[1] : a[3];
    return x > y ? x : y;
}
static inline vf v_from_f16(const uint16_t *p)
{
    const vm h = {p[0], p[1], p[2], p[3]}, magnitude = (h & 0x7fff) << 13;
    const vm normal = magnitude + (112 << 23), endless = magnitude + (224 << 23);
    const vm denormal = (vm)((vf)(magnitude + (113 << 23)) - v_set(0x1p-14f));
    const vm small = magnitude < 1 << 23, finite = magnitude < 31 << 23;
    const vm bits = (small & denormal) | (~small & finite & normal) | (~finite & endless);
    return (vf)(bits | (h & 0x8000) << 16);
}
ATT_INLINE vf v_from_f16_at(const uint8_t *const p[ATT_LANES]) /* code i is at p[i] */
{
    uint16_t c[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        memcpy(&c[i], p[i], sizeof c[i]);
    return v_from_f16(c);
}
/* Loads pairs of codes -> the first ones, and the second ones. */
ATT_INLINE void v_from_f16_pairs_at(const uint8_t *const p[ATT_LANES], vf *first, vf *second)
{
    const uint8_t *after[ATT_LANES];
    ATT_UNROLL (i, ATT_LANES)
        after[i] = p[i] + sizeof(uint16_t);
    *first = v_from_f16_at(p);
    *second = v_from_f16_at(after);
}
/* Loads the words at p[]. */
ATT_INLINE vf v_words_at(const uint8_t *const p[ATT_LANES])
{
    uint32_t w[ATT_LANES];
    vf x;
    ATT_UNROLL (i, ATT_LANES)
        memcpy(&w[i], p[i], sizeof w[i]);
    memcpy(&x, w, sizeof x);
    return x;
}
/* Replaces bytes in [0, 15] by the steps of IQ4. */
static inline vf v_steps(vf x)
{
    static const int8_t steps[16] = {ATT_IQ4_STEPS};
    uint8_t index[16];
    int8_t y[16];
    memcpy(index, &x, sizeof index);
    for (int i = 0; i < 16; i++)
        y[i] = steps[index[i]];
    memcpy(&x, y, sizeof x);
    return x;
}
static inline vf v_from_bf16(const uint16_t *p) { return (vf)((vm){p[0], p[1], p[2], p[3]} << 16); }
/* Rounded to the nearest, to even between two; NaN stays NaN. */
static inline void v_to_f16(uint16_t *p, vf x)
{
    const vm u = (vm)x, a = u & 0x7fffffff, odd = a >> 13 & 1;
    const vm normal = (a - (112 << 23) + 0xfff + odd) >> 13, nan = a >> 13 | 0x7e00;
    const vm denormal = (vm)((vf)a + v_set(0.5f)) - 0x3f000000; /* the sum rounds to multiples of 2^-24 */
    const vm small = a<113 << 23, huge = a >= 0x477ff000, not_a_number = a> 0x7f800000;
    const vm finite = (small & denormal) | (~small & normal);
    const vm h = (not_a_number & nan) | (~not_a_number & ((huge & 0x7c00) | (~huge & finite)));
    for (int i = 0; i < ATT_LANES; i++)
        p[i] = (uint16_t)((h[i] & 0x7fff) | (u[i] >> 16 & 0x8000));
}
static inline void v_to_bf16(uint16_t *p, vf x)
{
    for (int i = 0; i < ATT_LANES; i++) {
        uint32_t u;
        __builtin_memcpy(&u, (const float *)&x + i, sizeof u);
        p[i] = (uint16_t)(x[i] != x[i] ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
}
/* x[i][j] <-> x[j][i] */
ATT_INLINE void v_transpose(vf x[ATT_LANES])
{
    for (int i = 0; i < ATT_LANES; i++)
        for (int j = 0; j < i; j++) {
            const float t = x[i][j];
            x[i][j] = x[j][i];
            x[j][i] = t;
        }
}
/* Returns a vector with lane i of a if bit i is set, otherwise of b. */
static inline vf v_pick(uint32_t bits, vf a, vf b)
{
    const vm lane = {1, 2, 4, 8};
    return v_select((((vm){0} + (int32_t)bits) & lane) != 0, a, b);
}
/* Unsigned numbers of 64 bits, ATT_LANES / 2 in a vector. */
typedef uint64_t vw __attribute__((vector_size(16)));
static inline vw w_set(uint64_t x) { return (vw){x, x}; }
static inline vw w_xor(vw a, vw b) { return a ^ b; }
static inline vw w_mul(vw a, vw b) /* of the low 32 bits of each */
{
    return (vw){(uint64_t)(uint32_t)a[0] * (uint32_t)b[0], (uint64_t)(uint32_t)a[1] * (uint32_t)b[1]};
}
static inline vw w_high(vw a) { return a >> 32; }
/* ATT_LANES words <-> the low halves of two vectors, in an order of their own; at_least: bit i is p[i] >= x. */
static inline void w_widen(const uint32_t *p, vw a[2])
{
    a[0] = (vw){p[0], p[1]};
    a[1] = (vw){p[2], p[3]};
}
static inline uint32_t w_at_least(const vw a[2], uint32_t x)
{
    const uint32_t p[] = {(uint32_t)a[0][0], (uint32_t)a[0][1], (uint32_t)a[1][0], (uint32_t)a[1][1]};
    return (uint32_t)(p[0] >= x) | (uint32_t)(p[1] >= x) << 1 | (uint32_t)(p[2] >= x) << 2 | (uint32_t)(p[3] >= x) << 3;
}
static inline vf v_keep(vf a) { return a; } /* stops the compiler from reading a again from memory */
#endif
