/* The kernels of backwards and losses, on every instruction set, against their references in double. */
#include "attend_learn.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"

enum { LARGEST = 1536 };
static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 64, 65, 127, 257, LARGEST};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static check_fence in, in2, in3, out, out2, out3;

static float *place(check_fence *f, int64_t n) { return check_place(f, (size_t)n * sizeof(float)); }

static float *numbers(check_fence *f, int64_t n, uint64_t seed, float center, float spread)
{
    float *x = place(f, n);
    check_fill(x, n, seed, center, spread);
    return x;
}

/* A test of n numbers on each set, of all sizes. */
static void at_all_sizes(void (*test)(int isa, const att_kernels *k, int64_t n))
{
    for (int isa = -1; check_next_isa(&isa);)
        for (int s = 0; s < N_SIZES; s++)
            test(isa, att_kernels_of(isa), sizes[s]);
}

/* Additions that one chain of a reduction does: four vectors side by side. */
static double chain(const att_kernels *k, int64_t n) { return 4 + (double)n / (4 * k->lanes); }

/* ---- activations */

/* In units of a slope, which is at most 1.13, or of what it is made of:
 * tanh: 1 - t and 1 + t have the error of t, two units, in front of a slope that may be far below: it is absolute.
 * gelu_erf: cumulative and density are to some units; x density is at most 1/4.
 * gelu_tanh: tanh's two units, times x u' / 2, at most 2.
 * quick_gelu: silu's, and what half a unit of 1.702 x changes in it.
 * silu, sigmoid: exp's, that of two quotients, and x times them, at most 1/2.
 * What lies beyond where e^-|x| ends is below 2^-118. */
static const double slope_units[] = {
    [ATT_ACTIVATION_IDENTITY] = 0,  [ATT_ACTIVATION_RELU] = 0,      [ATT_ACTIVATION_GELU_ERF] = 4,
    [ATT_ACTIVATION_GELU_TANH] = 8, [ATT_ACTIVATION_TANH] = 4,      [ATT_ACTIVATION_SILU] = 4,
    [ATT_ACTIVATION_SIGMOID] = 2,   [ATT_ACTIVATION_QUICK_GELU] = 5};

static void slopes(int isa, const att_kernels *k, int64_t n)
{
    for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++)
        for (float spread = 1; spread < 2000; spread *= 10) {
            const float *x = numbers(&in, n, 1, 0, spread), *dy = numbers(&in2, n, 2, 0, 1);
            float *dx = place(&out, n), *same = numbers(&out2, n, 2, 0, 1);
            k->layer.activate_back(act, n, x, dy, dx);
            k->layer.activate_back(act, n, x, same, same); /* in place */
            assert_memory_equal(dx, same, (size_t)n * sizeof *dx);
            for (int64_t i = 0; i < n; i++)
                check_near((double)dy[i] * att_ref_activate_slope(act, (double)x[i]), dx[i],
                           fabs((double)dy[i]) * slope_units[act] * FLT_EPSILON, "%s slope of %d at %a",
                           att_isa_name(isa), act, (double)x[i]);
            check_untouched(&out, "activate_back");
        }
}

static void slopes_of_activations_are_their_references(void **state)
{
    (void)state;
    at_all_sizes(slopes);
    const float x[] = {INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0, 1e-45f};
    enum { N = sizeof x / sizeof x[0] };
    const float ones[N] = {1, 1, 1, 1, 1, 1}, nan = NAN;
    for (int isa = -1; check_next_isa(&isa);)
        for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++) {
            float dx[N];
            att_kernels_of(isa)->layer.activate_back(act, N, x, ones, dx);
            for (int i = 0; i < N; i++) {
                const double at = (double)x[i], limited = fabs(at) > 1e6 ? copysign(1e6, at) : at;
                check_near(att_ref_activate_slope(act, limited), dx[i], 4 * FLT_EPSILON, "%s slope of %d at %g",
                           att_isa_name(isa), act, at);
            }
            att_kernels_of(isa)->layer.activate_back(act, 1, &nan, ones, dx);
            assert_true(isnan(dx[0]) || act == ATT_ACTIVATION_IDENTITY || act == ATT_ACTIVATION_RELU);
        }
}

