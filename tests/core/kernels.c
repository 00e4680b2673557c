/* Every kernel on every instruction set that runs here, against the references in double.
 * ATT_CHECK_STRIDE=1 ./test_kernels tries all 2^32 floats in place of every 4099th (half an hour). */
#include "attend_learn.h"
#include "check.h"
#include "kernel/kernel.h"

enum { LARGEST = 4096 };
static const int64_t sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  11,  13,  15,  16,  17,  23,   29,     31,
                                32, 33, 37, 47, 61, 63, 64, 65, 97, 127, 255, 256, 257, 384, 1536, LARGEST};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static check_fence in, in2, in3, out, out2;
static long combinations[8]; /* per set */

/* Runs a test on each usable set. */
static void on_each_set(void (*test)(int isa, const att_kernels *k))
{
    for (int isa = -1; check_next_isa(&isa);)
        test(isa, att_kernels_of(isa));
}

/* x [n] behind the fence of f */
static float *place(check_fence *f, int64_t n) { return check_place(f, (size_t)n * sizeof(float)); }

/* Additions that one chain of a reduction does: four vectors side by side. */
static double chain(const att_kernels *k, int64_t n) { return 4 + (double)n / (4 * k->lanes); }

/* ---- one number to one number */

typedef struct function {
    const char *name;
    double (*reference)(double x);
    double (*tolerance)(double x, double expected, bool fused); /* fused: one rounding for a multiply-add */
    void (*run)(const att_kernels *k, int64_t n, const float *x, float *y);
} function;

static double identity_reference(double x) { return att_ref_activate(ATT_IDENTITY, x); }
static double relu_reference(double x) { return att_ref_activate(ATT_RELU, x); }
static double gelu_erf_reference(double x) { return att_ref_activate(ATT_GELU_ERF, x); }
static double gelu_tanh_reference(double x) { return att_ref_activate(ATT_GELU_TANH, x); }
static double silu_reference(double x) { return att_ref_activate(ATT_SILU, x); }
static double sigmoid_reference(double x) { return att_ref_activate(ATT_SIGMOID, x); }
static double tanh_reference(double x) { return att_ref_activate(ATT_TANH, x); }
/* e to the power of x, at most 0, from the float that x log2 e rounds to; below 2^-126 it is 0. */
static double weight_reference(double x)
{
    const float power = (float)x * (float)ATT_LOG2_E;
    return power > 0 ? 1 : power < -126 ? 0 : exp2((double)power);
}

static void identity_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_IDENTITY, n, x, y);
}
static void relu_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_RELU, n, x, y);
}
static void gelu_erf_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_GELU_ERF, n, x, y);
}
static void gelu_tanh_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_GELU_TANH, n, x, y);
}
static void activate_tanh_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_TANH, n, x, y);
}
static void silu_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_SILU, n, x, y);
}
static void sigmoid_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    k->layer.activate(ATT_SIGMOID, n, x, y);
}
static void exp2_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.exp2(n, x, y); }
/* A weight of attention, of a score that is at most the largest, 0. */
static void weight_run(const att_kernels *k, int64_t n, const float *x, float *y)
{
    const float zero[64] = {0};
    for (int64_t i = 0; i < n; i += k->nr) {
        float p[64] = {0}, ds[64] = {0};
        const int64_t some = n - i < k->nr ? n - i : k->nr;
        for (int64_t j = 0; j < some; j++)
            p[j] = x[i + j] > 0 ? 0 : x[i + j];
        k->backward.softmax(1, 1, p, ds, k->nr, zero, zero);
        memcpy(y + i, p, (size_t)some * sizeof *p);
    }
}
static void exp_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.exp(n, x, y); }
static void log2_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.log2(n, x, y); }
static void erf_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.erf(n, x, y); }
static void tanh_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.tanh(n, x, y); }

static double exact(double x, double expected, bool fused)
{
    (void)x, (void)expected, (void)fused;
    return 0;
}
/* One for the polynomial's last step and what came before it; a denormal result is rounded once more. */
static double exp2_tolerance(double x, double expected, bool fused)
{
    return check_unit(expected) * ((fused ? 1 : 1.25) + (x < -126 ? 0.5 : 0));
}
/* Half a unit for the polynomial's last step, a quarter and an eighth for those before it, and three quarters as x, a
 * little below 0, is cut off to a unit of 1 when 1 is added (log 2 of one; half of that where it is rounded). */
