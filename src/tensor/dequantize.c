/* Converts quantized blocks to f32, with the bits of ggml's reference (the Python package gguf).
 *
 * In each type a number is d q - m: q an integer of 2 to 8 bits, d and m those of its group in the block. A block of
 * 256 has one or two factors of f16, by which the small integers that stand for d and m of each group are multiplied.
 */
#include "tensor/tensor.h"
#include "kernel/kernel.h"

#include <string.h>

enum { BLOCK = ATT_QUANTIZED_BLOCK, SUPER = ATT_SUPER_BLOCK, GROUPS = 16 }; /* GROUPS: most of them in a block */

typedef struct unpacked {
    int8_t q[SUPER];
    float d[GROUPS], m[GROUPS];
} unpacked;

static float read_half(const uint8_t *p)
{
    uint16_t code;
    float x;
    memcpy(&code, p, sizeof code);
    att_kernels_of(0)->vector.from_f16(1, &code, &x);
    return x;
}

/* Unpacks `planes` planes of `bits` bits, each of `width` numbers: plane k of a row of bytes has bits k * `bits`, ...
 * of each byte, and follows plane k - 1. out [SUPER] or [BLOCK]: their sum with what is there, shifted left by `shift`.
 */
static void unpack_planes(const uint8_t *bytes, int width, int planes, int bits, int shift, int n, int8_t *out)
{
    const int mask = (1 << bits) - 1;
    for (int i = 0; i < n; bytes += width)
        for (int plane = 0; plane < planes; plane++)
            for (int j = 0; j < width; j++, i++)
                out[i] = (int8_t)(out[i] + ((bytes[j] >> (plane * bits) & mask) << shift));
}

static void subtract(int8_t *q, int n, int by)
{
    for (int i = 0; i < n; i++)
        q[i] = (int8_t)(q[i] - by);
}

/* Sets d and m from integers of each group. */
static void scale_groups(unpacked *u, int groups, float d, const int8_t *scale, float m, const int8_t *min)
{
    for (int g = 0; g < groups; g++) {
        u->d[g] = d * (float)scale[g];
        u->m[g] = min ? m * (float)min[g] : 0;
    }
}

/* ---- blocks of 32 */

static void unpack_q8_0(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    memcpy(u->q, b + 2, BLOCK);
}

static void unpack_q4_0(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    unpack_planes(b + 2, 16, 2, 4, 0, BLOCK, u->q);
    subtract(u->q, BLOCK, 8);
}

static void unpack_q4_1(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    u->m[0] = -read_half(b + 2);
    unpack_planes(b + 4, 16, 2, 4, 0, BLOCK, u->q);
}

static void unpack_fifth_bits(const uint8_t *high, int8_t *q)
{
    for (int i = 0; i < BLOCK; i++)
        q[i] = (int8_t)(q[i] | (high[i / 8] >> i % 8 & 1) << 4);
}

static void unpack_q5_0(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    unpack_planes(b + 6, 16, 2, 4, 0, BLOCK, u->q);
    unpack_fifth_bits(b + 2, u->q);
    subtract(u->q, BLOCK, 16);
}

static void unpack_q5_1(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    u->m[0] = -read_half(b + 2);
    unpack_planes(b + 8, 16, 2, 4, 0, BLOCK, u->q);
    unpack_fifth_bits(b + 4, u->q);
}

/* The steps of IQ4: unequal, as weights are about normal. */
static const int8_t steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void replace_by_steps(int8_t *q, int n)
{
    for (int i = 0; i < n; i++)
        q[i] = steps[q[i]];
}

static void unpack_iq4_nl(const uint8_t *b, unpacked *u)
{
    u->d[0] = read_half(b);
    unpack_planes(b + 2, 16, 2, 4, 0, BLOCK, u->q);
    replace_by_steps(u->q, BLOCK);
}

/* ---- super-blocks of 256 */

