/* The matrix product's kernels on every instruction set that runs here, against the reference in double. */
#include "attend_learn.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"

enum { M_MAX = 100, N_MAX = 130, K_MAX = 2050, PANEL_MAX = 64 };

static check_fence a_memory, b_memory, packed_memory, c_memory, bias_memory, residual_memory, code_memory;
static double expected[M_MAX * N_MAX];
static long combinations;

typedef struct shape {
    int64_t m, n, k;
    int64_t a_gap, c_gap; /* what lies between two rows of A, of C and of the residual */
    bool transposed;      /* B is stored [k, n] */
    bool add;             /* to what C is already */
} shape;

static float *place(check_fence *f, int64_t n) { return check_place(f, (size_t)n * sizeof(float)); }

/* rows of columns, gap floats between two rows, none behind the last */
static int64_t extent(int64_t rows, int64_t columns, int64_t gap) { return rows ? rows * (columns + gap) - gap : 0; }

static float before(int64_t i, int64_t j) { return check_uniform(5, (uint64_t)(i * N_MAX + j)); }

/* The last step after the products. */
typedef struct ending {
    int activation;
    bool bias, residual;
    bool none; /* the kernel gets no epilogue at all */
} ending;

typedef struct product {
    const att_kernels *kernels;
    const shape *s;
    int64_t lda, ldc, stride_n, stride_k;
    float *a, *b, *packed, *c; /* c: what comes out */
    att_epilogue values;
    const att_epilogue *e; /* these, or NULL */
} product;

static product make_product(const att_kernels *k, const shape *s, const ending *with)
{
    const int64_t a_size = extent(s->m, s->k, s->a_gap), c_size = extent(s->m, s->n, s->c_gap);
    float *bias = place(&bias_memory, s->n), *residual = place(&residual_memory, c_size);
    product p = {.kernels = k,
                 .s = s,
                 .lda = s->k + s->a_gap,
                 .ldc = s->n + s->c_gap,
                 .stride_n = s->transposed ? 1 : s->k,
                 .stride_k = s->transposed ? s->n : 1,
                 .a = place(&a_memory, a_size),
                 .b = place(&b_memory, s->n * s->k),
                 .packed = place(&packed_memory, att_ceil_div(s->n, k->nr) * s->k * k->nr),
                 .c = place(&c_memory, c_size)};
    check_fill(p.a, a_size, 1, 0, 1);
    check_fill(p.b, s->n * s->k, 2, 0, 1);
    check_fill(bias, s->n, 3, 0, 1);
    check_fill(residual, c_size, 4, 0, 1);
    for (int64_t i = 0; i < s->m && s->add; i++)
        for (int64_t j = 0; j < s->n; j++)
            expected[i * s->n + j] = p.c[i * p.ldc + j] = before(i, j);
    p.values = (att_epilogue){.add = s->add,
                              .bias = with->bias ? bias : NULL,
                              .residual = with->residual ? residual : NULL,
                              .residual_stride = p.ldc,
                              .activation = with->activation};
    return p;
}

/* In two halves, as two threads would do it. */
static void pack_and_multiply(const product *p)
{
    const shape *s = p->s;
    const int64_t panels = att_ceil_div(s->n, p->kernels->nr), half = panels / 2;
    p->kernels->gemm.pack(s->n, s->k, p->b, p->stride_n, p->stride_k, 0, half, p->packed);
    p->kernels->gemm.pack(s->n, s->k, p->b, p->stride_n, p->stride_k, half, panels, p->packed);
    att_gemm_args args = {.m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .a = p->a,
                          .lda = p->lda,
                          .packed = p->packed,
                          .first = half,
                          .last = panels,
                          .c = p->c,
                          .ldc = p->ldc,
                          .epilogue = p->e};
    p->kernels->gemm.run(&args);
    args.first = 0;
    args.last = half;
    p->kernels->gemm.run(&args);
    check_untouched(&packed_memory, "gemm_pack");
    check_untouched(&c_memory, "gemm");
}