static double weight_tolerance(double x, double expected, bool fused)
{
    (void)x, (void)fused;
    return check_unit(expected) * 1.625;
}
/* As exp2, and a quarter more for the argument's reduction. */
static double exp_tolerance(double x, double expected, bool fused)
{
    (void)x;
    return check_unit(expected) * ((fused ? 1 : 1.25) + 0.25 + (expected < FLT_MIN ? 0.5 : 0));
}
static double two_units(double x, double expected, bool fused)
{
    (void)x, (void)fused;
    return 2 * check_unit(expected);
}
/* Phi(-t) = 2^P, P = t A / B - 1. Six half units of P: two for each polynomial (its last step, those before it), the
 * division, the last step; three more where a multiply-add rounds twice. The approximation's own 2.3e-8 (1 + t^3). Two
 * units of the result. Beyond 12.75 it stays at about -2e-36. */
static double gelu_erf_tolerance(double x, double expected, bool fused)
{
    const double t = fmin(fabs(x), 14), tail = t * erfc(t / sqrt(2)) / 2, log2_tail = t > 0 ? log2(t / tail) : 0;
    return tail * log(2) * ((fused ? 6 : 9) * log2_tail * 0x1p-24 + 2.3e-8 * (1 + t * t * t)) +
           2 * check_unit(expected) + 2e-36;
}
/* Three roundings of the exponent, then three units of the result. Beyond 10 it stays at about -1.2e-37. */
static double gelu_tanh_tolerance(double x, double expected, bool fused)
{
    (void)fused;
    const double t = fmin(fabs(x), 10), exponent = t * (1.5957691216 + 0.0713548162 * t * t);
    return t / (1 + exp(exponent)) * 3 * exponent * 0x1p-24 + 3 * check_unit(expected) + 1.3e-37;
}
/* Two of exp, in units that may be half those of the result, one each of 1 + e and the quotient; below -87.3 it stays
 * at 2^-126. SiLU: a product more, and 128 times that. */
static double sigmoid_tolerance(double x, double expected, bool fused)
{
    (void)x, (void)fused;
    return 4 * check_unit(expected) + 0x1.01p-126;
}
static double silu_tolerance(double x, double expected, bool fused)
{
    (void)x, (void)fused;
    return 5 * check_unit(expected) + 0x1.01p-119;
}

static const function functions[] = {
    {"identity", identity_reference, exact, identity_run},
    {"relu", relu_reference, exact, relu_run},
    {"gelu_erf", gelu_erf_reference, gelu_erf_tolerance, gelu_erf_run},
    {"gelu_tanh", gelu_tanh_reference, gelu_tanh_tolerance, gelu_tanh_run},
    {"activate tanh", tanh_reference, two_units, activate_tanh_run},
    {"silu", silu_reference, silu_tolerance, silu_run},
    {"sigmoid", sigmoid_reference, sigmoid_tolerance, sigmoid_run},
    {"exp2", exp2, exp2_tolerance, exp2_run},
    {"weight", weight_reference, weight_tolerance, weight_run},
    {"exp", exp, exp_tolerance, exp_run},
    {"log2", log2, two_units, log2_run},
    {"erf", erf, two_units, erf_run},
    {"tanh", tanh, two_units, tanh_run},
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static void check_function(int isa, const function *f, int64_t n, const float *x, const float *y)
{
    for (int64_t i = 0; i < n; i++) {
        const double expected = f->reference(x[i]);
        check_near(expected, y[i], f->tolerance(x[i], expected, isa > 0), "%s %s(%a)", att_isa_name(isa), f->name,
                   (double)x[i]);
    }
}

static void functions_at_all_sizes(int isa, const att_kernels *k)
{
    for (int i = 0; i < N_FUNCTIONS; i++) {
        for (int s = 0; s < N_SIZES; s++) {
            const int64_t n = sizes[s];
            float *x = place(&in, n), *y = place(&out, n);
            check_fill(x, n, (uint64_t)s, 0, 6);
            functions[i].run(k, n, x, y);
            check_function(isa, &functions[i], n, x, y);
            check_untouched(&out, functions[i].name);
            combinations[isa]++;

            for (int64_t j = 0; j < n; j += 1 + n / 7) { /* alone, an element has the same bits */
                float *one = place(&out2, 1);
                functions[i].run(k, 1, x + j, one);
                assert_memory_equal(one, y + j, sizeof *one);
            }
            functions[i].run(k, n, x, x); /* in place too */
            assert_memory_equal(x, y, (size_t)n * sizeof *x);
        }
    }
}
static void functions_of_any_number_of_elements(void **state)
{
    (void)state;
    on_each_set(functions_at_all_sizes);
}

/* Every stride-th float, from all exponents, both signs, denormals, infinities and NaN. */
static void functions_on_all_exponents(int isa, const att_kernels *k)
{
    const char *text = getenv("ATT_CHECK_STRIDE");
    const uint64_t stride = text ? strtoull(text, NULL, 10) : 4099;
    for (int i = 0; i < N_FUNCTIONS; i++) {
        float *x = place(&in, LARGEST), *y = place(&out, LARGEST);
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
            int64_t n = 0;
            for (; n < LARGEST && bits < (uint64_t)1 << 32; n++, bits += stride)
                memcpy(x + n, &(uint32_t){(uint32_t)bits}, sizeof *x);
            functions[i].run(k, n, x, y);
            check_function(isa, &functions[i], n, x, y);
        }
        combinations[isa]++;
    }
}
static void functions_keep_their_bounds_on_all_exponents(void **state)
{
    (void)state;
    on_each_set(functions_on_all_exponents);
}

