/* The peaks of AMX tiles, whose kernels run here on tiles that are emulated in C: they count what they compute, on
 * random numbers that are neither zeros nor too large. */
#include "fixtures/amx_emulation.h"

#undef ATT_SIMD_NAME
#define ATT_SIMD_NAME scalar
#include "simd/simd.h"

#include "simd/amx_tiles.h"

#include "kernel/peak_tiles.h"

/* Checks what a peak of some repetitions counts, and that it configures and releases the tiles once. */
static void expect_counted(double peak(int64_t repeats, double *operations), int depth)
{
    for (int64_t repeats = 0; repeats < 3; repeats++) {
        double operations = -1;
        emulated_products = emulated_configurations = 0;
        peak(repeats, &operations);
        assert_int_equal(emulated_products, repeats * SUMS * ROUNDS);
        assert_true(operations == 2.0 * EDGE * EDGE * depth * (double)emulated_products);
        assert_int_equal(emulated_configurations, 1);
        assert_false(emulated_configured);
    }
}

static void a_peak_counts_the_products_of_its_tiles(void **state)
{
    (void)state;
    expect_counted(peak_of_bf16, 2 * EDGE);
    expect_counted(peak_of_int8, 4 * EDGE);
}

static void operands_of_bf16_are_random_with_a_magnitude_from_1_to_2(void **state)
{
    (void)state;
    double operations;
    int negative = 0, numbers = 0;
    peak_of_bf16(1, &operations);
    for (int t = SUMS; t < SUMS + OPERANDS; t++)
        for (int i = 0; i < EDGE; i++)
            for (int k = 0; k < 2 * EDGE; k++, numbers++) {
                uint16_t code;
                memcpy(&code, emulated_tiles[t].data[i] + 2 * k, sizeof code);
                const float x = float_of_bits((uint32_t)code << 16);
                negative += x < 0;
                assert_true(fabsf(x) >= 1 && fabsf(x) < 2);
            }
    /* of 2,048 fair signs, within six standard deviations of the half: sqrt(2048) / 2 = 22.6 */
    assert_int_equal(numbers, 2048);
    assert_true(abs(negative - numbers / 2) < 136);
}

static void sums_are_of_all_products(void **state)
{
    (void)state;
    double operations;
    peak_of_int8(2, &operations); /* whole numbers: each round adds the same product */
    for (int t = 0; t < SUMS; t++) {
        const emulated_tile *a = &emulated_tiles[SUMS + t / 2], *b = &emulated_tiles[SUMS + 2 + t % 2];
        for (int i = 0; i < EDGE * EDGE; i++) {
            const int row = i / EDGE, column = i % EDGE;
            int32_t want = 0, sum;
            for (int k = 0; k < 4 * EDGE; k++)
                want += (int8_t)a->data[row][k] * (int8_t)b->data[k / 4][4 * column + k % 4];
            memcpy(&sum, emulated_tiles[t].data[row] + 4 * column, sizeof sum);
            assert_int_equal(sum, 2 * ROUNDS * want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_counts_the_products_of_its_tiles),
        cmocka_unit_test(operands_of_bf16_are_random_with_a_magnitude_from_1_to_2),
        cmocka_unit_test(sums_are_of_all_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
