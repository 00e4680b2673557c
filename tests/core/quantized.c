/* Products with quantized weights, and conversion to and from them. */
#include "attend_learn.h"
#include "fixtures/check.h"

#include <float.h>

enum { BLOCK = 32, GOLDEN_BLOCKS = 16, MANY_BLOCKS = 4096, N_TYPES = 5, N_MULTIPLIED = 12 };
static const att_dtype types[N_MULTIPLIED] = {ATT_Q8_0,   ATT_Q4_0, ATT_Q4_1, ATT_Q5_0, ATT_Q5_1, ATT_IQ4_NL,
                                              ATT_IQ4_XS, ATT_Q4_K, ATT_Q5_K, ATT_Q6_K, ATT_Q3_K, ATT_Q2_K};

typedef struct matrix {
    att_tensor floats, blocks, back; /* what it is made of, it, and its numbers */
} matrix;

static att_tensor make(att_dtype type, int64_t rows, int64_t columns)
{
    att_tensor t;
    void *memory = malloc((size_t)att_dtype_bytes(type, rows * columns) + 1);
    assert_non_null(memory);
    assert_int_equal(att_wrap(&t, memory, type, ATT_DIMS(rows, columns), NULL), ATT_OK);
    return t;
}

/* Blocks of random bytes, in which factors of f16 are numbers below 2^-7: of types that nothing is converted to, and of
 * all scales of the others. */
static matrix random_matrix(att_ctx *ctx, att_dtype type, int64_t rows, int64_t columns)
{
    static const int factors[][2] = {
        [ATT_Q8_0] = {0, 0}, [ATT_Q4_0] = {0, 0},     [ATT_Q4_1] = {0, 2},     [ATT_Q5_0] = {0, 0},
        [ATT_Q5_1] = {0, 2}, [ATT_Q2_K] = {80, 82},   [ATT_Q3_K] = {108, 108}, [ATT_Q4_K] = {0, 2},
        [ATT_Q5_K] = {0, 2}, [ATT_Q6_K] = {208, 208}, [ATT_IQ4_NL] = {0, 0},   [ATT_IQ4_XS] = {0, 0}};
    matrix w = {make(ATT_F32, rows, columns), make(type, rows, columns), make(ATT_F32, rows, columns)};
    const int64_t block = att_dtype_block(type), bytes = att_dtype_bytes(type, block);
    uint8_t *p = w.blocks.data;
    uint64_t random = 1;
    for (int64_t i = 0; i < rows * columns / block * bytes; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        p[i] = (uint8_t)(random >> 56);
    }
    for (int64_t b = 0; b < rows * columns / block; b++)
        for (int f = 0; f < 2; f++)
            p[b * bytes + factors[type][f] + 1] &= 0x9f;
    assert_int_equal(att_tensor_convert(ctx, &w.blocks, &w.back), ATT_OK);
    return w;
}

/* Numbers of a seed, rows of unequal sizes, one of zeros */
static matrix make_matrix(att_ctx *ctx, att_dtype type, int64_t rows, int64_t columns)
{
    matrix w = {make(ATT_F32, rows, columns), make(type, rows, columns), make(ATT_F32, rows, columns)};
    float *x = w.floats.data;
    check_fill(x, rows * columns, 7, 0.3f, 1);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] *= i / columns == 1 ? 0 : ldexpf(1, (int)(i / columns % 5) - 2);
    assert_int_equal(att_tensor_convert(ctx, &w.floats, &w.blocks), ATT_OK);
    assert_int_equal(att_tensor_convert(ctx, &w.blocks, &w.back), ATT_OK);
    return w;
}

static void free_matrix(matrix *w)
{
    free(w->floats.data);
    free(w->blocks.data);
    free(w->back.data);
}

/* No number is farther from what it was than half a step, and what the f16 of d and m are rounded by; in Q4_0 and Q5_0
 * the largest of the other sign than that of -8 d, or -16 d, by a whole one. */