static void special_values(int isa, const att_kernels *k)
{
    const float x[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 1e-45f, -1e-45f, 0, -0.0f, FLT_MIN};
    enum { N = sizeof x / sizeof x[0] };
    float y[N];
    for (int i = 0; i < N_FUNCTIONS; i++) {
        functions[i].run(k, N, x, y);
        check_function(isa, &functions[i], N, x, y);
        combinations[isa]++;
    }
    k->vector.exp2(N, x, y);
    assert_true(y[2] == 0 && y[4] == 0 && y[7] == 1 && y[8] == 1);
    k->vector.exp(N, x, y);
    assert_true(y[1] == INFINITY && y[2] == 0 && y[3] == INFINITY && y[4] == 0 && y[7] == 1 && y[8] == 1);
    k->vector.log2(N, x, y);
    assert_true(isnan(y[2]) && isnan(y[4]) && isnan(y[6]) && y[5] == -149 && y[9] == -126);
    assert_true(y[7] == -INFINITY && y[8] == -INFINITY && y[1] == INFINITY);
    k->vector.erf(N, x, y);
    assert_true(y[1] == 1 && y[2] == -1 && signbit(y[8]) && !signbit(y[7]));
    k->vector.tanh(N, x, y);
    assert_true(y[1] == 1 && y[2] == -1 && signbit(y[8]) && !signbit(y[7]));
}
static void functions_define_nan_infinities_zeros_and_denormals(void **state)
{
    (void)state;
    on_each_set(special_values);
}

/* ---- rows */

static void check_softmax(int isa, const att_kernels *k, int64_t n, const float *x)
{
    double expected[LARGEST];
    float *y = place(&out, n), top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        top = fmaxf(top, x[i]);
    k->layer.softmax(n, x, y);
    att_ref_softmax(n, x, expected);
    for (int64_t i = 0; i < n; i++) {
        /* half a unit of x - top, that of exp, the sum's, the product's; weights below e^-87 may be 0 */
        const double distance = isfinite(x[i]) ? top - x[i] : 0;
        const double units = 0.5 * distance + 1.25 + sqrt(chain(k, n)) + 1;
        check_near(expected[i], y[i], expected[i] * FLT_EPSILON * units + 2 * exp(-87), "%s softmax[%d] of %d",
                   att_isa_name(isa), (int)i, (int)n);
    }
    check_untouched(&out, "softmax");
    combinations[isa]++;
}
static void softmax_rows(int isa, const att_kernels *k)
{
    for (int s = 0; s < N_SIZES; s++) {
        const int64_t n = sizes[s];
        float *x = place(&in, n);
        for (float spread = 0.01f; spread < 1e4f; spread *= 30) {
            check_fill(x, n, (uint64_t)s, -spread, spread);
            check_softmax(isa, k, n, x);
        }
        for (int64_t i = 0; i < n; i++)
            x[i] = i % 3 ? -INFINITY : x[i];
        check_softmax(isa, k, n, x);
        float *y = place(&out, n);
        k->layer.softmax(n, x, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(i % 3 == 0 || y[i] == 0);
        k->layer.softmax(n, x, x);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);

        for (int64_t i = 0; i < n; i++)
            x[i] = -INFINITY;
        k->layer.softmax(n, x, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == 0);
        if (n) {
            x[n / 2] = NAN;
            k->layer.softmax(n, x, y);
            for (int64_t i = 0; i < n; i++)
                assert_true(isnan(y[i]));
        }
    }
}
static void softmax_equals_its_reference_ignores_minus_infinity_and_keeps_nan(void **state)
{
    (void)state;
    on_each_set(softmax_rows);
}

