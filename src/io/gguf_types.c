/* Dequantisation. A block is scales in f16, and 32 whole numbers:
 *
 * Q8_0   d, 32 signed bytes                 x = d q
 * Q4_0   d, 16 bytes of two numbers each    x = d (q - 8)
 * Q4_1   d, m, 16 bytes                     x = d q + m
 *
 * The low halves of the 16 bytes are the first 16 numbers, the high halves the others. */
#include "io/gguf_types.h"

#include <string.h>

#include "io/util.h"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q8_0 = 8, BF16 = 30, BLOCK = 32, CHUNK = 256 /* blocks */ };

static const att_gguf_type types[] = {
    {"F32", F32, 1, 4, true},        {"F16", F16, 1, 2, true},         {"BF16", BF16, 1, 2, true},
    {"Q8_0", Q8_0, BLOCK, 34, true}, {"Q4_0", Q4_0, BLOCK, 18, true},  {"Q4_1", Q4_1, BLOCK, 20, true},
    {"Q5_0", 6, BLOCK, 22, false},   {"Q5_1", 7, BLOCK, 24, false},    {"Q8_1", 9, BLOCK, 40, false},
    {"Q2_K", 10, 256, 84, false},    {"Q3_K", 11, 256, 110, false},    {"Q4_K", 12, 256, 144, false},
    {"Q5_K", 13, 256, 176, false},   {"Q6_K", 14, 256, 210, false},    {"Q8_K", 15, 256, 292, false},
    {"IQ2_XXS", 16, 256, 66, false}, {"IQ2_XS", 17, 256, 74, false},   {"IQ3_XXS", 18, 256, 98, false},
    {"IQ1_S", 19, 256, 50, false},   {"IQ4_NL", 20, BLOCK, 18, false}, {"IQ3_S", 21, 256, 110, false},
    {"IQ2_S", 22, 256, 82, false},   {"IQ4_XS", 23, 256, 136, false},  {"I8", 24, 1, 1, false},
    {"I16", 25, 1, 2, false},        {"I32", 26, 1, 4, false},         {"I64", 27, 1, 8, false},
    {"F64", 28, 1, 8, false},        {"IQ1_M", 29, 256, 56, false},    {"TQ1_0", 34, 256, 54, false},
    {"TQ2_0", 35, 256, 66, false},   {"MXFP4", 39, BLOCK, 17, false},
};

const att_gguf_type *att_gguf_type_of(int number)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

/* Converts the k-th scale of blocks [n], each of `bytes` bytes, to d [n]. */
static att_status scales(att_ctx *ctx, const unsigned char *block, int64_t bytes, int k, int64_t n, float *d)
{
    att_tensor from, to;
    att_status s = att_wrap(&from, (void *)(block + 2 * k), ATT_F16, 1, &n, &(int64_t){bytes / 2});
    s = s ? s : att_wrap(&to, d, ATT_F32, 1, &n, NULL);
    return s ? s : att_tensor_convert(ctx, &from, &to);
}

static void q8_0(const unsigned char *q, float d, float *x)
{
    for (int i = 0; i < BLOCK; i++)
        x[i] = d * (float)(int8_t)q[i];
}

static void q4_0(const unsigned char *q, float d, float *x)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        x[i] = d * (float)((q[i] & 15) - 8);
        x[i + BLOCK / 2] = d * (float)((q[i] >> 4) - 8);
    }
}

static void q4_1(const unsigned char *q, float d, float m, float *x)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        x[i] = d * (float)(q[i] & 15) + m;
        x[i + BLOCK / 2] = d * (float)(q[i] >> 4) + m;
    }
}

/* Blocks [blocks] of a type at `block` */
static att_status dequantise(att_ctx *ctx, const att_gguf_tensor *t, const unsigned char *block, int64_t blocks,
                             float *out)
{
    float d[CHUNK], m[CHUNK];
    const att_gguf_type *type = att_gguf_type_of(t->type);
    att_status s = ATT_OK;
    for (int64_t first = 0; !s && first < blocks; first += CHUNK) {
        const int64_t n = att_min(blocks - first, CHUNK);
        s = scales(ctx, block, type->bytes, 0, n, d);
        if (!s && t->type == Q4_1)
            s = scales(ctx, block, type->bytes, 1, n, m);
        for (int64_t i = 0; !s && i < n; i++, block += type->bytes, out += BLOCK)
            if (t->type == Q8_0)
                q8_0(block + 2, d[i], out);
            else if (t->type == Q4_0)
                q4_0(block + 2, d[i], out);
            else
                q4_1(block + 4, d[i], m[i], out);
    }
    return s;
}

att_status att_gguf_floats_of(att_ctx *ctx, const att_gguf_tensor *t, int64_t first, int64_t n, float *out)
{
    const att_gguf_type *type = att_gguf_type_of(t->type);
    const unsigned char *at = (const unsigned char *)t->data + first / type->block * type->bytes;
    if (first % type->block || n % type->block)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "tensor \"%.80s\" of type %s cannot be read row by row", t->name,
                        type->name);
    if (type->block == BLOCK)
        return dequantise(ctx, t, at, n / BLOCK, out);
    att_tensor from, to;
    const att_dtype dtype = t->type == F32 ? ATT_F32 : t->type == F16 ? ATT_F16 : ATT_BF16;
    att_status s = att_wrap(&from, (void *)at, dtype, 1, &n, NULL);
    s = s ? s : att_wrap(&to, out, ATT_F32, 1, &n, NULL);
    return s ? s : att_tensor_convert(ctx, &from, &to);
}

att_status att_gguf_floats(att_ctx *ctx, const att_gguf_tensor *t, float *out)
{
    return att_gguf_floats_of(ctx, t, 0, t->elements, out);
}