static void numbers_are_near_what_they_were(void **state)
{
    (void)state;
    static const struct {
        float step, room;
    } of[N_TYPES] = {{1 / 127.0f, 0.5f}, {1 / 8.0f, 1}, {2 / 15.0f, 0.5f}, {1 / 16.0f, 1}, {2 / 31.0f, 0.5f}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int t = 0; t < N_TYPES; t++) {
            matrix w = make_matrix(ctx, types[t], 9, 96);
            const float *x = w.floats.data, *y = w.back.data;
            for (int64_t b = 0; b < 9 * 96; b += BLOCK) {
                float max = 0;
                for (int i = 0; i < BLOCK; i++)
                    max = fmaxf(max, fabsf(x[b + i]));
                for (int i = 0; i < BLOCK; i++)
                    assert_true(fabsf(x[b + i] - y[b + i]) <= max * (of[t].step * of[t].room + 3 * 0x1p-11f));
            }
            free_matrix(&w);
        }
}

/* From one quantized type to another: as through f32 */
static void types_become_one_another(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int t = 0; t < N_TYPES * N_TYPES; t++) {
            const att_dtype to = types[t / N_TYPES];
            matrix w = make_matrix(ctx, types[t % N_TYPES], 70, 96);
            const size_t bytes = (size_t)att_dtype_bytes(to, 70 * 96);
            att_tensor direct = make(to, 70, 96), through = make(to, 70, 96);
            assert_int_equal(att_tensor_convert(ctx, &w.blocks, &direct), ATT_OK);
            assert_int_equal(att_tensor_convert(ctx, types[t % N_TYPES] == to ? &w.blocks : &w.back, &through), ATT_OK);
            assert_memory_equal(direct.data, through.data, bytes);
            free(direct.data);
            free(through.data);
            free_matrix(&w);
        }
}

/* Those of tests/golden/make_quantized.py */
static void golden_numbers(float *x /* [GOLDEN_BLOCKS][BLOCK] */)
{
    check_fill(x, GOLDEN_BLOCKS * BLOCK, 5, 0, 1);
    for (int b = 0; b < GOLDEN_BLOCKS; b++)
        for (int i = 0; i < BLOCK; i++) {
            float *y = &x[b * BLOCK + i];
            const float scaled = *y * ldexpf(1, b % 7 - 3);
            *y = b == 1   ? 0
                 : b == 2 ? 0.75f
                 : b == 3 ? (i == 0 ? 127 : (float)(i - 16) / 2)
                 : b == 4 ? scaled * 0x1p-100f
                 : b == 5 ? scaled * 0x1p14f
                 : b == 6 ? fabsf(scaled)
                 : b == 7 ? -fabsf(scaled)
                          : scaled;
        }
}

/* Returns the 64-bit FNV-1a hash of MANY_BLOCKS blocks of numbers, every other block with eighths. */
static uint64_t sum_of_many(att_ctx *ctx, att_dtype type)
{
    float *x = check_numbers(MANY_BLOCKS * BLOCK, 6);
    att_tensor from, to = make(type, MANY_BLOCKS, BLOCK);
    for (int64_t i = 0; i < MANY_BLOCKS * BLOCK; i++)
        x[i] = i / BLOCK % 2 ? x[i] : nearbyintf(8 * x[i]);
    att_wrap(&from, x, ATT_F32, ATT_DIMS(MANY_BLOCKS, BLOCK), NULL);
    assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
    uint64_t sum = UINT64_C(0xCBF29CE484222325);
    for (int64_t i = 0; i < att_dtype_bytes(type, MANY_BLOCKS * BLOCK); i++)
        sum = (sum ^ ((const uint8_t *)to.data)[i]) * UINT64_C(0x100000001B3);
    free(x);
    free(to.data);
    return sum;
}

