/* The kernels of optimizers, on every instruction set, against their references in double. */
#include "fixtures/check.h"
#include "kernel/kernel.h"

static check_fence in, out, out2, out3;

static float *place(check_fence *f, int64_t n, uint64_t seed, float center)
{
    float *x = check_place(f, (size_t)n * sizeof *x);
    check_fill(x, n, seed, center, 1);
    return x;
}

static double *doubles(const float *x, int64_t n)
{
    double *y = malloc((size_t)(n + 1) * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

static void untouched(const char *what)
{
    check_untouched(&out, what);
    check_untouched(&out2, what);
    check_untouched(&out3, what);
}

static void adam_numbers(int isa, const att_kernels *k, int64_t n, const att_adam *a)
{
    const float *g = place(&in, n, 1, 0);
    float *x = place(&out, n, 2, 0), *m = place(&out2, n, 3, 0), *v = place(&out3, n, 4, 1.5f);
    double *rx = doubles(x, n), *rm = doubles(m, n), *rv = doubles(v, n);
    k->layer.adam(n, a, g, x, m, v);
    att_ref_adam(n, a, g, rx, rm, rv);
    for (int64_t i = 0; i < n; i++) {
        /* sums of two products of order 1: three roundings, and as many of the slope; x: its own, and a quotient below
         * 2 / sqrt(1/2) of these, times the rate */
        check_near(rm[i], m[i], 6 * FLT_EPSILON, "%s adam m[%d] of %d", att_isa_name(isa), (int)i, (int)n);
        check_near(rv[i], v[i], 12 * FLT_EPSILON, "%s adam v[%d] of %d", att_isa_name(isa), (int)i, (int)n);
        check_near(rx[i], x[i], (1 + (double)a->rate * 40) * FLT_EPSILON, "%s adam x[%d] of %d", att_isa_name(isa),
                   (int)i, (int)n);
    }
    untouched("adam");
    for (int64_t i = 0; i < n; i += 1 + n / 5) { /* alone, a number has the same bits */
        float y[3] = {check_uniform(2, (uint64_t)i), check_uniform(3, (uint64_t)i),
                      1.5f + check_uniform(4, (uint64_t)i)};
        k->layer.adam(1, a, g + i, y, y + 1, y + 2);
        assert_true(y[0] == x[i] && y[1] == m[i] && y[2] == v[i]);
    }
    free(rx), free(rm), free(rv);
}

static void sgd_numbers(int isa, const att_kernels *k, int64_t n, const att_sgd *s, bool momentum)
{
    const float *g = place(&in, n, 1, 0);
    float *x = place(&out, n, 2, 0), *m = place(&out2, n, 3, 0);
    place(&out3, n, 4, 0);
    double *rx = doubles(x, n), *rm = doubles(m, n);
    k->layer.sgd(n, s, g, x, momentum ? m : NULL);
    att_ref_sgd(n, s, g, rx, momentum ? rm : NULL);
    for (int64_t i = 0; i < n; i++) {
        /* a slope below 2 and a moment below 3: some roundings of each */
        check_near(rm[i], m[i], 8 * FLT_EPSILON, "%s sgd m[%d] of %d", att_isa_name(isa), (int)i, (int)n);
        check_near(rx[i], x[i], (1 + (double)s->rate * 8) * FLT_EPSILON, "%s sgd x[%d] of %d", att_isa_name(isa),
                   (int)i, (int)n);
    }
    untouched("sgd");
    free(rx), free(rm);
}

static void kernels_equal_their_references(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 257, 1000};
    check_fence *const fences[] = {&in, &out, &out2, &out3};
    for (int i = 0; i < 4; i++)
        *fences[i] = check_fence_new(4000);
    for (int isa = -1; check_next_isa(&isa);)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int l2 = 0; l2 < 2; l2++) {
                const att_kernels *k = att_kernels_of(isa);
                const att_adam adam = {.scale = 0.5f,
                                       .l2 = (float)l2 * 0.25f,
                                       .beta1 = 0.9f,
                                       .rest1 = 0.1f,
                                       .beta2 = 0.98f,
                                       .rest2 = 0.02f,
                                       .unbias = 1.25f,
                                       .eps = 1e-9f,
                                       .rate = 0.25f,
                                       .decay = (float)!l2 * 0.01f};
                const att_sgd sgd = {.scale = 0.5f, .l2 = (float)l2 * 0.25f, .momentum = 0.9f, .rate = 0.25f};
                adam_numbers(isa, k, sizes[i], &adam);
                sgd_numbers(isa, k, sizes[i], &sgd, true);
                sgd_numbers(isa, k, sizes[i], &sgd, false);
            }
    for (int i = 0; i < 4; i++)
        check_fence_free(fences[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_equal_their_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