static void layer_norm_rows(int isa, const att_kernels *k)
{
    static double expected[LARGEST];
    for (int s = 0; s < N_SIZES; s++) {
        const int64_t n = sizes[s];
        float *x = place(&in, n), *gamma = place(&in2, n), *beta = place(&in3, n), *y = place(&out, n);
        check_fill(gamma, n, 1, 1, 0.5f);
        check_fill(beta, n, 2, 0, 1);
        for (float centre = 0; centre <= 100; centre += 50) {
            check_fill(x, n, (uint64_t)s + 3, centre, 1);
            k->layer.layer_norm(n, x, gamma, beta, 1e-12f, y);
            att_ref_layer_norm(n, x, gamma, beta, 1e-12f, expected);
            double mean = 0, variance = 0;
            for (int64_t i = 0; i < n; i++)
                mean += x[i] / (double)n;
            for (int64_t i = 0; i < n; i++)
                variance += (x[i] - mean) * (x[i] - mean) / (double)n;
            const double sigma = sqrt(variance + 1e-12), mean_error = (fabs(mean) + 1) * sqrt(chain(k, n));
            for (int64_t i = 0; i < n; i++) {
                /* the mean's rounding, seen through the division by sigma; that of the variance; the last steps */
                const double z = fabs(expected[i] - beta[i]);
                const double units = mean_error / sigma * fabs(gamma[i]) + z * (sqrt(chain(k, n)) + 2) + 1;
                check_near(expected[i], y[i], FLT_EPSILON * units, "%s layer_norm[%d] of %d", att_isa_name(isa), (int)i,
                           (int)n);
            }
            check_untouched(&out, "layer_norm");
            combinations[isa]++;
        }
        k->layer.layer_norm(n, x, gamma, beta, 1e-12f, x);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
    }
}
static void layer_norm_equals_its_reference(void **state)
{
    (void)state;
    on_each_set(layer_norm_rows);
}

static void normalize_rows(int isa, const att_kernels *k)
{
    static double expected[LARGEST];
    for (int s = 0; s < N_SIZES; s++) {
        const int64_t n = sizes[s];
        float *x = place(&in, n), *y = place(&out, n);
        for (float spread = 0; spread <= 1000; spread = spread * 100 + 1e-3f) {
            check_fill(x, n, (uint64_t)s, 0, spread);
            k->layer.normalize(n, x, 1e-12f, y);
            att_ref_normalize(n, x, 1e-12f, expected);
            for (int64_t i = 0; i < n; i++)
                check_near(expected[i], y[i], fabs(expected[i]) * FLT_EPSILON * (sqrt(chain(k, n)) / 2 + 2),
                           "%s normalize[%d] of %d", att_isa_name(isa), (int)i, (int)n);
            check_untouched(&out, "normalize");
            combinations[isa]++;
        }
        if (n) {
            x[n - 1] = NAN;
            k->layer.normalize(n, x, 1e-12f, y);
            for (int64_t i = 0; i < n; i++)
                assert_true(isnan(y[i]));
        }
    }
}
static void normalize_divides_by_the_length_or_by_eps(void **state)
{
    (void)state;
    on_each_set(normalize_rows);
}

/* Numbers whose squares are no floats, very large, very small and denormal. */
static const float extremes[] = {1e28f, 1e30f, 3e38f, 1e-18f, 1e-30f, 1e-44f};
enum { N_EXTREMES = sizeof extremes / sizeof extremes[0] };

