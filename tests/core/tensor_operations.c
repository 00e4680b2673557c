/* Product, softmax and cosine on views, on each instruction set that can run here. */
#include "base/base.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "tensor/tensor.h"

static float *at(const att_tensor *t, int64_t i, int64_t j)
{
    return (float *)t->data + i * t->stride[0] + j * t->stride[1];
}

/* k rounded products and as many rounded sums of numbers below 1: |error| <= 2 k eps sum |a b| <= 2 k^2 eps / 2. */
static void compare_product(const att_tensor *a, const att_tensor *b, bool transpose_b, const att_tensor *out)
{
    const int64_t k = a->dim[1];
    for (int64_t i = 0; i < out->dim[0]; i++)
        for (int64_t j = 0; j < out->dim[1]; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; p++) {
                const double term = (double)*at(a, i, p) * (double)(transpose_b ? *at(b, j, p) : *at(b, p, j));
                sum += term;
                size += fabs(term);
            }
            assert_true(fabs((double)*at(out, i, j) - sum) <= ((double)k + 1) * FLT_EPSILON * size + 1e-30);
        }
}

/* The shape [rows, columns] in one of the layouts: dense, transposed, with gaps. */
enum { DENSE, TRANSPOSED, GAPS, N_LAYOUTS };
static size_t wrap_as(att_tensor *t, float *data, int64_t rows, int64_t columns, int layout)
{
    const int64_t strides[N_LAYOUTS][2] = {{columns, 1}, {1, rows}, {3 * columns + 5, 3}};
    assert_int_equal(att_wrap(t, data, ATT_F32, ATT_DIMS(rows, columns), strides[layout]), ATT_OK);
    return (size_t)(rows * (3 * columns + 5));
}

static void matmul_is_the_product_for_all_layouts(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 33, 1}, {40, 31, 64},
                                        {2, 3, 0}, {0, 4, 4}, {5, 0, 2}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int layout = 0; layout < N_LAYOUTS * N_LAYOUTS * N_LAYOUTS * 4; layout++) {
                const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
                const bool transpose_a = layout % 2, transpose_b = layout / 2 % 2;
                float *pa = check_numbers((size_t)(transpose_a ? k * (3 * m + 5) : m * (3 * k + 5)), 1),
                      *pc = check_numbers((size_t)(m * (3 * n + 5)), 3);
                float *pb = check_numbers((size_t)(transpose_b ? n * (3 * k + 5) : k * (3 * n + 5)), 2);
                att_tensor a, b, out;
                wrap_as(&a, pa, transpose_a ? k : m, transpose_a ? m : k, layout / 4 % N_LAYOUTS);
                wrap_as(&b, pb, transpose_b ? n : k, transpose_b ? k : n, layout / 4 / N_LAYOUTS % N_LAYOUTS);
                wrap_as(&out, pc, m, n, layout / 4 / N_LAYOUTS / N_LAYOUTS);
                const att_matmul_options how = {sizeof how, transpose_a, transpose_b};
                assert_int_equal(att_tensor_matmul(ctx, &a, &b, &how, &out), ATT_OK);
                if (transpose_a)
                    att_wrap(&a, pa, ATT_F32, ATT_DIMS(m, k), (const int64_t[]){a.stride[1], a.stride[0]});
                compare_product(&a, &b, transpose_b, &out);
                free(pa);
                free(pb);
                free(pc);
            }
    }
}

static void matmul_refuses_what_does_not_fit(void **state)
{
    (void)state;
    float x[64];
    att_tensor a, b, out;
    att_ctx *ctx = check_open("scalar", 1);
    att_wrap(&a, x, ATT_F32, ATT_DIMS(2, 3), NULL);
    att_wrap(&b, x + 6, ATT_F32, ATT_DIMS(4, 5), NULL);
    att_wrap(&out, x + 26, ATT_F32, ATT_DIMS(2, 5), NULL);
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, NULL, &out), ATT_ERR_SHAPE);
    check_message(NULL, "b.dim[0] = 4 but a.dim[1] = 3");
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &out),
                     ATT_ERR_SHAPE);
    check_message(NULL, "b.dim[1] = 5 but a.dim[1] = 3");
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, ATT_OPTIONS(att_matmul_options, .transpose_a = true), &out),
                     ATT_ERR_SHAPE);
    check_message(NULL, "b.dim[0] = 4 but a.dim[0] = 2");
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, &(const att_matmul_options){0}, &out), ATT_ERR_ARGUMENT);
    check_message(NULL, "att_matmul_options: its field size is 0");
    att_wrap(&b, x + 6, ATT_F32, ATT_DIMS(3, 4), NULL);
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, NULL, &out), ATT_ERR_SHAPE);
    check_message(NULL, "out.dim[1] = 5 but b.dim[1] = 4");
    att_wrap(&out, x, ATT_F32, ATT_DIMS(2, 4), NULL);
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, NULL, &out), ATT_ERR_ARGUMENT);
    check_message(NULL, "overlap");
    assert_int_equal(att_tensor_matmul(ctx, &a, NULL, NULL, &out), ATT_ERR_ARGUMENT);
    att_close(ctx);
}

