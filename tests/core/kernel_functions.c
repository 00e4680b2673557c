/* The elementary functions and activations on every instruction set that runs here, against their formulas in double.
 * ATT_CHECK_STRIDE=1 ./test_kernel_functions tries all 2^32 floats in place of every 4099th (half an hour). */
#include "attend_learn.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"

enum { LARGEST = 4096 };
static const int64_t sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  11,  13,  15,  16,  17,  23,   29,     31,
                                32, 33, 37, 47, 61, 63, 64, 65, 97, 127, 255, 256, 257, 384, 1536, LARGEST};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static check_fence in, out, out2;

/* Runs a test on each usable set. */
static void on_each_set(void (*test)(int isa, const att_kernels *k))
{
    for (int isa = -1; check_next_isa(&isa);)
        test(isa, att_kernels_of(isa));
}

/* x [n] behind the fence of f */
static float *place(check_fence *f, int64_t n) { return check_place(f, (size_t)n * sizeof(float)); }

typedef double tolerance_of(double x, double expected, bool fused); /* fused: one rounding for a multiply-add */
typedef struct function {
    const char *name;
    tolerance_of *tolerance;
    int activation; /* where it has no run of its own */
    void (*run)(const att_kernels *k, int64_t n, const float *x, float *y);
    double (*reference)(double x);
} function;

static void run(const function *f, const att_kernels *k, int64_t n, const float *x, float *y)
{
    if (f->run)
        f->run(k, n, x, y);
    else
        k->layer.activate(f->activation, n, x, y);
}
static double reference(const function *f, double x)
{
    return f->run ? f->reference(x) : att_ref_activate(f->activation, x);
}

/* e to the power of x, at most 0, from the float that x log2 e rounds to; below 2^-126 it is 0. */
static double weight_reference(double x)
{
    const float power = (float)x * (float)ATT_LOG2_E;
    return power > 0 ? 1 : power < -126 ? 0 : exp2((double)power);
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
static void log_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.log(n, x, y); }
static void erf_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.erf(n, x, y); }
static void tanh_run(const att_kernels *k, int64_t n, const float *x, float *y) { k->vector.tanh(n, x, y); }

static double exact(double x, double expected, bool fused)
{
    (void)x, (void)expected, (void)fused;
    return 0;
}
/* Returns 1 for the polynomial's last step and what came before it; a denormal result is rounded once more. */
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
/* Returns the bound of exp2, and a quarter more for the argument's reduction. */
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
/* As SiLU, and what an error of z = 1.702 x changes in its sigmoid s: (1 - s) times that. It is at most 2^-24 z of the
 * product, and a quarter of that of the factor. */
static double quick_gelu_tolerance(double x, double expected, bool fused)
{
    const double z = 1.702 * x, change = 1.25 * 0x1p-24 * fabs(z) / (1 + exp(z));
    return silu_tolerance(x, expected, fused) + fabs(isfinite(x) ? expected * change : 0);
}

static const function functions[] = {
    {"identity", exact, .activation = ATT_ACTIVATION_IDENTITY},
    {"relu", exact, .activation = ATT_ACTIVATION_RELU},
    {"gelu_erf", gelu_erf_tolerance, .activation = ATT_ACTIVATION_GELU_ERF},
    {"gelu_tanh", gelu_tanh_tolerance, .activation = ATT_ACTIVATION_GELU_TANH},
    {"activate tanh", two_units, .activation = ATT_ACTIVATION_TANH},
    {"silu", silu_tolerance, .activation = ATT_ACTIVATION_SILU},
    {"sigmoid", sigmoid_tolerance, .activation = ATT_ACTIVATION_SIGMOID},
    {"quick_gelu", quick_gelu_tolerance, .activation = ATT_ACTIVATION_QUICK_GELU},
    {"exp2", exp2_tolerance, .run = exp2_run, .reference = exp2},
    {"weight", weight_tolerance, .run = weight_run, .reference = weight_reference},
    {"exp", exp_tolerance, .run = exp_run, .reference = exp},
    {"log2", two_units, .run = log2_run, .reference = log2},
    {"log", two_units, .run = log_run, .reference = log},
    {"erf", two_units, .run = erf_run, .reference = erf},
    {"tanh", two_units, .run = tanh_run, .reference = tanh},
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static void check_function(int isa, const function *f, int64_t n, const float *x, const float *y)
{
    for (int64_t i = 0; i < n; i++) {
        const double expected = reference(f, x[i]);
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
            run(&functions[i], k, n, x, y);
            check_function(isa, &functions[i], n, x, y);
            check_untouched(&out, functions[i].name);

            for (int64_t j = 0; j < n; j += 1 + n / 7) { /* alone, an element has the same bits */
                float *one = place(&out2, 1);
                run(&functions[i], k, 1, x + j, one);
                assert_memory_equal(one, y + j, sizeof *one);
            }
            run(&functions[i], k, n, x, x); /* in place too */
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
            run(&functions[i], k, n, x, y);
            check_function(isa, &functions[i], n, x, y);
        }
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
        run(&functions[i], k, N, x, y);
        check_function(isa, &functions[i], N, x, y);
    }
    k->vector.exp2(N, x, y);
    assert_true(y[2] == 0 && y[4] == 0 && y[7] == 1 && y[8] == 1);
    k->vector.exp(N, x, y);
    assert_true(y[1] == INFINITY && y[2] == 0 && y[3] == INFINITY && y[4] == 0 && y[7] == 1 && y[8] == 1);
    k->vector.log2(N, x, y);
    assert_true(isnan(y[2]) && isnan(y[4]) && isnan(y[6]) && y[5] == -149 && y[9] == -126);
    assert_true(y[7] == -INFINITY && y[8] == -INFINITY && y[1] == INFINITY);
    k->vector.log(N, x, y);
    assert_true(isnan(y[2]) && isnan(y[4]) && isnan(y[6]));
    assert_true(y[7] == -INFINITY && y[8] == -INFINITY && y[1] == INFINITY);
    k->vector.log(1, &(float){1}, y);
    assert_true(y[0] == 0);
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

static int set_up(void **state)
{
    (void)state;
    check_fence *const all[] = {&in, &out, &out2};
    for (int i = 0; i < 3; i++)
        *all[i] = check_fence_new(LARGEST * sizeof(float));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_fence *const all[] = {&in, &out, &out2};
    for (int i = 0; i < 3; i++)
        check_fence_free(all[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_any_number_of_elements),
        cmocka_unit_test(functions_keep_their_bounds_on_all_exponents),
        cmocka_unit_test(functions_define_nan_infinities_zeros_and_denormals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
