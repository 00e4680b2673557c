/* Quantization to blocks of 256, whose formats leave the choice of scales open: the errors are at most those of ggml.
 */
// labels: portable
#include "fixtures/check.h"

#include <math.h>

enum { ROWS = 256, WIDTH = 1024, BLOCK = 256, N_TYPES = 3 };
/* The root mean square error of ggml's own quantization of the numbers below, over the standard deviation of these, by
 * tests/golden/check_quantized.py; and the integers of a whole range. */
static const struct {
    att_dtype type;
    double error, levels;
} types[N_TYPES] = {{ATT_Q4_K, 0.07201, 15}, {ATT_Q5_K, 0.03740, 31}, {ATT_Q6_K, 0.01745, 63}};

static att_status convert(att_ctx *ctx, float *x, int64_t rows, int64_t width, att_dtype type, void *blocks, float *y)
{
    att_tensor from, through, to;
    att_wrap(&from, x, ATT_F32, ATT_DIMS(rows, width), NULL);
    att_wrap(&through, blocks, type, ATT_DIMS(rows, width), NULL);
    att_wrap(&to, y, ATT_F32, ATT_DIMS(rows, width), NULL);
    const att_status s = att_tensor_convert(ctx, &from, &through);
    return s ? s : att_tensor_convert(ctx, &through, &to);
}

static void errors_are_at_most_those_of_ggml(void **state)
{
    (void)state;
    static float y[ROWS * WIDTH];
    static uint8_t blocks[ROWS * WIDTH];
    float *x = check_numbers(ROWS * WIDTH, 8);
    double square = 0, sum = 0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = x[i] * x[i] * x[i];
        sum += (double)x[i];
        square += (double)x[i] * (double)x[i];
    }
    const double variance = square / (ROWS * WIDTH) - pow(sum / (ROWS * WIDTH), 2);
    att_ctx *ctx = check_open(NULL, 2);
    for (int t = 0; t < N_TYPES; t++) {
        double error = 0;
        assert_int_equal(convert(ctx, x, ROWS, WIDTH, types[t].type, blocks, y), ATT_OK);
        for (int i = 0; i < ROWS * WIDTH; i++)
            error += pow((double)x[i] - (double)y[i], 2);
        error = sqrt(error / (ROWS * WIDTH) / variance);
        if (!(error <= types[t].error))
            fail_msg("%s: %.6f of the deviation; ggml %.6f", att_dtype_name(types[t].type), error, types[t].error);
    }
    att_close(ctx);
    free(x);
}

/* Each group has the lowest level, and if it has a minimum also the highest. Factors from 2^-14 on are rounded to f16
 * by at most 2^-11 of themselves. A number is at most all levels times the step, minus at most as many. */
static void numbers_of_one_step_come_back(void **state)
{
    (void)state;
    float x[BLOCK], y[BLOCK];
    uint8_t block[BLOCK];
    att_ctx *ctx = check_open(NULL, 1);
    for (int t = 0; t < N_TYPES; t++)
        for (float size = 0x1p-7f; size < 0x1p12f; size *= 16) {
            for (int i = 0; i < BLOCK; i++) {
                const int levels = (int)types[t].levels + 1;
                x[i] = size * (float)((i % 16 ? i * 7 % levels : 0) - levels / 2);
            }
            assert_int_equal(convert(ctx, x, 1, BLOCK, types[t].type, block, y), ATT_OK);
            for (int i = 0; i < BLOCK; i++)
                assert_true(fabsf(x[i] - y[i]) <= size * (float)types[t].levels * 0x1p-10f);
        }
    att_close(ctx);
}

static void zeros_and_equal_numbers_are_exact(void **state)
{
    (void)state;
    static const float numbers[] = {0, -0.75f, 0.75f, -1e-30f};
    float x[BLOCK], y[BLOCK];
    uint8_t block[BLOCK];
    att_ctx *ctx = check_open(NULL, 1);
    for (int t = 0; t < N_TYPES; t++)
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < BLOCK; i++)
                x[i] = numbers[k];
            assert_int_equal(convert(ctx, x, 1, BLOCK, types[t].type, block, y), ATT_OK);
            for (int i = 0; i < BLOCK; i++)
                assert_true(fabsf(x[i] - y[i]) <= fabsf(x[i]) * 0x1p-10f + 0x1p-60f);
        }
    att_close(ctx);
}

/* What f16 cannot have becomes infinite or NaN, so that writers of files can report it; it never becomes 0. */
static void what_does_not_fit_is_not_finite(void **state)
{
    (void)state;
    static const float numbers[] = {NAN, INFINITY, -INFINITY, 1e9f, -1e9f, 3e38f, -3e38f};
    float x[BLOCK], y[BLOCK];
    uint8_t block[BLOCK];
    att_ctx *ctx = check_open(NULL, 1);
    for (int t = 0; t < N_TYPES; t++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            check_fill(x, BLOCK, 1, 0, 1);
            x[77] = numbers[k];
            assert_int_equal(convert(ctx, x, 1, BLOCK, types[t].type, block, y), ATT_OK);
            assert_false(isfinite(y[77]));
        }
    att_close(ctx);
}

static void other_types_are_refused(void **state)
{
    (void)state;
    static const att_dtype others[] = {ATT_Q2_K, ATT_Q3_K, ATT_IQ4_NL, ATT_IQ4_XS};
    float x[BLOCK] = {0}, y[BLOCK];
    uint8_t block[BLOCK];
    att_ctx *ctx = check_open(NULL, 1);
    for (int t = 0; t < 4; t++) {
        assert_int_equal(convert(ctx, x, 1, BLOCK, others[t], block, y), ATT_ERR_DTYPE);
        check_message(ctx, "to which nothing is converted: Q8_0, Q6_K");
    }
    att_tensor view;
    assert_int_equal(att_wrap(&view, block, ATT_Q6_K, ATT_DIMS(1, 96), NULL), ATT_ERR_SHAPE);
    assert_string_equal(att_error(NULL),
                        "att_wrap: out is [1, 96] of Q6_K, whose last dimension must be a multiple of 256");
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_at_most_those_of_ggml),  cmocka_unit_test(numbers_of_one_step_come_back),
        cmocka_unit_test(zeros_and_equal_numbers_are_exact), cmocka_unit_test(what_does_not_fit_is_not_finite),
        cmocka_unit_test(other_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
