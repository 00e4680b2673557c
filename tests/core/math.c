/* The elementary functions of doubles, against the C library's in long double. */
#include "base/math.h"
#include "fixtures/check.h"

enum { SAMPLES = 200000 };

/* The farthest from the answer, in ulp of a double. */
static double farthest;

static void compare(const char *name, double x, double got, long double want, double most)
{
    int e;
    if (want > (long double)DBL_MAX && got > DBL_MAX)
        return;
    frexpl(want, &e);
    const long double unit = ldexpl(1, (e < DBL_MIN_EXP ? DBL_MIN_EXP : e) - DBL_MANT_DIG);
    const double off = (double)(fabsl((long double)got - want) / unit);
    farthest = off > farthest ? off : farthest;
    if (!(off <= most))
        fail_msg("%s(%.17g) is %.17g, not %.17Lg: off by %.2f ulp", name, x, got, want, off);
}

/* Returns a number from -1 to 1, of all bits. */
static double draw(uint64_t seed, int i) { return (double)(int64_t)check_bits(seed, (uint64_t)i) * 0x1p-63; }

static void functions_are_off_by_an_ulp_at_most(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES / check_step(10); i++) {
        const double x = draw(1, i), small = ldexp(x, -(i % 60));
        double s, c;
        compare("exp", 709 * x, att_f64_exp(709 * x), expl((long double)(709 * x)), 1);
        compare("exp", small, att_f64_exp(small), expl((long double)small), 1);
        compare("exp2", 1020 * x, att_f64_exp2(1020 * x), exp2l((long double)(1020 * x)), 1);
        compare("exp2", small, att_f64_exp2(small), exp2l((long double)small), 1);
        const double positive = ldexp(1 + fabs(x), (int)(check_bits(2, (uint64_t)i) % 2000) - 1000),
                     near = 1 + small / 4;
        compare("log", positive, att_f64_log(positive), logl((long double)positive), 1);
        compare("log", near, att_f64_log(near), logl((long double)near), 1);
        const double far = ldexp(x, i % 62);
        att_f64_sin_cos(far, &s, &c);
        compare("sin", far, s, sinl((long double)far), 1);
        compare("cos", far, c, cosl((long double)far), 1);
    }
    print_message("the farthest: %.3f ulp\n", farthest);
}

/* What the frequencies of positions are: base^(-2 i / features), where the exponent is not rounded. */
static void powers_are_off_by_an_ulp_at_most(void **state)
{
    (void)state;
    static const double bases[] = {10000, 500000, 1e6, 2, 0.9, 0.98, 0.999, 1e-3};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (int q = 1; q <= 513; q += 8)
            for (int p = -512; p <= 512; p += 7)
                compare("power", bases[b], att_f64_power(bases[b], p, q),
                        expl((long double)p * logl((long double)bases[b]) / (long double)q), 1);
}

static void ends_are_those_of_the_functions(void **state)
{
    (void)state;
    double s, c;
    assert_true(att_f64_exp(0) == 1 && att_f64_exp2(0) == 1 && att_f64_exp2(10) == 1024 &&
                att_f64_exp2(-1074) == 0x1p-1074);
    assert_true(att_f64_exp(-INFINITY) == 0 && att_f64_exp2(-INFINITY) == 0 && att_f64_exp(-1e300) == 0 &&
                att_f64_exp2(-2000) == 0);
    assert_true(att_f64_exp(INFINITY) == INFINITY && att_f64_exp2(INFINITY) == INFINITY &&
                att_f64_exp(710) == INFINITY);
    assert_true(att_f64_exp2(1024) == INFINITY && att_f64_exp2(1023) == 0x1p1023);
    assert_true(att_f64_log(1) == 0 && att_f64_log(0) == -INFINITY && att_f64_log(INFINITY) == INFINITY);
    assert_true(isnan(att_f64_log(-1)) && isnan(att_f64_log(NAN)) && isnan(att_f64_exp(NAN)) &&
                isnan(att_f64_exp2(NAN)));
    compare("log", 0x1p-1074, att_f64_log(0x1p-1074), logl(0x1p-1074L), 1);
    assert_true(att_f64_power(10000, 0, 64) == 1 && att_f64_power(0.9, 100000, 1) == 0);
    att_f64_sin_cos(0, &s, &c);
    assert_true(s == 0 && c == 1);
    att_f64_sin_cos(INFINITY, &s, &c);
    assert_true(isnan(s) && isnan(c));
    for (int i = 0; i < 1000; i++) {
        att_f64_sin_cos(ldexp(draw(3, i), i % 101), &s, &c);
        assert_true(fabs(s * s + c * c - 1) < 1e-15);
    }
    att_f64_sin_cos(1e300, &s, &c);
    assert_true(s == 0 && c == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_off_by_an_ulp_at_most),
        cmocka_unit_test(powers_are_off_by_an_ulp_at_most),
        cmocka_unit_test(ends_are_those_of_the_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
