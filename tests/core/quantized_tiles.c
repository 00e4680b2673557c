/* The products of quantized rows in AMX tiles, whose kernel runs here on tiles that are emulated in C, with the vectors
 * of the scalar set. */
#include "fixtures/amx_emulation.h"

#undef ATT_SIMD_NAME
#define ATT_SIMD_NAME scalar
#include "simd/simd.h"

#include "simd/amx_tiles.h"

#include "kernel/quantized_tiles.h"

enum { M_MAX = 40, N_MAX = 50, K_MAX = 2 * DEPTH * BLOCK + BLOCK, BYTES = 34 };
static const att_dtype types[] = {ATT_Q8_0, ATT_Q4_0,   ATT_Q4_1,   ATT_Q5_0, ATT_Q5_1,
                                  ATT_Q4_K, ATT_IQ4_NL, ATT_IQ4_XS, ATT_Q5_K};
enum { N_TYPES = sizeof types / sizeof types[0] };

/* Operands of a product, and what the vectors of the scalar set make of them. */
typedef struct operands {
    uint8_t b[N_MAX * K_MAX / BLOCK * BYTES];
    float x[M_MAX * K_MAX], words[M_MAX * K_MAX / 4], step[M_MAX * K_MAX / BLOCK], sum[M_MAX * K_MAX / BLOCK];
    float want[M_MAX * N_MAX], c[M_MAX * (N_MAX + 1)];
    att_quantized_args args;
} operands;
static operands o;

/* Blocks of any bytes, -128 among them, whose scales are finite. */
static void make(int t, int64_t m, int64_t n, int64_t k)
{
    const att_dtype type = types[t];
    const int64_t block = att_dtype_block(type), bytes = att_dtype_bytes(type, block);
    const att_quantized_kernels *scalar = &att_kernels_of(0)->quantized;
    k = k / block * block;
    for (int64_t i = 0; i < n * k / block * bytes; i++)
        o.b[i] = (uint8_t)check_bits(1, (uint64_t)i);
    for (int64_t i = 0; i < n * k / block; i++) {
        const uint16_t d = (uint16_t)(check_bits(2, (uint64_t)i) % 0x7c00); /* below infinity */
        memcpy(o.b + i * bytes, &d, sizeof d);
        if (layouts[type].has_m)
            memcpy(o.b + i * bytes + 2, &d, sizeof d);
    }
    memset(o.b + bytes - BLOCK / 2, 0x80, BLOCK / 2);
    check_fill(o.x, m * k, 3, 0, 1);
    scalar->quantize(m * k, o.x, o.words, o.step, o.sum);
    o.args = (att_quantized_args){.m = m,
                                  .n = n,
                                  .k = k,
                                  .words = o.words,
                                  .step = o.step,
                                  .sum = o.sum,
                                  .type = (int)type,
                                  .b = o.b,
                                  .row_bytes = k / block * bytes,
                                  .last = att_ceil_div(n, PANEL),
                                  .c = o.want,
                                  .ldc = n};
    scalar->run(&o.args);
}

/* Multiplies in tiles, in two halves of the panels, and compares with `want`. */
static void check_product(void)
{
    att_quantized_args p = o.args;
    const int64_t panels = p.last;
    p.c = o.c;
    p.ldc = p.n + 1;
    for (int64_t i = 0; i < p.m * p.ldc; i++)
        o.c[i] = -7;
    for (p.first = 0, p.last = panels / 2; p.last <= panels && p.first < panels; p.first = p.last, p.last = panels)
        multiply(&p);
    assert_false(emulated_configured);
    for (int64_t i = 0; i < p.m; i++) {
        assert_memory_equal(o.c + i * p.ldc, o.want + i * p.n, (size_t)p.n * sizeof(float));
        assert_float_equal(o.c[i * p.ldc + p.n], -7, 0); /* beside C */
    }
}

static void tiles_have_the_bits_of_vectors(void **state)
{
    (void)state;
    static const int64_t ms[] = {1, 4, 15, 16, 17, 31, 32, 40}, ns[] = {1, 7, 8, 33, 50},
                         ks[] = {0, 32, 64, 96, 160, DEPTH * BLOCK, K_MAX};
    for (int i = 0; i < 8 * 7; i += check_step(3))
        for (int t = 0; t < N_TYPES; t++) {
            make(t, ms[i % 8], ns[i % 5], ks[i % 7]);
            check_product();
        }
    assert_true(emulated_products > 1000);
}

static void tiles_are_configured_once_if_rows_are_whole_tiles(void **state)
{
    (void)state;
    make(0, 32, 50, 96);
    const long before = emulated_configurations;
    multiply(&o.args);
    assert_int_equal(emulated_configurations, before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_have_the_bits_of_vectors),
        cmocka_unit_test(tiles_are_configured_once_if_rows_are_whole_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