static void check_against_reference(const product *p, int isa)
{
    const shape *s = p->s;
    const int activation = p->values.activation;
    att_ref_gemm(&(const att_ref_gemm_args){.m = s->m,
                                            .n = s->n,
                                            .k = s->k,
                                            .a = p->a,
                                            .lda = p->lda,
                                            .b = p->b,
                                            .stride_n = p->stride_n,
                                            .stride_k = p->stride_k,
                                            .epilogue = p->e},
                 expected, s->n);
    /* k additions round partial sums of size sqrt(j) / 3, j <= k: 0.07 eps k is their deviation, and half an eps k
     * seven of them. GELU steepens it by 1.13. What comes then rounds numbers of the size of the result. */
    const double sums = (double)(s->k + 2) / 2 * (activation == ATT_ACTIVATION_IDENTITY ? 1 : 1.13);
    for (int64_t i = 0; i < s->m; i++) {
        for (int64_t j = 0; j < s->n; j++) {
            const double y = expected[i * s->n + j];
            check_near(y, p->c[i * p->ldc + j], FLT_EPSILON * (sums + 2 + 2 * fabs(y)),
                       "%s gemm %d x %d x %d, activation %d, c[%d][%d]", att_isa_name(isa), (int)s->m, (int)s->n,
                       (int)s->k, activation, (int)i, (int)j);
        }
        for (int64_t j = s->n; j < p->ldc && i < s->m - 1; j++)
            assert_int_equal(check_float_bits(p->c[i * p->ldc + j]), CHECK_CANARY * 0x01010101u);
    }
}

/* Alone, in twos, in fives and all together, rows have the same bits. */
static void check_fewer_rows(const product *p)
{
    const shape *s = p->s;
    float *again = calloc((size_t)((5 + s->m) * p->ldc), sizeof *again);
    const int64_t together[] = {1, 2, 5, s->m};
    for (int way = 0; way < 4; way++) {
        const int64_t rows = together[way];
        for (int64_t i = 0; i + rows <= s->m && i < s->m; i += 1 + s->m / 4) {
            att_epilogue from_row = p->e ? *p->e : (att_epilogue){0};
            if (from_row.residual)
                from_row.residual += i * p->ldc;
            for (int64_t at = 0; at < rows * s->n && s->add; at++)
                again[at / s->n * p->ldc + at % s->n] = before(i + at / s->n, at % s->n);
            p->kernels->gemm.run(&(const att_gemm_args){.m = rows,
                                                        .n = s->n,
                                                        .k = s->k,
                                                        .a = p->a + i * p->lda,
                                                        .lda = p->lda,
                                                        .packed = p->packed,
                                                        .last = att_ceil_div(s->n, p->kernels->nr),
                                                        .c = again,
                                                        .ldc = p->ldc,
                                                        .epilogue = p->e ? &from_row : NULL});
            for (int64_t r = 0; r < rows; r++)
                assert_memory_equal(again + r * p->ldc, p->c + (i + r) * p->ldc, (size_t)s->n * sizeof *again);
        }
    }
    free(again);
}

static void each_set(const shape *s, ending with)
{
    for (int isa = -1; check_next_isa(&isa);) {
        product p = make_product(att_kernels_of(isa), s, &with);
        p.e = with.none ? NULL : &p.values;
        pack_and_multiply(&p);
        check_against_reference(&p, isa);
        check_fewer_rows(&p);
        combinations++;
    }
}

static void products_of_odd_shapes(void **state)
{
    (void)state;
    static const int64_t ms[] = {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25, 97}, ks[] = {0, 1, 2, 3, 17, 64, 129};
    static const int64_t ns[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129};
    for (size_t m = 0; m < sizeof ms / sizeof ms[0]; m++)
        for (size_t n = 0; n < sizeof ns / sizeof ns[0]; n++)
            for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
                each_set(&(shape){.m = ms[m], .n = ns[n], .k = ks[k]}, (ending){.none = true});
}

