/* Converts f32 to quantized blocks, those of 32 with the bits of ggml's reference (the Python package gguf). */
#include "tensor/quantize.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

enum { BLOCK = ATT_QUANTIZED_BLOCK, HALF = BLOCK / 2 };

void att_write_half(float x, uint8_t *at)
{
    uint16_t code;
    att_kernels_of(0)->vector.to_f16(1, &x, &code);
    memcpy(at, &code, sizeof code);
}

/* Return the smaller, and the larger, of a and b; a if b is NaN. */
static float smaller(float a, float b) { return b < a ? b : a; }
static float larger(float a, float b) { return b > a ? b : a; }

float att_finite_or_nan(int n, const float *x, float d)
{
    float zero = 0;
    for (int i = 0; i < n; i++)
        zero += 0 * x[i];
    return isnan(zero) ? zero : d;
}

/* Writes d = largest |x| / 127 and q = x / d, rounded to the nearest, ties away from 0. */
static void write_q8_0(const float *x, uint8_t *block)
{
    float max = 0;
    for (int i = 0; i < BLOCK; i++)
        max = larger(max, fabsf(x[i]));
    const float d = max / 127, inverse = d > 0 ? 1 / d : 0;
    att_write_half(att_finite_or_nan(BLOCK, x, d), block);
    for (int i = 0; i < BLOCK; i++) {
        const float q = roundf(x[i] * inverse);
        block[2 + i] = (uint8_t)(int8_t)larger(-127, smaller(127, q));
    }
}

/* Writes q = x / d + add, limited to [0, top], in f32 with two roundings, as the reference does: the low four bits of
 * the first 16 numbers in the low halves of q [16], those of the others in the high halves; the fifth bits in high [4],
 * if top needs them. minus is subtracted from x first. */
static void write_bits(const float *x, float minus, float inverse, float add, int top, uint8_t *high, uint8_t *q)
{
    int code[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        const float rounded = truncf((x[i] - minus) * inverse + add);
        code[i] = rounded > 0 ? (rounded < (float)top ? (int)rounded : top) : 0;
    }
    for (int i = 0; i < HALF; i++)
        q[i] = (uint8_t)((code[i] & 15) | (code[i + HALF] & 15) << 4);
    for (int i = 0; top > 15 && i < BLOCK; i++)
        high[i / 8] = (uint8_t)((i % 8 ? high[i / 8] : 0) | (code[i] >> 4) << i % 8);
}

/* Chooses d so that the number farthest from 0 becomes -zero. */
static void write_around_zero(const float *x, int zero, uint8_t *block, uint8_t *high, uint8_t *q)
{
    float far = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(far))
            far = x[i];
    const float d = far / (float)-zero, inverse = fabsf(d) > 0 ? 1 / d : 0;
    att_write_half(att_finite_or_nan(BLOCK, x, d), block);
    write_bits(x, 0, inverse, (float)zero + 0.5f, 2 * zero - 1, high, q);
}

static void write_q4_0(const float *x, uint8_t *block) { write_around_zero(x, 8, block, NULL, block + 2); }
static void write_q5_0(const float *x, uint8_t *block) { write_around_zero(x, 16, block, block + 2, block + 6); }

/* Sets m to the smallest number, and d so that the largest becomes top. */
static void write_from_smallest(const float *x, int top, uint8_t *block, uint8_t *high, uint8_t *q)
{
    float min = x[0], max = x[0];
    for (int i = 1; i < BLOCK; i++) {
        min = smaller(min, x[i]);
        max = larger(max, x[i]);
    }
    const float d = (max - min) / (float)top, inverse = d > 0 ? 1 / d : 0;
    att_write_half(att_finite_or_nan(BLOCK, x, d), block);
    att_write_half(min, block + 2);
    write_bits(x, min, inverse, 0.5f, top, high, q);
}

static void write_q4_1(const float *x, uint8_t *block) { write_from_smallest(x, 15, block, NULL, block + 4); }
static void write_q5_1(const float *x, uint8_t *block) { write_from_smallest(x, 31, block, block + 4, block + 8); }

/* ---- by type */

static void (*const types[])(const float *x, uint8_t *block) = {
    [ATT_Q8_0] = write_q8_0, [ATT_Q4_0] = write_q4_0,     [ATT_Q4_1] = write_q4_1,     [ATT_Q5_0] = write_q5_0,
    [ATT_Q5_1] = write_q5_1, [ATT_Q4_K] = att_write_q4_k, [ATT_Q5_K] = att_write_q5_k, [ATT_Q6_K] = att_write_q6_k,
};

bool att_can_quantize(att_dtype t) { return (size_t)t < sizeof types / sizeof *types && types[t]; }

void att_quantize(att_dtype t, int64_t n, const float *x, void *blocks)
{
    const int64_t numbers = att_dtype_block(t), bytes = att_dtype_bytes(t, numbers);
    for (int64_t b = 0; b < n / numbers; b++)
        types[t](x + b * numbers, (uint8_t *)blocks + b * bytes);
}