/* scales [16], q [64], d, m: groups of 16 with 4 bits each for d and m */
static void unpack_q2_k(const uint8_t *b, unpacked *u)
{
    int8_t scale[GROUPS], min[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        scale[g] = b[g] & 15, min[g] = (int8_t)(b[g] >> 4);
    scale_groups(u, GROUPS, read_half(b + 80), scale, read_half(b + 82), min);
    unpack_planes(b + 16, 32, 4, 2, 0, SUPER, u->q);
}

/* inverted third bits [32], q [64], scales [12], d: groups of 16 with 6 bits */
static void unpack_q3_k(const uint8_t *b, unpacked *u)
{
    const uint8_t *s = b + 96;
    int8_t scale[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        scale[g] = (int8_t)(((s[g % 8] >> (4 * (g / 8)) & 15) | (s[8 + g % 4] >> (2 * (g / 4)) & 3) << 4) - 32);
    scale_groups(u, GROUPS, read_half(b + 108), scale, 0, NULL);
    unpack_planes(b + 32, 32, 4, 2, 0, SUPER, u->q);
    unpack_planes(b, 32, 8, 1, 2, SUPER, u->q);
    subtract(u->q, SUPER, 4);
}

/* Unpacks eight scales and eight minimums of 6 bits from 12 bytes. */
static void unpack_six_bits(const uint8_t *s, int8_t *scale, int8_t *min)
{
    for (int g = 0; g < 4; g++) {
        scale[g] = s[g] & 63;
        min[g] = s[4 + g] & 63;
        scale[4 + g] = (int8_t)((s[8 + g] & 15) | (s[g] >> 2 & 0x30));
        min[4 + g] = (int8_t)(s[8 + g] >> 4 | (s[4 + g] >> 2 & 0x30));
    }
}

/* d, m, scales [12], q [128]: groups of 32 */
static void unpack_q4_k(const uint8_t *b, unpacked *u)
{
    int8_t scale[8], min[8];
    unpack_six_bits(b + 4, scale, min);
    scale_groups(u, 8, read_half(b), scale, read_half(b + 2), min);
    unpack_planes(b + 16, 32, 2, 4, 0, SUPER, u->q);
}

/* as Q4_K, with fifth bits [32] before q */
static void unpack_q5_k(const uint8_t *b, unpacked *u)
{
    int8_t scale[8], min[8];
    unpack_six_bits(b + 4, scale, min);
    scale_groups(u, 8, read_half(b), scale, read_half(b + 2), min);
    unpack_planes(b + 48, 32, 2, 4, 0, SUPER, u->q);
    unpack_planes(b + 16, 32, 8, 1, 4, SUPER, u->q);
}

/* q [128], fifth and sixth bits [64], scales [16], d: groups of 16 with 8 bits */
static void unpack_q6_k(const uint8_t *b, unpacked *u)
{
    int8_t scale[GROUPS];
    memcpy(scale, b + 192, sizeof scale);
    scale_groups(u, GROUPS, read_half(b + 208), scale, 0, NULL);
    unpack_planes(b, 64, 2, 4, 0, SUPER, u->q);
    unpack_planes(b + 128, 32, 4, 2, 4, SUPER, u->q);
    subtract(u->q, SUPER, 32);
}

/* d, upper bits of scales [2], lower ones [4], q [128]: groups of 32 with 6 bits */
static void unpack_iq4_xs(const uint8_t *b, unpacked *u)
{
    const int high = b[2] | b[3] << 8;
    int8_t scale[8];
    for (int g = 0; g < 8; g++)
        scale[g] = (int8_t)(((b[4 + g / 2] >> (4 * (g % 2)) & 15) | (high >> (2 * g) & 3) << 4) - 32);
    scale_groups(u, 8, read_half(b), scale, 0, NULL);
    unpack_planes(b + 8, 16, 2, 4, 0, SUPER, u->q);
    replace_by_steps(u->q, SUPER);
}

/* ---- by type */

static const struct {
    int group; /* numbers of a group */
    void (*unpack)(const uint8_t *block, unpacked *u);
} types[] = {
    [ATT_Q8_0] = {BLOCK, unpack_q8_0}, [ATT_Q4_0] = {BLOCK, unpack_q4_0},     [ATT_Q4_1] = {BLOCK, unpack_q4_1},
    [ATT_Q5_0] = {BLOCK, unpack_q5_0}, [ATT_Q5_1] = {BLOCK, unpack_q5_1},     [ATT_Q2_K] = {16, unpack_q2_k},
    [ATT_Q3_K] = {16, unpack_q3_k},    [ATT_Q4_K] = {32, unpack_q4_k},        [ATT_Q5_K] = {32, unpack_q5_k},
    [ATT_Q6_K] = {16, unpack_q6_k},    [ATT_IQ4_NL] = {BLOCK, unpack_iq4_nl}, [ATT_IQ4_XS] = {32, unpack_iq4_xs},
};

void att_dequantize(att_dtype t, int64_t n, const void *blocks, float *x)
{
    const int64_t numbers = att_dtype_block(t), bytes = att_dtype_bytes(t, numbers), group = types[t].group;
    for (int64_t b = 0; b < n / numbers; b++, x += numbers) {
        unpacked u;
        memset(u.q, 0, (size_t)numbers);
        memset(u.m, 0, sizeof u.m);
        types[t].unpack((const uint8_t *)blocks + b * bytes, &u);
        for (int64_t g = 0, i = 0; i < numbers; g++)
            for (const int64_t end = i + group; i < end; i++)
                x[i] = u.d[g] * (float)u.q[i] - u.m[g];
    }
}