static void products_of_depths_beyond_a_block(void **state)
{
    (void)state;
    for (int64_t k = 2046; k <= K_MAX; k++)
        each_set(&(shape){.m = 14, .n = 33, .k = k, .add = k % 2},
                 (ending){ATT_ACTIVATION_GELU_ERF, .bias = true, .residual = true});
    static const int64_t ks[] = {513, 1023, 1024, 1025, 1537, K_MAX}; /* one block, even ones, across two panels */
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i += (size_t)check_step(2))
        for (int64_t m = 12; m <= 13; m++)
            each_set(&(shape){.m = m, .n = N_MAX, .k = ks[i], .add = m % 2},
                     (ending){ATT_ACTIVATION_RELU, .bias = true});
}

static void products_with_strides_and_a_transposed_b(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= 15; m += 7)
        for (int64_t n = 5; n <= 100; n += 19)
            each_set(&(shape){.m = m, .n = n, .k = 37, .a_gap = 3, .c_gap = 5, .transposed = n % 2},
                     (ending){.residual = true});
}

static void every_epilogue(void **state)
{
    (void)state;
    for (int activation = ATT_ACTIVATION_IDENTITY; activation <= ATT_ACTIVATION_QUICK_GELU; activation++)
        for (int with = 0; with < 8; with++)
            for (int64_t m = 1; m <= 13; m += 4)
                for (int64_t n = 30; n <= 34; n++)
                    each_set(&(shape){.m = m, .n = n, .k = 19, .c_gap = 1, .add = with & 4},
                             (ending){activation, .bias = with & 1, .residual = with & 2});
}

static void no_rows_and_no_columns_write_nothing(void **state)
{
    (void)state;
    each_set(&(shape){.m = 0, .n = 33, .k = 5}, (ending){ATT_ACTIVATION_GELU_ERF, .bias = true, .residual = true});
    each_set(&(shape){.m = 3, .n = 0, .k = 5}, (ending){ATT_ACTIVATION_GELU_ERF, .bias = true, .residual = true});
}

static void nan_and_infinity_stay_in_their_row(void **state)
{
    (void)state;
    for (int isa = -1; check_next_isa(&isa);) {
        const att_kernels *k = att_kernels_of(isa);
        enum { M = 14, N = 33, K = 9 };
        float a[M * K], b[N * K], c[M * N], clean[M * N];
        float *packed = place(&packed_memory, (N + k->nr - 1) / k->nr * K * k->nr);
        check_fill(a, M * K, 1, 0, 1);
        check_fill(b, N * K, 2, 0, 1);
        k->gemm.pack(N, K, b, K, 1, 0, (N + k->nr - 1) / k->nr, packed);
        k->gemm.run(&(const att_gemm_args){.m = M,
                                           .n = N,
                                           .k = K,
                                           .a = a,
                                           .lda = K,
                                           .packed = packed,
                                           .last = (N + k->nr - 1) / k->nr,
                                           .c = clean,
                                           .ldc = N});
        a[5 * K + 4] = NAN;
        a[7 * K + 2] = INFINITY;
        k->gemm.run(&(const att_gemm_args){.m = M,
                                           .n = N,
                                           .k = K,
                                           .a = a,
                                           .lda = K,
                                           .packed = packed,
                                           .last = (N + k->nr - 1) / k->nr,
                                           .c = c,
                                           .ldc = N});
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                assert_true(i == 5   ? isnan(c[i * N + j])
                            : i == 7 ? !isfinite(c[i * N + j])
                                     : c[i * N + j] == clean[i * N + j]);
    }
}

/* ---- 16-bit codes */