/* ---- norms */

static void check_norm_back(int isa, const att_kernels *k, int64_t n, bool centered, float spread)
{
    static double dx[LARGEST], dgamma[LARGEST];
    const float eps = 1e-12f;
    const float *x = numbers(&in, n, 3, 0, spread), *gamma = numbers(&in2, n, 4, 1, 0.5f),
                *dy = numbers(&in3, n, 5, 0, 1);
    float *to = numbers(&out, n, 6, 0, 1 / spread), *to_gamma = numbers(&out2, n, 7, 0, 1),
          *to_beta = numbers(&out3, n, 8, 0, 1);
    float before[LARGEST], before_gamma[LARGEST], before_beta[LARGEST];
    memcpy(before, to, (size_t)n * sizeof *to);
    memcpy(before_gamma, to_gamma, (size_t)n * sizeof *to);
    memcpy(before_beta, to_beta, (size_t)n * sizeof *to);
    if (centered)
        k->layer.layer_norm_back(n, x, gamma, eps, dy, to, to_gamma, to_beta);
    else
        k->layer.rms_norm_back(n, x, gamma, eps, dy, to, to_gamma);
    att_ref_norm_back(centered, n, x, gamma, eps, dy, dx, dgamma);
    double squares = 0, mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += centered ? (double)x[i] / (double)n : 0;
    for (int64_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
    /* z = (x - mean) / sigma is off by half of the mean's chain's roundings and that of the variance, and so are the
     * two means of dy gamma and dy gamma z, which are numbers below 1.5 and 1.5 z */
    const double sigma = sqrt(squares + (double)eps), roundings = sqrt(chain(k, n)) + 3;
    for (int64_t i = 0; i < n; i++) {
        const double z = fabs((double)x[i] - mean) / sigma + (double)spread / sigma;
        check_near((double)before[i] + dx[i], to[i],
                   FLT_EPSILON * ((double)(1 / spread) + roundings * 3 * (1 + z) * (1 + z) / sigma),
                   "%s norm %d: dx[%d] of %d", att_isa_name(isa), centered, (int)i, (int)n);
        check_near((double)before_gamma[i] + dgamma[i], to_gamma[i], FLT_EPSILON * (2 + roundings * (1 + z)),
                   "%s norm %d: dgamma[%d] of %d", att_isa_name(isa), centered, (int)i, (int)n);
        assert_true(to_beta[i] == before_beta[i] + (centered ? dy[i] : 0));
    }
    check_untouched(&out, "norm: dx");
    check_untouched(&out2, "norm: dgamma");
    check_untouched(&out3, "norm: dbeta");
}

static void norms(int isa, const att_kernels *k, int64_t n)
{
    for (float spread = 1e-15f; spread < 1e31f; spread *= 1e15f) /* the outer ones' squares are not floats */
        for (int centered = n == 1 ? 0 : 1; centered >= 0; centered--)
            check_norm_back(isa, k, n, centered, spread);
}

static void gradients_of_norms_are_their_references_and_added(void **state)
{
    (void)state;
    at_all_sizes(norms);
}

static void rms(int isa, const att_kernels *k, int64_t n)
{
    static double expected[LARGEST];
    for (float spread = 1e-15f; spread < 1e31f; spread *= 1e15f) {
        const float *x = numbers(&in, n, 3, 0, spread), *gamma = numbers(&in2, n, 4, 1, 0.5f);
        float *y = place(&out, n);
        k->layer.rms_norm(n, x, gamma, 1e-12f, y);
        att_ref_rms_norm(n, x, gamma, 1e-12f, expected);
        for (int64_t i = 0; i < n; i++) /* half of the sum's roundings, and some at the end */
            check_near(expected[i], y[i], FLT_EPSILON * fabs(expected[i]) * (sqrt(chain(k, n)) / 2 + 3),
                       "%s rms_norm[%d] of %d", att_isa_name(isa), (int)i, (int)n);
        check_untouched(&out, "rms_norm");
    }
}

static void rms_norm_is_its_reference(void **state)
{
    (void)state;
    at_all_sizes(rms);
}

/* ---- softmax and losses */

static void softmax_back(int isa, const att_kernels *k, int64_t n)
{
    float *y = place(&in, n);
    const float *dy = numbers(&in2, n, 2, 0, 1);
    float *dx = numbers(&out, n, 3, 0, 1), before[LARGEST];
    memcpy(before, dx, (size_t)n * sizeof *dx);
    check_fill(y, n, 1, 0, 3);
    k->layer.softmax(n, y, y);
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)y[i] * (double)dy[i];
    k->layer.softmax_back(n, y, dy, dx);
    for (int64_t i = 0; i < n; i++) /* the sum is of numbers that together are below 1 */
        check_near((double)before[i] + (double)y[i] * ((double)dy[i] - s), dx[i],
                   FLT_EPSILON * (1 + (double)y[i] * (chain(k, n) + 2)), "%s softmax_back[%d] of %d", att_isa_name(isa),
                   (int)i, (int)n);
    check_untouched(&out, "softmax_back");
}