static void bytes_are_those_of_the_package_gguf(void **state)
{
    (void)state;
    float x[GOLDEN_BLOCKS * BLOCK];
    uint8_t blocks[GOLDEN_BLOCKS * 34];
    golden_numbers(x);
    FILE *f = fopen("tests/golden/quantized.txt", "r");
    assert_non_null(f);
    att_ctx *ctx = check_open(NULL, 1);
    for (int t = 0; t < N_TYPES; t++) {
        char name[8];
        att_tensor from, to;
        assert_int_equal(fscanf(f, "%7s ", name), 1);
        assert_string_equal(name, att_dtype_name(types[t]));
        att_wrap(&from, x, ATT_F32, ATT_DIMS(GOLDEN_BLOCKS, BLOCK), NULL);
        att_wrap(&to, blocks, types[t], ATT_DIMS(GOLDEN_BLOCKS, BLOCK), NULL);
        assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
        for (int64_t i = 0; i < att_dtype_bytes(types[t], GOLDEN_BLOCKS * BLOCK); i++) {
            unsigned byte;
            assert_int_equal(fscanf(f, "%2x", &byte), 1);
            if (blocks[i] != byte)
                fail_msg("%s: byte %d is %02x, not %02x", name, (int)i, blocks[i], byte);
        }
    }
    for (int t = 0; t < N_TYPES; t++) {
        char name[8];
        unsigned long long sum;
        assert_int_equal(fscanf(f, "%7s %llx", name, &sum), 2);
        assert_string_equal(name, att_dtype_name(types[t]));
        if (sum_of_many(ctx, types[t]) != sum)
            fail_msg("%s: %d blocks have other bytes than those of gguf", name, MANY_BLOCKS);
    }
    att_close(ctx);
    fclose(f);
}

/* ---- products */

typedef struct rows {
    int64_t m, k;
    float *x, *step;
    double *p; /* [m, k] what x is quantized to */
} rows;

static rows make_rows(int64_t m, int64_t k)
{
    rows a = {m, k, malloc((size_t)(m * k) * sizeof(float)), malloc((size_t)(m * k / BLOCK) * sizeof(float)),
              malloc((size_t)(m * k) * sizeof(double))};
    check_fill(a.x, m * k, 3, 0, 2);
    for (int64_t i = 0; i < BLOCK && i < m * k; i++)
        a.x[i] = 0;
    for (int64_t b = 0; b < m * k / BLOCK; b++) {
        float max = 0;
        for (int i = 0; i < BLOCK; i++)
            max = fmaxf(max, fabsf(a.x[b * BLOCK + i]));
        const float scale = max > 0 ? 127 / max : 0;
        a.step[b] = max / 127;
        for (int i = 0; i < BLOCK; i++)
            a.p[b * BLOCK + i] = nearbyint((double)(a.x[b * BLOCK + i] * scale));
    }
    return a;
}

static void free_rows(rows *a)
{
    free(a->x);
    free(a->step);
    free(a->p);
}

/* activation(a w^T + bias) + residual by att_linear -> y [m, n] */
static void linear(att_ctx *ctx, const rows *a, const att_tensor *w, float *bias, float *residual, float *y)
{
    const int64_t n = w->dim[0];
    att_tape *t;
    att_param *weight, *b;
    att_tensor x, of_bias, r, value;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(att_param_new(ctx, w, &weight), ATT_OK);
    att_wrap(&x, a->x, ATT_F32, ATT_DIMS(a->m, a->k), NULL);
    att_wrap(&of_bias, bias, ATT_F32, ATT_DIMS(n), NULL);
    att_wrap(&r, residual, ATT_F32, ATT_DIMS(a->m, n), NULL);
    assert_int_equal(att_param_new(ctx, &of_bias, &b), ATT_OK);
    att_var *z = att_linear(t, att_constant(t, &x), weight, b, ATT_ACTIVATION_RELU, att_constant(t, &r));
    assert_int_equal(att_var_value(t, z, &value), ATT_OK);
    memcpy(y, value.data, (size_t)(a->m * n) * sizeof *y);
    att_tape_free(t);
    att_param_free(weight);
    att_param_free(b);
}