/* c of these codes, or of the same values as f32 */
static void multiply_codes(const att_kernels *k, const shape *s, bool bf16, bool floats, float *c)
{
    const int64_t panels = att_ceil_div(s->n, k->nr), size = s->n * s->k;
    const int64_t stride_n = s->transposed ? 1 : s->k, stride_k = s->transposed ? s->n : 1;
    float *a = place(&a_memory, s->m * s->k), *b = place(&b_memory, size), *bias = place(&bias_memory, s->n);
    float *packed = place(&packed_memory, panels * s->k * k->nr);
    uint16_t *codes = malloc((size_t)size * sizeof *codes + 1);
    uint16_t *packed_codes = check_place(&code_memory, (size_t)(panels * s->k * k->nr) * sizeof *codes);
    check_fill(a, s->m * s->k, 1, 0, 1);
    check_fill(b, size, 2, 0, 1);
    check_fill(bias, s->n, 3, 0, 1);
    (bf16 ? k->vector.to_bf16 : k->vector.to_f16)(size, b, codes);
    (bf16 ? k->vector.from_bf16 : k->vector.from_f16)(size, codes, b);
    k->gemm.pack(s->n, s->k, b, stride_n, stride_k, 0, panels, packed);
    k->gemm.pack_codes(s->n, s->k, codes, stride_n, stride_k, 0, panels, packed_codes);
    for (int64_t i = 0; i < s->m * s->n; i++)
        c[i] = before(i / s->n, i % s->n);
    k->gemm.run(&(const att_gemm_args){
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .a = a,
        .lda = s->k,
        .packed = floats ? packed : NULL,
        .codes = floats ? NULL : packed_codes,
        .bf16 = bf16,
        .last = panels,
        .c = c,
        .ldc = s->n,
        .epilogue = &(const att_epilogue){.bias = bias, .activation = ATT_ACTIVATION_SILU, .add = s->add}});
    free(codes);
}

static void codes_have_the_bits_of_their_values(void **state)
{
    (void)state;
    static const int64_t m[] = {1, 2, 7, 40}, n[] = {1, 33, 130}, depth[] = {0, 1, 9, 300, K_MAX};
    static float want[40 * N_MAX], is[40 * N_MAX];
    for (int isa = -1; check_next_isa(&isa);)
        for (int i = 0; i < 4 * 3 * 5 * 8; i++) {
            const shape s = {
                .m = m[i % 4], .n = n[i / 4 % 3], .k = depth[i / 12 % 5], .transposed = i / 60 & 1, .add = i / 120 & 1};
            const bool bf16 = i / 240 & 1;
            multiply_codes(att_kernels_of(isa), &s, bf16, true, want);
            multiply_codes(att_kernels_of(isa), &s, bf16, false, is);
            if (memcmp(is, want, (size_t)(s.m * s.n) * sizeof *is) != 0)
                fail_msg("%s of %s: m %d, n %d, k %d: other bits than those of f32", bf16 ? "bf16" : "f16",
                         att_isa_name(isa), (int)s.m, (int)s.n, (int)s.k);
        }
}

static int set_up(void **state)
{
    (void)state;
    a_memory = check_fence_new(M_MAX * (K_MAX + 8) * sizeof(float));
    b_memory = check_fence_new(N_MAX * K_MAX * sizeof(float));
    packed_memory = check_fence_new((N_MAX + PANEL_MAX) * K_MAX * sizeof(float));
    c_memory = check_fence_new(M_MAX * (N_MAX + 8) * sizeof(float));
    residual_memory = check_fence_new(M_MAX * (N_MAX + 8) * sizeof(float));
    bias_memory = check_fence_new(N_MAX * sizeof(float));
    code_memory = check_fence_new((N_MAX + PANEL_MAX) * K_MAX * sizeof(uint16_t));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_fence *const all[] = {&a_memory, &b_memory, &packed_memory, &c_memory, &residual_memory, &bias_memory};
    for (int i = 0; i < 6; i++)
        check_fence_free(all[i]);
    print_message("gemm: %ld combinations\n", combinations);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_odd_shapes),
        cmocka_unit_test(products_of_depths_beyond_a_block),
        cmocka_unit_test(products_with_strides_and_a_transposed_b),
        cmocka_unit_test(every_epilogue),
        cmocka_unit_test(no_rows_and_no_columns_write_nothing),
        cmocka_unit_test(nan_and_infinity_stay_in_their_row),
        cmocka_unit_test(codes_have_the_bits_of_their_values),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
