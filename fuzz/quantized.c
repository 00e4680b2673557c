/* The input chooses a quantized type, sizes, and the bytes of a matrix of it. Products with the matrix read no other
 * bytes, and a row has the same bits alone as among others. The same bytes as floats are quantized: finite numbers that
 * the type can have stay finite. */
#include "fuzz.h"

#include "attend_learn.h"

#include <math.h>

enum { MAX_ROWS = 9, MAX_COLUMNS = 40, MAX_BLOCKS = 3, HEADER = 4 };

static const att_dtype types[] = {ATT_Q8_0,   ATT_Q4_0, ATT_Q4_1, ATT_Q5_0, ATT_Q5_1, ATT_IQ4_NL,
                                  ATT_IQ4_XS, ATT_Q4_K, ATT_Q5_K, ATT_Q6_K, ATT_Q3_K, ATT_Q2_K};
enum { TYPES = sizeof types / sizeof *types };

/* x [m, k] w^T -> y [m, n] */
static void multiply(float *x, int64_t m, const att_tensor *w, float *y)
{
    att_tape *t;
    att_param *weight;
    att_tensor in, value;
    att_wrap(&in, x, ATT_F32, ATT_DIMS(m, w->dim[1]), NULL);
    if (att_tape_new(fuzz_context(), NULL, &t) || att_param_new(fuzz_context(), w, &weight))
        abort();
    const att_status s =
        att_var_value(t, att_linear(t, att_constant(t, &in), weight, NULL, ATT_ACTIVATION_IDENTITY, NULL), &value);
    fuzz_check(!s, "a product is refused");
    memcpy(y, value.data, (size_t)(m * w->dim[0]) * sizeof *y);
    att_tape_free(t);
    att_param_free(weight);
}

/* Quantizes x [256]; numbers up to 1,000 are in the range of each type. */
static void quantize(float *x, att_dtype type)
{
    uint8_t block[512];
    float y[256];
    att_tensor from, through, to;
    bool small = true;
    for (int i = 0; i < 256; i++)
        small &= fabsf(x[i]) <= 1000;
    att_wrap(&from, x, ATT_F32, ATT_DIMS(1, 256), NULL);
    att_wrap(&through, block, type, ATT_DIMS(1, 256), NULL);
    att_wrap(&to, y, ATT_F32, ATT_DIMS(1, 256), NULL);
    if (att_tensor_convert(fuzz_context(), &from, &through))
        return; /* nothing is converted to this type */
    fuzz_check(!att_tensor_convert(fuzz_context(), &through, &to), "a block is refused");
    for (int i = 0; i < 256; i++)
        fuzz_check(!small || fabsf(x[i] - y[i]) <= 1000, "a number is lost");
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static float x[MAX_ROWS * MAX_BLOCKS * 256], y[MAX_ROWS * MAX_COLUMNS], alone[MAX_COLUMNS];
    if (size < HEADER)
        return 0;
    const att_dtype type = types[data[0] % TYPES];
    const int64_t m = 1 + data[1] % MAX_ROWS, n = 1 + data[2] % MAX_COLUMNS,
                  k = (1 + data[3] % MAX_BLOCKS) * att_dtype_block(type);
    const size_t bytes = (size_t)att_dtype_bytes(type, n * k), given = size - HEADER;
    uint8_t *blocks = calloc(bytes, 1); /* without a byte more, so that reading more is found */
    if (!blocks)
        abort();
    memcpy(blocks, data + HEADER, given < bytes ? given : bytes);
    att_tensor w;
    fuzz_check(!att_wrap(&w, blocks, type, ATT_DIMS(n, k), NULL), "whole blocks are refused");
    for (int64_t i = 0; i < m * k; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 16;
    multiply(x, m, &w, y);
    multiply(x + (m - 1) * k, 1, &w, alone);
    for (int64_t j = 0; j < n; j++) {
        const float *together = y + (m - 1) * n + j;
        fuzz_check((isnan(alone[j]) && isnan(*together)) || !memcmp(&alone[j], together, sizeof *together),
                   "a row alone has other bits");
    }
    memset(x, 0, 256 * sizeof *x);
    memcpy(x, data + HEADER, given < 256 * sizeof *x ? given : 256 * sizeof *x);
    quantize(x, type);
    free(blocks);
    return 0;
}