static void classes(int isa, const att_kernels *k, int64_t n)
{
    for (float spread = 0.1f; spread < 2000; spread *= 10) {
        const float *x = numbers(&in, n, 1, 10, spread);
        const double lse = att_ref_log_sum_exp(n, x);
        double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)x[i], size += fabs((double)x[i]);
        if (n == 0) {
            assert_true(k->layer.log_sum_exp(n, x) == -INFINITY && k->vector.sum(n, x) == 0);
            continue;
        }
        /* the logarithm of a sum is off by as much as the sum is in units; then a sum and rounding of the result */
        check_near(lse, k->layer.log_sum_exp(n, x), FLT_EPSILON * (chain(k, n) + 2 + log((double)n) + fabs(lse)),
                   "%s log_sum_exp of %d", att_isa_name(isa), (int)n);
        check_near(sum, k->vector.sum(n, x), FLT_EPSILON * size, "%s sum of %d", att_isa_name(isa), (int)n);
        float *dx = place(&out, n);
        k->layer.cross_entropy_back(n, x, (float)lse, 0.25f, 3, dx);
        for (int64_t i = 0; i < n; i++) { /* half a unit of lse and of the difference, exp, and the last steps */
            const double p = exp((double)x[i] - (double)(float)lse), distance = fabs((double)x[i] - lse);
            check_near(3 * (p - 0.25), dx[i], 3 * FLT_EPSILON * (p * (distance + 2) + 1),
                       "%s cross_entropy_back[%d] of %d", att_isa_name(isa), (int)i, (int)n);
        }
        check_untouched(&out, "cross_entropy_back");
    }
}

static void logits(int isa, const att_kernels *k, int64_t n)
{
    for (float spread = 0.1f; spread < 2000; spread *= 10) {
        const float *x = numbers(&in, n, 1, 0, spread);
        float *t = numbers(&in2, n, 2, 0.5f, 0.5f), *y = place(&out, n), *dx = place(&out2, n);
        for (int64_t i = 0; i < n; i++)
            t[i] = i % 3 == 2 ? -1 : i % 2 ? t[i] : (float)(i / 2 % 2);
        k->layer.logistic(n, x, t, y);
        k->layer.logistic_back(n, x, t, dx);
        for (int64_t i = 0; i < n; i++) {
            const double at = (double)x[i], target = (double)t[i], expected = att_ref_logistic(at, target);
            /* of each term as many units as it is made with, and beyond e^-87 nothing */
            check_near(expected, y[i],
                       FLT_EPSILON * (fabs(at) * (target > 0 && target < 1) + 4 * expected) + exp(-87) * (1 + fabs(at)),
                       "%s logistic(%a, %a)", att_isa_name(isa), at, target);
            check_near(target < 0 ? 0 : att_ref_activate(ATT_ACTIVATION_SIGMOID, at) - target, dx[i], 3 * FLT_EPSILON,
                       "%s logistic_back(%a, %a)", att_isa_name(isa), at, target);
        }
        check_untouched(&out, "logistic");
        check_untouched(&out2, "logistic_back");
    }
}