/* There sums are in double: only the last step rounds to float, but for rows where eps is above all of them. */
static void norm_extremes(int isa, const att_kernels *k)
{
    static double expected[LARGEST];
    for (int s = 0; s < N_SIZES * N_EXTREMES * 2; s++) {
        const int64_t n = sizes[s / N_EXTREMES / 2];
        const float spread = extremes[s / 2 % N_EXTREMES], eps = s % 2 ? 1e-12f : 0;
        float *x = place(&in, n), *gamma = place(&in2, n), *beta = place(&in3, n), *y = place(&out, n);
        check_fill(x, n, (uint64_t)s, 0, spread);
        check_fill(gamma, n, 1, 1, 0.5f);
        check_fill(beta, n, 2, 0, 1);
        k->layer.layer_norm(n, x, gamma, beta, eps, y);
        att_ref_layer_norm(n, x, gamma, beta, eps, expected);
        for (int64_t i = 0; i < n; i++)
            check_near(expected[i], y[i], FLT_EPSILON / 2 * fabs(expected[i]) + 1e-12, "%s: layer_norm[%d] of %d at %g",
                       att_isa_name(isa), (int)i, (int)n, (double)spread);
        k->layer.normalize(n, x, eps, y);
        att_ref_normalize(n, x, eps, expected);
        for (int64_t i = 0; i < n; i++)
            check_near(expected[i], y[i], FLT_EPSILON / 2 * fabs(expected[i]) + FLT_TRUE_MIN / 2,
                       "%s: normalize[%d] of %d at %g", att_isa_name(isa), (int)i, (int)n, (double)spread);
        check_untouched(&out, "a norm of extremes");
        for (int64_t i = 0; i < n; i++)
            x[i] = spread;
        k->layer.layer_norm(n, x, gamma, beta, 1e-12f, y);
        for (int64_t i = 0; i < n; i++) /* a mean of equals is that, a sum of small ones that is not is below eps */
            check_near((double)beta[i], y[i], 1e-6, "%s: layer_norm[%d] of %d equals", att_isa_name(isa), (int)i,
                       (int)n);
        if (n > 1) {
            x[n / 2] = -INFINITY;
            k->layer.normalize(n, x, eps, y);
            for (int64_t i = 0; i < n; i++)
                assert_true(i == n / 2 ? isnan(y[i]) : y[i] == 0);
        }
    }
}
static void norms_of_very_large_and_very_small_numbers_are_as_exact(void **state)
{
    (void)state;
    on_each_set(norm_extremes);
}

/* ---- vectors */

static void vector_sizes(int isa, const att_kernels *k)
{
    for (int s = 0; s < N_SIZES; s++) {
        const int64_t n = sizes[s];
        float *a = place(&in, n), *b = place(&in2, n), *y = place(&out, n);
        check_fill(a, n, (uint64_t)s, 0, 3);
        check_fill(b, n, (uint64_t)s + 99, 0, 3);
        k->vector.add(n, a, b, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] + b[i]);
        k->vector.sub(n, a, b, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] - b[i]);
        k->vector.max(n, a, b, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == (a[i] > b[i] ? a[i] : b[i]));
        k->vector.scale(n, 0.7f, a, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] * 0.7f);
        check_untouched(&out, "vector");

        double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += (double)a[i] * b[i];
            size += fabs((double)a[i] * b[i]);
        }
        /* each chain's additions round partial sums that together are at most size */
        check_near(sum, k->vector.dot(n, a, b), FLT_EPSILON * size, "%s dot of %d", att_isa_name(isa), (int)n);
        combinations[isa] += 4;

        for (int64_t i = 0; i < n; i++) {
            a[i] = i % 2 ? NAN : a[i];
            b[i] = i % 3 ? b[i] : NAN;
        }
        k->vector.max(n, a, b, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(isnan(y[i]) == (i % 2 || i % 3 == 0));
    }
}
static void vector_arithmetic_is_exact_and_max_keeps_nan(void **state)
{
    (void)state;
    on_each_set(vector_sizes);
}

/* The number that 16 bits encode: sign, exponent bits, the rest. */
static double decode(uint32_t code, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1;
    const int exponent = (int)(code & 0x7fff) >> fraction_bits, fraction = (int)code & ((1 << fraction_bits) - 1);
    const double sign = code & 0x8000 ? -1 : 1;
    if (exponent == top)
        return fraction ? NAN : sign * INFINITY;
    return sign *
           ldexp(fraction + (exponent ? 1 << fraction_bits : 0), (exponent ? exponent : 1) - top / 2 - fraction_bits);
}