/* exp, the sum of n and the division: a few roundings each, and n in the sum. */
static void compare_softmax(int64_t n, const float *x, int64_t from, const float *y, int64_t to)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, (double)x[i * from]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i * from] - most);
    for (int64_t i = 0; i < n; i++) {
        const double expected = exp((double)x[i * from] - most) / sum;
        assert_true(fabs((double)y[i * to] - expected) <= ((double)n + 8) * FLT_EPSILON * expected);
    }
}

static void softmax_works_along_any_dimension(void **state)
{
    (void)state;
    enum { A = 3, B = 37, C = 5, ALL = A * B * C };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 3);) {
        float *px = check_numbers(ALL, 5), py[ALL];
        att_tensor x, y;
        att_wrap(&x, px, ATT_F32, ATT_DIMS(A, B, C), NULL);
        att_wrap(&y, py, ATT_F32, ATT_DIMS(A, B, C), NULL);
        for (int dim = -3; dim < 3; dim++) {
            const int d = (dim + 3) % 3;
            const int64_t stride = x.stride[d], n = x.dim[d];
            assert_int_equal(att_tensor_softmax(ctx, &x, dim, &y), ATT_OK);
            for (int64_t i = 0; i < ALL; i++)
                if (i / stride % n == 0) /* the first of a slice */
                    compare_softmax(n, px + i, stride, py + i, stride);
            float in_place[ALL];
            memcpy(in_place, px, sizeof in_place);
            att_wrap(&y, in_place, ATT_F32, ATT_DIMS(A, B, C), NULL);
            assert_int_equal(att_tensor_softmax(ctx, &y, dim, &y), ATT_OK);
            assert_memory_equal(in_place, py, sizeof in_place);
            att_wrap(&y, py, ATT_F32, ATT_DIMS(A, B, C), NULL);
        }
        free(px);
    }
}

static void softmax_of_nothing_but_minus_infinity_is_zero(void **state)
{
    (void)state;
    float px[6] = {-INFINITY, 1, -INFINITY, 2, -INFINITY, 3}, py[6];
    att_tensor x, y;
    att_ctx *ctx = check_open("scalar", 1);
    att_wrap(&x, px, ATT_F32, ATT_DIMS(3, 2), NULL);
    att_wrap(&y, py, ATT_F32, ATT_DIMS(3, 2), NULL);
    assert_int_equal(att_tensor_softmax(ctx, &x, 0, &y), ATT_OK);
    assert_true(py[0] == 0 && py[2] == 0 && py[4] == 0);
    assert_int_equal(att_tensor_softmax(ctx, &x, 2, &y), ATT_ERR_ARGUMENT);
    check_message(NULL, "dim = 2 but x has 2 dimensions");
    att_wrap(&y, px + 1, ATT_F32, ATT_DIMS(2, 2), NULL);
    assert_int_equal(att_tensor_softmax(ctx, &x, 0, &y), ATT_ERR_SHAPE);
    att_wrap(&y, px, ATT_F32, ATT_DIMS(3, 2), (const int64_t[]){1, 3}); /* x, but turned */
    assert_int_equal(att_tensor_softmax(ctx, &x, 0, &y), ATT_ERR_ARGUMENT);
    att_close(ctx);
}

