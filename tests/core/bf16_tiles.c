/* The products of bf16 in AMX tiles, whose kernel runs here on tiles that are emulated in C, and the rounding of their
 * operands. */
#include "fixtures/amx_emulation.h"

#define ATT_INLINE static inline __attribute__((always_inline))
#include "simd/amx_tiles.h"

#include "kernel/bf16_gemm_tiles.h"
#include "attend_learn.h"

enum { M_MAX = 70, N_MAX = 130, GAP = 16, WORDS_MAX = ATT_GEMM_DEPTH + 2 * EDGE };

/* Operands of a product: numbers, and the same in rows and in panels of words. */
typedef struct operands {
    int64_t m, n, k, words;
    uint16_t a[M_MAX][2 * WORDS_MAX], b[N_MAX][2 * WORDS_MAX]; /* [m, k] and [n, k], and zeros */
    float rows[(M_MAX + BLOCK) * (WORDS_MAX + GAP)], panels[(N_MAX + BLOCK) * WORDS_MAX];
} operands;
static operands o;

static float word_of(const uint16_t *pair) { return float_of_bits((uint32_t)pair[1] << 16 | pair[0]); }

/* In [-1, 1), or of all magnitudes. */
static float number(uint64_t seed, int64_t i, bool wild)
{
    const float x = check_uniform(seed, (uint64_t)i);
    return wild ? ldexpf(x, (int)(check_bits(seed + 9, (uint64_t)i) % 150) - 140) : x;
}

static void make_operands(int64_t m, int64_t n, int64_t k, bool wild)
{
    o.m = m, o.n = n, o.k = k;
    o.words = att_round_up(att_ceil_div(k, 2), EDGE);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < 2 * o.words; p++)
            o.a[i][p] = p < k ? round_to_bf16(number(1, i * 5000 + p, wild)) : 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < 2 * o.words; p++)
            o.b[j][p] = p < k ? round_to_bf16(number(2, j * 5000 + p, wild)) : 0;
    memset(o.rows, 0xff, sizeof o.rows); /* NaN in the rows after the last one, whose results are not used */
    for (int64_t p = 0; p < o.words; p++) {
        for (int64_t i = 0; i < m; i++)
            o.rows[i * (o.words + GAP) + p] = word_of(o.a[i] + 2 * p);
        for (int64_t j = 0; j < att_round_up(n, BLOCK); j++)
            o.panels[(j / BLOCK * o.words + p) * BLOCK + j % BLOCK] = j < n ? word_of(o.b[j] + 2 * p) : 0;
    }
}

/* The epilogue of this test adds bias and residual. */
static void add_bias(int64_t rows, int64_t n, float *c, int64_t ldc, const att_epilogue *e, int64_t i, int64_t j)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < n && e->bias; v++)
            c[r * ldc + v] += e->bias[j + v] + e->residual[(i + r) * e->residual_stride + j + v];
}

/* Multiplies rows [row, row + m) by panels [first, last) -> c, rows ldc apart */
static void run(int64_t row, int64_t m, int64_t first, int64_t last, const att_epilogue *e, float *c, int64_t ldc)
{
    multiply(&(const att_gemm_args){.m = m,
                                    .n = o.n,
                                    .k = o.words,
                                    .a = o.rows + row * (o.words + GAP),
                                    .lda = o.words + GAP,
                                    .packed = o.panels,
                                    .first = first,
                                    .last = last,
                                    .c = c,
                                    .ldc = ldc,
                                    .epilogue = e,
                                    .finish = add_bias});
    assert_false(emulated_configured);
}

static float want(int64_t i, int64_t j, float start) { return dot_in_tiles(o.words, o.a[i], o.b[j], start); }

static bool equal(float a, float b) { return bits_of_float(a) == bits_of_float(b) || (isnan(a) && isnan(b)); }

/* One product of all rows in two halves of its panels, with and without a sum that it adds to and an epilogue. */
static void check_product(bool add, bool finish)
{
    static float c[M_MAX * (N_MAX + 1)], bias[N_MAX], residual[M_MAX * N_MAX];
    const int64_t ldc = o.n + 1, panels = att_ceil_div(o.n, BLOCK);
    check_fill(bias, o.n, 3, 0, 1);
    check_fill(residual, o.m * o.n, 4, 0, 1);
    check_fill(c, o.m * ldc, 5, 0, 1);
    const att_epilogue e = {
        .add = add, .bias = finish ? bias : NULL, .residual = finish ? residual : NULL, .residual_stride = o.n};
    run(0, o.m, panels / 2, panels, &e, c, ldc);
    run(0, o.m, 0, panels / 2, &e, c, ldc);
    for (int64_t i = 0; i < o.m; i++) {
        for (int64_t j = 0; j < o.n; j++) {
            float y = want(i, j, add ? check_uniform(5, (uint64_t)(i * ldc + j)) : 0);
            y = finish ? y + (bias[j] + residual[i * o.n + j]) : y;
            if (!equal(y, c[i * ldc + j]))
                fail_msg("%d x %d x %d: c[%d][%d] is %a, not %a", (int)o.m, (int)o.n, (int)o.k, (int)i, (int)j,
                         (double)c[i * ldc + j], (double)y);
        }
        assert_true(c[i * ldc + o.n] == check_uniform(5, (uint64_t)(i * ldc + o.n))); /* beside C */
    }
}