/* Returns how much larger d q and m may be together than a number: of random bytes they cancel. */
static double of_terms(att_dtype t)
{
    return t == ATT_Q2_K || t == ATT_Q4_K || t == ATT_Q5_K || t == ATT_Q4_1 || t == ATT_Q5_1 ? 8 : 1;
}

/* Each term of a chain is rounded at most three times, and the chain once a term; bias and residual, too. A term is at
 * most the largest d q plus m of 32 numbers in size, 127 times. */
static void check_products(const rows *a, const matrix *w, const float *bias, const float *residual, const float *y)
{
    const int64_t n = w->back.dim[0], k = a->k;
    const float *q = w->back.data;
    const double room = of_terms(w->blocks.dtype);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = bias[j], size = fabs((double)bias[j]) + fabs((double)residual[i * n + j]);
            for (int64_t p = 0; p < k; p++) {
                const double term = (double)a->step[(i * k + p) / BLOCK] * a->p[i * k + p] * (double)q[j * k + p];
                sum += term;
                size += fabs(term) + room * (double)a->step[(i * k + p) / BLOCK] * 127 * fabs((double)q[j * k + p]);
            }
            const double expected = fmax(sum, 0) + (double)residual[i * n + j];
            if (!(fabs((double)y[i * n + j] - expected) <= size * (double)(2 * k / BLOCK + 6) * FLT_EPSILON / 2))
                fail_msg("%s, %d x %d x %d: element %d, %d is %.9g, not %.9g", att_dtype_name(w->blocks.dtype),
                         (int)a->m, (int)n, (int)k, (int)i, (int)j, (double)y[i * n + j], expected);
        }
}

static bool fuses(const att_ctx *ctx) { return strcmp(att_isa(ctx), "scalar") != 0; }

/* Also: any row alone, any number of threads and any set with a fused multiply-add give the same bits. */
static void products_are_those_of_the_definition(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
    } shape[] = {{1, 1, 32},    {1, 70, 96}, {2, 16, 64},    {3, 33, 1056},
                 {7, 100, 576}, {11, 9, 96}, {600, 40, 160}, {4, 8, 0}};
    enum { SHAPES = sizeof shape / sizeof shape[0] };
    for (int s = 0; s < SHAPES; s++)
        for (int t = 0; t < N_MULTIPLIED; t++) {
            const int64_t m = shape[s].m, n = shape[s].n, k = shape[s].k;
            if (k % att_dtype_block(types[t]))
                continue;
            rows a = make_rows(m, k);
            float *bias = malloc((size_t)n * sizeof *bias), *residual = malloc((size_t)(m * n) * sizeof *residual);
            float *y = malloc((size_t)(m * n) * sizeof *y), *before = NULL, *alone = malloc((size_t)n * sizeof *alone);
            check_fill(bias, n, 4, 0, 1);
            check_fill(residual, m * n, 5, 0, 1);
            for (att_ctx *ctx = NULL; check_next_context(&ctx, 3);) {
                matrix w =
                    (t + s) % 2 || t >= N_TYPES ? random_matrix(ctx, types[t], n, k) : make_matrix(ctx, types[t], n, k);
                linear(ctx, &a, &w.blocks, bias, residual, y);
                check_products(&a, &w, bias, residual, y);
                if (before && fuses(ctx))
                    assert_memory_equal(y, before, (size_t)(m * n) * sizeof *y);
                else if (fuses(ctx)) {
                    before = malloc((size_t)(m * n) * sizeof *before);
                    memcpy(before, y, (size_t)(m * n) * sizeof *before);
                }
                const rows last = {1, k, a.x + (m - 1) * k, NULL, NULL};
                linear(ctx, &last, &w.blocks, bias, residual + (m - 1) * n, alone);
                assert_memory_equal(alone, y + (m - 1) * n, (size_t)n * sizeof *alone);
                free_matrix(&w);
            }
            free(bias);
            free(residual);
            free(y);
            free(before);
            free(alone);
            free_rows(&a);
        }
}

