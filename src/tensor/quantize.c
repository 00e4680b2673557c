/* Converts rows of quantized blocks to and from f32, with the bits of ggml's reference (the Python package gguf). */
#include "tensor/tensor.h"
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

enum { BLOCK = ATT_QUANTIZED_BLOCK, HALF = BLOCK / 2 };

static float read_scale(const uint8_t *at)
{
    uint16_t code;
    float x;
    memcpy(&code, at, sizeof code);
    att_kernels_of(0)->vector.from_f16(1, &code, &x);
    return x;
}

static void write_scale(float x, uint8_t *at)
{
    uint16_t code;
    att_kernels_of(0)->vector.to_f16(1, &x, &code);
    memcpy(at, &code, sizeof code);
}

/* ---- to f32 */

static void read_q8_0(const uint8_t *block, float *x)
{
    const float d = read_scale(block);
    for (int i = 0; i < BLOCK; i++)
        x[i] = d * (float)(int8_t)block[2 + i];
}

static void read_q4_0(const uint8_t *block, float *x)
{
    const float d = read_scale(block);
    for (int i = 0; i < HALF; i++) {
        x[i] = d * (float)((block[2 + i] & 15) - 8);
        x[i + HALF] = d * (float)((block[2 + i] >> 4) - 8);
    }
}

static void read_q4_1(const uint8_t *block, float *x)
{
    const float d = read_scale(block), m = read_scale(block + 2);
    for (int i = 0; i < HALF; i++) {
        x[i] = d * (float)(block[4 + i] & 15) + m;
        x[i + HALF] = d * (float)(block[4 + i] >> 4) + m;
    }
}

/* ---- from f32 */

/* Return the smaller, and the larger, of a and b; a if b is NaN. */
static float smaller(float a, float b) { return b < a ? b : a; }
static float larger(float a, float b) { return b > a ? b : a; }

/* Returns d, or NaN if a number is not finite. */
static float finite_or_nan(const float *x, float d)
{
    float zero = 0;
    for (int i = 0; i < BLOCK; i++)
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
    write_scale(finite_or_nan(x, d), block);
    for (int i = 0; i < BLOCK; i++) {
        const float q = roundf(x[i] * inverse);
        block[2 + i] = (uint8_t)(int8_t)larger(-127, smaller(127, q));
    }
}

/* Returns q = x / d + add, limited to [0, 15], in f32 with two roundings, as the reference does. */
static uint8_t four_bits(float x, float inverse, float add)
{
    const float q = truncf(x * inverse + add);
    return (uint8_t)(q > 0 ? (q < 15 ? q : 15) : 0);
}

/* Chooses d so that the number farthest from 0 becomes -8. */
static void write_q4_0(const float *x, uint8_t *block)
{
    float far = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(far))
            far = x[i];
    const float d = far / -8, inverse = fabsf(d) > 0 ? 1 / d : 0;
    write_scale(finite_or_nan(x, d), block);
    for (int i = 0; i < HALF; i++)
        block[2 + i] = (uint8_t)(four_bits(x[i], inverse, 8.5f) | four_bits(x[i + HALF], inverse, 8.5f) << 4);
}

/* Sets m to the smallest number, and d so that the largest becomes 15. */
static void write_q4_1(const float *x, uint8_t *block)
{
    float min = x[0], max = x[0];
    for (int i = 1; i < BLOCK; i++) {
        min = smaller(min, x[i]);
        max = larger(max, x[i]);
    }
    const float d = (max - min) / 15, inverse = d > 0 ? 1 / d : 0;
    write_scale(finite_or_nan(x, d), block);
    write_scale(min, block + 2);
    for (int i = 0; i < HALF; i++)
        block[4 + i] =
            (uint8_t)(four_bits(x[i] - min, inverse, 0.5f) | four_bits(x[i + HALF] - min, inverse, 0.5f) << 4);
}

/* ---- by type */

static const struct {
    void (*read)(const uint8_t *block, float *x);
    void (*write)(const float *x, uint8_t *block);
} types[] = {
    [ATT_Q8_0] = {read_q8_0, write_q8_0}, [ATT_Q4_0] = {read_q4_0, write_q4_0}, [ATT_Q4_1] = {read_q4_1, write_q4_1}};

void att_dequantize(att_dtype t, int64_t n, const void *blocks, float *x)
{
    const int64_t bytes = att_dtype_bytes(t, BLOCK);
    for (int64_t b = 0; b < n / BLOCK; b++)
        types[t].read((const uint8_t *)blocks + b * bytes, x + b * BLOCK);
}

void att_quantize(att_dtype t, int64_t n, const float *x, void *blocks)
{
    const int64_t bytes = att_dtype_bytes(t, BLOCK);
    for (int64_t b = 0; b < n / BLOCK; b++)
        types[t].write(x + b * BLOCK, (uint8_t *)blocks + b * bytes);
}