static void softmax_back_is_its_reference_and_added(void **state)
{
    (void)state;
    at_all_sizes(softmax_back);
}

static void losses_of_classes_are_their_references(void **state)
{
    (void)state;
    at_all_sizes(classes);
    const float all[] = {-INFINITY, -INFINITY, -INFINITY}, one[] = {2, NAN, 1}, some[] = {-INFINITY, 3, -INFINITY};
    for (int isa = -1; check_next_isa(&isa);) {
        const att_kernels *k = att_kernels_of(isa);
        assert_true(k->layer.log_sum_exp(3, all) == -INFINITY && isnan(k->layer.log_sum_exp(3, one)));
        assert_true(k->layer.log_sum_exp(3, some) == 3);
    }
}

static void losses_of_logits_are_their_references(void **state)
{
    (void)state;
    at_all_sizes(logits);
}

/* ---- turned matrices */

static void turned(int isa, const att_kernels *k, int64_t n)
{
    static const int64_t rows[] = {1, 3, 16, 21};
    for (int s = 0; s < 4 && n <= 65; s++) {
        const int64_t x_stride = n + 2, y_stride = rows[s] + 1;
        const int64_t all = n ? (n - 1) * y_stride + rows[s] : 0;
        const float *x = numbers(&in, n ? (rows[s] - 1) * x_stride + n : 0, 1, 0, 1);
        float *y = place(&out, all);
        k->vector.transpose(rows[s], n, x, x_stride, y, y_stride);
        for (int64_t i = 0; i < all; i++)
            if (i % y_stride < rows[s])
                assert_true(y[i] == x[i % y_stride * x_stride + i / y_stride]);
            else
                assert_int_equal(check_float_bits(y[i]), CHECK_CANARY * 0x01010101u);
        check_untouched(&out, att_isa_name(isa));
    }
}

static void turned_matrices_have_their_numbers_at_other_places(void **state)
{
    (void)state;
    at_all_sizes(turned);
}

/* ---- dropout */

static void drop_rows(int isa, const att_kernels *k, int64_t n)
{
    enum { ROWS = 5, STRIDE = 67 };
    uint64_t bits[ROWS];
    if (n > k->nr || n > 64)
        return;
    for (int residual = 0; residual < 2; residual++) {
        const int64_t all = n ? (ROWS - 1) * STRIDE + n : 0;
        const float *x = numbers(&in, all, 1, 0, 1), *r = numbers(&in2, all, 2, 0, 1);
        float *y = place(&out, all);
        for (int i = 0; i < ROWS; i++)
            bits[i] = 0x5a3c96f017e8d24bu >> i;
        k->dropout.apply_rows((int)n, ROWS, bits, 1.25f, x, residual ? r : NULL, y, STRIDE);
        for (int64_t i = 0; i < all; i++) {
            const int64_t column = i % STRIDE, row = i / STRIDE;
            if (column < n)
                assert_true(y[i] == (bits[row] >> column & 1 ? x[i] * 1.25f : 0) + (residual ? r[i] : 0));
            else
                assert_int_equal(check_float_bits(y[i]), CHECK_CANARY * 0x01010101u);
        }
        check_untouched(&out, att_isa_name(isa));
    }
}

static void dropped_rows_are_kept_by_their_bits(void **state)
{
    (void)state;
    at_all_sizes(drop_rows);
}

/* ---- */

static check_fence *const all_fences[] = {&in, &in2, &in3, &out, &out2, &out3};

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        *all_fences[i] = check_fence_new(LARGEST * sizeof(float));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        check_fence_free(all_fences[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_of_activations_are_their_references),
        cmocka_unit_test(gradients_of_norms_are_their_references_and_added),
        cmocka_unit_test(rms_norm_is_its_reference),
        cmocka_unit_test(softmax_back_is_its_reference_and_added),
        cmocka_unit_test(losses_of_classes_are_their_references),
        cmocka_unit_test(losses_of_logits_are_their_references),
        cmocka_unit_test(turned_matrices_have_their_numbers_at_other_places),
        cmocka_unit_test(dropped_rows_are_kept_by_their_bits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