static void the_kernel_has_the_stated_order(void **state)
{
    (void)state;
    static const int64_t ms[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 70}, ns[] = {1, 16, 31, 32, 33, 64, 65, 97, 130};
    for (int64_t k = 0; k <= 66; k += check_step(3))
        for (int way = 0; way < 4; way++) {
            make_operands(ms[(k + way) % 11], ns[(2 * k + way) % 9], k, way == 1);
            check_product(way & 1, way & 2);
        }
    for (int64_t k = 2 * ATT_GEMM_DEPTH - 1; k <= 2 * ATT_GEMM_DEPTH + 33; k += 17) { /* sums that are continued */
        make_operands(18, 33, k, false);
        check_product(k & 1, true);
    }
    assert_true(emulated_products > 1000);
}

static void a_row_has_the_same_bits_alone_and_with_others(void **state)
{
    (void)state;
    static float all[M_MAX * N_MAX], some[M_MAX * N_MAX];
    make_operands(M_MAX, N_MAX, 77, false);
    const int64_t panels = att_ceil_div(o.n, BLOCK);
    run(0, o.m, 0, panels, NULL, all, o.n);
    for (int64_t row = 0, m = 1; row + m <= o.m; row += 3, m = m % 40 + 1) {
        run(row, m, 0, panels, NULL, some, o.n);
        assert_memory_equal(some, all + row * o.n, (size_t)(m * o.n) * sizeof *all);
    }
}

static void tiles_are_configured_once_a_product(void **state)
{
    (void)state;
    static float c[M_MAX * N_MAX];
    make_operands(M_MAX, N_MAX, 64, false);
    const long before = emulated_configurations;
    run(0, o.m, 0, att_ceil_div(o.n, BLOCK), NULL, c, o.n);
    assert_int_equal(emulated_configurations, before + 1);
}

/* ---- the kernels that round, here where the processor has them */

/* Rows of a number of pairs that is a multiple of a tile's, from each layout */
static void check_rounding(const att_kernels *k, int64_t rows, bool across)
{
    static float x[BLOCK * 2 * WORDS_MAX], words[BLOCK * WORDS_MAX], panel[BLOCK * WORDS_MAX];
    const int64_t row = across ? 1 : o.k + 1, column = across ? rows + 2 : 1, step = o.words + GAP;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < o.k; p++)
            x[i * row + p * column] = number(1, i * 5000 + p, true); /* what make_operands has rounded */
    const att_round_args args = {rows, o.k, o.words, x, row, column};
    memset(words, 0xff, sizeof words);
    memset(panel, 0xff, sizeof panel);
    k->round.rows(&args, words, step);
    k->round.panels(&args, panel);
    for (int64_t i = 0; i < BLOCK; i++)
        for (int64_t p = 0; p < o.words; p++) {
            const uint32_t word = i < rows ? bits_of_float(word_of(o.a[i] + 2 * p)) : 0;
            assert_int_equal(bits_of_float(panel[p * BLOCK + i]), word);
            assert_true(i >= rows || bits_of_float(words[i * step + p]) == word);
        }
    for (int64_t i = 0; i < rows; i++) /* nothing between rows is written */
        assert_int_equal(bits_of_float(words[i * step + o.words]), 0xffffffff);
}

static void operands_are_rounded_and_padded_with_zeros(void **state)
{
    (void)state;
    bool any = false;
    for (int isa = -1; check_next_isa(&isa);) {
        const att_kernels *k = att_kernels_of(isa);
        for (int64_t depth = 1; k->round.rows && depth < 70; depth += 4)
            for (int64_t rows = 1; rows <= BLOCK; rows += rows < 15 ? 7 : 1) {
                make_operands(rows, 1, depth, true);
                check_rounding(k, rows, depth & 4);
            }
        any |= k->round.rows != NULL;
    }
    if (!any)
        skip(); /* no set that rounds to bf16 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_has_the_stated_order),
        cmocka_unit_test(a_row_has_the_same_bits_alone_and_with_others),
        cmocka_unit_test(tiles_are_configured_once_a_product),
        cmocka_unit_test(operands_are_rounded_and_padded_with_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
