#include "base/math.h"

#include <math.h> /* only exact functions: INFINITY, NAN, fabs, floor, isnan */
#include <stdint.h>
#include <string.h>

/* A double-double number: high + low, |low| at most half an ulp of high. */
typedef struct pair {
    double high, low;
} pair;

/* a + b exactly; requires |a| >= |b| or a = 0 */
static pair sum(double a, double b)
{
    const double s = a + b;
    return (pair){s, b - (s - a)};
}

/* a b exactly, by splitting the factors (Dekker 1971) */
static pair product(double a, double b)
{
    const double splitter = 0x1p27 + 1, ca = splitter * a, cb = splitter * b;
    const double a1 = ca - (ca - a), a2 = a - a1, b1 = cb - (cb - b), b2 = b - b1, p = a * b;
    return (pair){p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

/* Rounds to the nearest integer, ties to even; |x| >= 2^51 may be off by less than 1. */
static double nearest(double x)
{
    const double big = 0x1.8p52;
    return fabs(x) < 0x1p51 ? (x + big) - big : floor(x);
}

/* 2^n as a normal number */
static double power_of_two(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* c[0] + c[1] x + ... */
static double polynomial(int n, const double *c, double x)
{
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--)
        y = y * x + c[i];
    return y;
}

/* ln 2 in two parts; LN2_HIGH times an integer below 2^20 is exact. */
static const double LN2_HIGH = 0x1.62e42fefa38p-1, LN2_LOW = 0x1.ef35793c7673p-45;
static const double LN2_LOWEST = 0x1.f97b57a079a19p-103;

/* 2^n e^(r.high + r.low), |r| <= 0.35: a Taylor series, whose first two terms are summed in double-double. */
static double scaled_exp(double n, pair r)
{
    static const double c[] = {1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
                               1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
                               1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
    const double x = r.high, y = 1 + (x + (r.low * (1 + x) + x * x * polynomial(sizeof c / sizeof *c, c, x)));
    const int half = (int)(n / 2),
              rest = (int)n - half; /* scaling in two steps: 2^n may be outside the range although the result is not */
    return y * power_of_two(half) * power_of_two(rest);
}

/* Exponents beyond which 2^x is 0 or infinite. */
static const double MIN_EXPONENT = -1080, MAX_EXPONENT = 1025;

/* e^(x.high + x.low) */
static double exp_of(pair x)
{
    const double units = x.high * 0x1.71547652b82fep0; /* 1 / ln 2 */
    if (!(units > MIN_EXPONENT))
        return isnan(units) ? units : 0;
    if (units > MAX_EXPONENT)
        return (double)INFINITY;
    const double n = nearest(units), first = x.high - n * LN2_HIGH; /* exact */
    const pair r = sum(first, -n * LN2_LOW);
    return scaled_exp(n, sum(r.high, r.low + (x.low - n * LN2_LOWEST)));
}

double att_f64_exp(double x) { return exp_of((pair){x, 0}); }

double att_f64_exp2(double x)
{
    if (!(x > MIN_EXPONENT))
        return isnan(x) ? x : 0;
    if (x > MAX_EXPONENT)
        return (double)INFINITY;
    const double n = nearest(x);
    const pair r = product(x - n, LN2_HIGH);
    return scaled_exp(n, sum(r.high, r.low + (x - n) * LN2_LOW));
}

/* log x for x > 0: with x = m 2^n, m in [sqrt(1/2), sqrt(2)] and f = (m - 1) / (m + 1): n ln 2 + 2 f + 2 f^3 / 3 +
 * ... */
static pair log_of(double x)
{
    static const double c[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                               1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    uint64_t bits;
    int n = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        n = -54;
    }
    memcpy(&bits, &x, sizeof bits);
    n += (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp0) {
        m /= 2;
        n++;
    }
    const pair below = m > 1 ? sum(m, 1) : sum(1, m);
    const double f = (m - 1) / below.high;
    const pair back = product(f, below.high);
    const double rest = (((m - 1) - back.high) - back.low - f * below.low) / below.high, s = f * f;
    const double tail = 2 * f * s * polynomial(sizeof c / sizeof *c, c, s);
    const pair first = n ? sum(n * LN2_HIGH, 2 * f) : (pair){2 * f, 0};
    return sum(first.high, first.low + (2 * rest + tail + n * LN2_LOW));
}

double att_f64_log(double x)
{
    if (!(x > 0))
        return x == 0 ? -(double)INFINITY : (double)NAN;
    if (x > 0x1.fffffffffffffp1023)
        return x;
    const pair y = log_of(x);
    return y.high + y.low;
}

double att_f64_power(double base, double p, double q)
{
    const pair l = log_of(base), a = product(l.high, p);
    const double y = a.high / q;
    const pair back = product(y, q);
    return exp_of((pair){y, ((a.high - back.high) - back.low + a.low + l.low * p) / q});
}

/* Reduces an argument: returns x minus the nearest multiple of pi / 2, and the number of that multiple modulo 4. For
 * large x, whose multiple is not exact, the reduction is repeated. */
static pair reduce(double x, int *quadrant)
{
    static const double half_pi = 0x1.921fb54442d18p0, then = 0x1.1a62633145c07p-54, last = -0x1.f1976b7ed8fbcp-110;
    pair r = {x, 0};
    *quadrant = 0;
    for (int steps = 0; steps < 4 && fabs(r.high) > 0.7854; steps++) {
        const double n = nearest(r.high * 0x1.45f306dc9c883p-1), floor4 = floor(n / 4) * 4;
        const pair a = product(n, half_pi), b = product(n, then);
        const pair c = sum(r.high - a.high, -a.low), d = sum(c.high, -b.high);
        r = sum(d.high, d.low + (c.low + r.low - b.low - n * last));
        *quadrant = (int)(*quadrant + (n - floor4)) % 4;
    }
    return r;
}

void att_f64_sin_cos(double x, double *sine, double *cosine)
{
    static const double s[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,           1.0 / 362880,
                               -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000., 1.0 / 355687428096000.};
    static const double c[] = {1.0 / 24,        -1.0 / 720,          1.0 / 40320,           -1.0 / 3628800,
                               1.0 / 479001600, -1.0 / 87178291200., 1.0 / 20922789888000., -1.0 / 6402373705728000.};
    int quadrant;
    const pair r = reduce(fabs(x) > 0x1p100 ? x - x : x, &quadrant);
    const double y = r.high, z = y * y;
    const double sin_r = y + (r.low * (1 - z / 2) + y * z * polynomial(sizeof s / sizeof *s, s, z));
    const double one_minus = 1 - z / 2;
    const double cos_r =
        one_minus + (((1 - one_minus) - z / 2) + (z * z * polynomial(sizeof c / sizeof *c, c, z) - y * r.low));
    *sine = quadrant == 0 ? sin_r : quadrant == 1 ? cos_r : quadrant == 2 ? -sin_r : -cos_r;
    *cosine = quadrant == 0 ? cos_r : quadrant == 1 ? -sin_r : quadrant == 2 ? -cos_r : sin_r;
}