/* -128 is not a number that quantizing makes, but a file may have it. */
static void the_lowest_byte_is_exact(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        uint8_t block[34] = {0x00, 0x3c}; /* d = 1 */
        float bias = 0, residual = 0, y;
        rows a = make_rows(1, BLOCK);
        att_tensor w;
        memset(block + 2, 0x80, BLOCK);
        for (int i = 0; i < BLOCK; i++)
            a.x[i] = i % 2 ? -127 : -126;
        att_wrap(&w, block, ATT_Q8_0, ATT_DIMS(1, BLOCK), NULL);
        linear(ctx, &a, &w, &bias, &residual, &y);
        assert_float_equal(y, 128 * 253 * BLOCK / 2, 0);
        free_rows(&a);
    }
}

static void what_is_not_finite_becomes_nan(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        matrix w = make_matrix(ctx, ATT_Q8_0, 3, 64);
        float bias[3] = {0}, residual[6] = {0}, y[6];
        rows a = make_rows(2, 64);
        a.x[70] = INFINITY;
        linear(ctx, &a, &w.blocks, bias, residual, y);
        assert_true(isfinite(y[0]) && isfinite(y[2]) && isnan(y[3]) && isnan(y[5]));
        ((float *)w.floats.data)[1] = NAN;
        assert_int_equal(att_tensor_convert(ctx, &w.floats, &w.blocks), ATT_OK);
        linear(ctx, &a, &w.blocks, bias, residual, y);
        assert_true(isnan(y[0]) && isfinite(y[2]));
        free_matrix(&w);
        free_rows(&a);
    }
}

/* ---- other uses of a quantized weight */

static void rows_of_a_table_are_its_numbers(void **state)
{
    (void)state;
    static const int32_t ids[] = {4, 0, 4};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int t = 0; t < N_MULTIPLIED; t++) {
            const int64_t k = 256;
            matrix w = random_matrix(ctx, types[t], 5, k);
            att_tape *tape;
            att_param *table;
            att_tensor value;
            assert_int_equal(att_tape_new(ctx, NULL, &tape), ATT_OK);
            assert_int_equal(att_param_new(ctx, &w.blocks, &table), ATT_OK);
            assert_int_equal(att_var_value(tape, att_embedding(tape, table, ids, 3), &value), ATT_OK);
            const float *y = value.data;
            for (int i = 0; i < 3; i++)
                assert_memory_equal(y + i * k, (float *)w.back.data + ids[i] * k, (size_t)k * sizeof *y);
            att_tape_free(tape);
            att_param_free(table);
            free_matrix(&w);
        }
}

static void views_that_are_not_in_blocks_are_refused(void **state)
{
    (void)state;
    uint8_t memory[4 * 34];
    att_tensor t;
    assert_int_equal(att_wrap(&t, memory, ATT_Q8_0, ATT_DIMS(1, 33), NULL), ATT_ERR_SHAPE);
    assert_string_equal(att_error(NULL),
                        "att_wrap: out is [1, 33] of Q8_0, whose last dimension must be a multiple of 32");
    assert_int_equal(att_wrap(&t, memory, ATT_Q4_0, ATT_DIMS(2, 32), (const int64_t[]){48, 1}), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, memory, ATT_Q4_0, ATT_DIMS(2, 32), (const int64_t[]){32, 2}), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, memory, ATT_Q4_1, ATT_DIMS(2, 32), (const int64_t[]){64, 1}), ATT_OK);
    assert_int_equal(att_dtype_size(ATT_Q4_1), 0);
    assert_int_equal(att_dtype_bytes(ATT_Q4_1, 64), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_package_gguf),
        cmocka_unit_test(numbers_are_near_what_they_were),
        cmocka_unit_test(types_become_one_another),
        cmocka_unit_test(products_are_those_of_the_definition),
        cmocka_unit_test(the_lowest_byte_is_exact),
        cmocka_unit_test(what_is_not_finite_becomes_nan),
        cmocka_unit_test(rows_of_a_table_are_its_numbers),
        cmocka_unit_test(views_that_are_not_in_blocks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