static void short_formats(int isa, const att_kernels *k)
{
    static const struct {
        const char *name;
        int exponent_bits;
    } formats[] = {{"f16", 5}, {"bf16", 8}};
    for (int f = 0; f < 2; f++) {
        for (int s = 0; s < N_SIZES; s++) {
            const int64_t n = sizes[s];
            if (n == 0)
                continue;
            uint16_t *x = check_place(&in, (size_t)n * sizeof *x);
            float *y = place(&out, n);
            const int64_t codes = n < 256 ? 4 * n : 65536; /* all codes where n allows it in a short time */
            for (int64_t first = 0; first < codes; first += n) {
                for (int64_t i = 0; i < n; i++)
                    x[i] = (uint16_t)((first + i) * 65536 / codes);
                (f ? k->vector.from_bf16 : k->vector.from_f16)(n, x, y);
                for (int64_t i = 0; i < n; i++) {
                    const double expected = decode(x[i], formats[f].exponent_bits);
                    if (isnan(expected) ? !isnan(y[i]) : y[i] != expected || !signbit(y[i]) != !signbit(expected))
                        fail_msg("%s from_%s(%#x) = %a", att_isa_name(isa), formats[f].name, x[i], (double)y[i]);
                }
            }
            check_untouched(&out, formats[f].name);
            combinations[isa]++;
        }
    }
}
static void short_formats_are_read_exactly(void **state)
{
    (void)state;
    on_each_set(short_formats);
}

/* Every code's own number, the middle to the next one (goes to the even code), and what is just beside the middle. */
static void short_formats_back(int isa, const att_kernels *k)
{
    for (int f = 0; f < 2; f++) {
        const int exponent_bits = f ? 8 : 5;
        const uint32_t infinity = ((1u << exponent_bits) - 1) << (15 - exponent_bits);
        for (uint32_t code = 0; code < infinity; code++)
            for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
                const double here = decode(code, exponent_bits);
                const double step = here - decode(code ? code - 1 : 1, exponent_bits); /* infinity is not its place */
                const double next = code + 1 < infinity ? decode(code + 1, exponent_bits) : here + step;
                const float middle = (float)((here + next) / 2);
                const float x[4] = {(float)here, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY)};
                const uint32_t want[4] = {code, code + (code & 1), code, code + 1};
                float given[4];
                uint16_t y[4];
                for (int i = 0; i < 4; i++)
                    given[i] = sign ? -x[i] : x[i];
                (f ? k->vector.to_bf16 : k->vector.to_f16)(4, given, y);
                for (int i = 0; i < 4; i++)
                    if (y[i] != (want[i] | sign))
                        fail_msg("%s to_%s(%a) = %#x, expected %#x", att_isa_name(isa), f ? "bf16" : "f16",
                                 (double)given[i], y[i], want[i] | sign);
                combinations[isa]++;
            }
        const float others[3] = {INFINITY, -INFINITY, NAN};
        uint16_t y[3];
        (f ? k->vector.to_bf16 : k->vector.to_f16)(3, others, y);
        assert_true(y[0] == infinity && y[1] == (infinity | 0x8000) && (y[2] & 0x7fff) > infinity);
    }
}
static void numbers_round_to_the_nearest_short_one(void **state)
{
    (void)state;
    on_each_set(short_formats_back);
}

/* ---- */

static int set_up(void **state)
{
    (void)state;
    check_fence *const all[] = {&in, &in2, &in3, &out, &out2};
    for (int i = 0; i < 5; i++)
        *all[i] = check_fence_new(LARGEST * sizeof(float));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_fence *const all[] = {&in, &in2, &in3, &out, &out2};
    for (int i = 0; i < 5; i++)
        check_fence_free(all[i]);
    for (int isa = 0; isa < att_isa_count(); isa++)
        print_message("%s: %ld combinations\n", att_isa_name(isa), combinations[isa]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_any_number_of_elements),
        cmocka_unit_test(functions_keep_their_bounds_on_all_exponents),
        cmocka_unit_test(functions_define_nan_infinities_zeros_and_denormals),
        cmocka_unit_test(softmax_equals_its_reference_ignores_minus_infinity_and_keeps_nan),
        cmocka_unit_test(layer_norm_equals_its_reference),
        cmocka_unit_test(normalize_divides_by_the_length_or_by_eps),
        cmocka_unit_test(norms_of_very_large_and_very_small_numbers_are_as_exact),
        cmocka_unit_test(vector_arithmetic_is_exact_and_max_keeps_nan),
        cmocka_unit_test(numbers_round_to_the_nearest_short_one),
        cmocka_unit_test(short_formats_are_read_exactly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
