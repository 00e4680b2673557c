/* The kernels of rows, norms, arithmetic and short formats on every instruction set that runs here, against the
 * references in double. */
#include "attend_learn.h"
#include "fixtures/check.h"
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
        for (float center = 0; center <= 100; center += 50) {
            check_fill(x, n, (uint64_t)s + 3, center, 1);
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

/* Numbers whose squares are not floats, very large, very small and denormal. */
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
        k->vector.div(n, a, b, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] / b[i]);
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

/* Where every third of x[0] and x[1] is NaN and some are equal, the first maximum or NaN gets the gradient. */
static void max_gradients(int isa, const att_kernels *k)
{
    (void)isa;
    enum { MOST = 70 };
    for (int64_t n = 1; n <= MOST; n++) {
        float x[2][MOST], dx[2][MOST] = {{0}}, *y = place(&out, n), *dy = place(&in, n);
        for (int j = 0; j < 2; j++)
            for (int64_t i = 0; i < n; i++)
                x[j][i] = (i + j) % 3 == 0 ? NAN : (float)((i * (5 + 2 * j)) % 4);
        k->vector.max(n, x[0], x[1], y);
        for (int64_t i = 0; i < n; i++)
            dy[i] = (float)(1 + i);
        for (int j = 0; j < 2; j++)
            k->vector.max_back(n, x[j], y, dy, dx[j]);
        for (int64_t i = 0; i < n; i++) {
            const bool first = isnan(x[0][i]) || (!isnan(x[1][i]) && x[0][i] >= x[1][i]);
            assert_true(dy[i] == 0 && dx[!first][i] == (float)(1 + i) && dx[first][i] == 0);
        }
        check_untouched(&out, "max");
    }
}
static void the_first_maximum_gets_the_gradient(void **state)
{
    (void)state;
    on_each_set(max_gradients);
}

/* Returns the number that 16 bits encode: sign, exponent bits, the rest. */
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
        cmocka_unit_test(softmax_equals_its_reference_ignores_minus_infinity_and_keeps_nan),
        cmocka_unit_test(layer_norm_equals_its_reference),
        cmocka_unit_test(normalize_divides_by_the_length_or_by_eps),
        cmocka_unit_test(norms_of_very_large_and_very_small_numbers_are_as_exact),
        cmocka_unit_test(vector_arithmetic_is_exact_and_max_keeps_nan),
        cmocka_unit_test(the_first_maximum_gets_the_gradient),
        cmocka_unit_test(numbers_round_to_the_nearest_short_one),
        cmocka_unit_test(short_formats_are_read_exactly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