static void cosine_does_not_depend_on_the_scale_of_a_row(void **state)
{
    (void)state;
    enum { M = 19, N = 6, D = 45 };
    static const float scales[N] = {1, 1e-44f, 1e-30f, 1e30f, 3e38f, 0};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        float *pa = check_numbers(M * D, 8), pb[N * D], pc[M * N];
        for (int j = 0; j < N; j++)
            for (int p = 0; p < D; p++)
                pb[j * D + p] = (j % 2 ? -1.0f : 1.0f) * scales[j] * (p % 3 ? 1.0f : 0.0f); /* exact in any scale */
        att_tensor a, b, out;
        att_wrap(&a, pa, ATT_F32, ATT_DIMS(M, D), NULL);
        att_wrap(&b, pb, ATT_F32, ATT_DIMS(N, D), NULL);
        att_wrap(&out, pc, ATT_F32, ATT_DIMS(M, N), NULL);
        assert_int_equal(att_tensor_cosine(ctx, &a, &b, &out), ATT_OK);
        for (int i = 0; i < M; i++) {
            double ab = 0, aa = 0;
            for (int p = 0; p < D; p++) {
                ab += p % 3 ? (double)pa[i * D + p] : 0;
                aa += (double)pa[i * D + p] * (double)pa[i * D + p];
            }
            for (int j = 0; j < N; j++) {
                const double expected = scales[j] > 0 ? (j % 2 ? -1 : 1) * ab / sqrt(aa * (D - D / 3)) : 0;
                assert_true(fabs((double)pc[i * N + j] - expected) <= (D + 8) * FLT_EPSILON);
            }
        }
        free(pa);
    }
}

/* The three calls into out [3, M, N], with this number of threads. */
static void compute_all(int isa, int n_threads, float *px, float *out)
{
    enum { M = 70, N = 90 };
    att_ctx *ctx = check_open(att_isa_name(isa), n_threads);
    att_tensor a, b, y;
    att_wrap(&a, px, ATT_F32, ATT_DIMS(M, N), NULL);
    att_wrap(&b, px + M * N, ATT_F32, ATT_DIMS(N, N), NULL);
    att_wrap(&y, out, ATT_F32, ATT_DIMS(M, N), NULL);
    assert_int_equal(att_tensor_matmul(ctx, &a, &b, NULL, &y), ATT_OK);
    att_wrap(&y, out + M * N, ATT_F32, ATT_DIMS(M, N), NULL);
    assert_int_equal(att_tensor_softmax(ctx, &a, 0, &y), ATT_OK);
    att_wrap(&y, out + 2 * M * N, ATT_F32, ATT_DIMS(M, N), NULL);
    assert_int_equal(att_tensor_cosine(ctx, &a, &b, &y), ATT_OK);
    att_close(ctx);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    enum { ALL = 3 * 70 * 90 };
    float *px = check_numbers(70 * 90 + 90 * 90, 11), *alone = check_numbers(ALL, 0), *shared = check_numbers(ALL, 1);
    for (int isa = -1; check_next_isa(&isa);) {
        compute_all(isa, 1, px, alone);
        for (int n_threads = 2; n_threads < 8; n_threads++) {
            compute_all(isa, n_threads, px, shared);
            assert_memory_equal(alone, shared, ALL * sizeof *alone);
        }
    }
    free(px);
    free(alone);
    free(shared);
}

/* Each call with the n-th allocation failing, for all n: an error, nothing leaked. */
static void simple_calls_survive_the_failure_of_any_allocation(void **state)
{
    (void)state;
    float px[64], py[64], pz[64];
    memset(px, 0, sizeof px);
    memset(py, 0, sizeof py);
    att_tensor x, y, z;
    att_wrap(&x, px, ATT_F32, ATT_DIMS(8, 8), (const int64_t[]){1, 8});
    att_wrap(&y, py, ATT_F32, ATT_DIMS(8, 8), NULL);
    att_wrap(&z, pz, ATT_F32, ATT_DIMS(8, 8), (const int64_t[]){1, 8});
    for (int call = 0; call < 3; call++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        const long at_rest = f.live;
        att_status s = ATT_ERR_MEMORY;
        for (long n = 1; s; n++) {
            assert_true(n < 20);
            f.fail_at = f.calls + n;
            memset(pz, 0x11, sizeof pz);
            s = call == 0   ? att_tensor_matmul(ctx, &x, &y, NULL, &z)
                : call == 1 ? att_tensor_softmax(ctx, &x, 1, &z)
                            : att_tensor_cosine(ctx, &x, &y, &z);
            assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
            for (size_t i = 0; s && i < sizeof pz; i++)
                assert_int_equal(((unsigned char *)pz)[i], 0x11); /* outputs untouched */
            assert_int_equal(f.live, at_rest);
        }
        att_close(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_is_the_product_for_all_layouts),
        cmocka_unit_test(matmul_refuses_what_does_not_fit),
        cmocka_unit_test(softmax_works_along_any_dimension),
        cmocka_unit_test(softmax_of_nothing_but_minus_infinity_is_zero),
        cmocka_unit_test(cosine_does_not_depend_on_the_scale_of_a_row),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(simple_calls_survive_the_failure_of_any_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
