/* Elementary functions on the vocabulary, without libm. tests/golden/minimax.py finds the coefficients. Largest errors
 * in ulp (sets with fused multiply-add; scalar, which rounds twice):
 *     exp2_normal 0.80, 1.08    exp2 1.57, 1.60 (from a table 1.02)    exp 0.88, 1.17    tanh 1.61, 1.59
 *     erf 1.27, 1.57    log2 1.64, 1.92    log 0.89, 0.89
 * NaN gives NaN, and -0 gives the result of 0, or -0 if the function is odd. */
#ifndef ATT_SIMD_MATH_H
#define ATT_SIMD_MATH_H

#include "simd/simd.h"

/* c[0] + c[1] x + ... + c[degree] x^degree, one chain from the top */
ATT_INLINE vf v_polynomial(const float *c, int degree, vf x)
{
    vf y = v_set(c[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--)
        y = v_fma(y, x, v_set(c[i]));
    return y;
}

/* 2^x for -126 <= x < 127.5, exactly 1 at 0 */
ATT_INLINE vf v_exp2_normal(vf x)
{
    static const float c[] = {
        1, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6af7cp-5f, 0x1.3b2dep-7f, 0x1.5f082ep-10f, 0x1.416b5ep-13f};
    const vf rest = v_rest(x);
    return v_ldexp(v_polynomial(c, 6, rest), v_sub(x, rest));
}

/* 2^x for x < 127.5, exactly 1 at 0, and 0 below -126, also at -inf, between v_flush_begin and v_flush_end. It has the
 * fewest instructions, for softmax, which needs more of these than of any operation except multiply-adds. */
#ifdef ATT_SIXTEENTHS
ATT_INLINE vf v_exp2(vf x)
{
    static const _Alignas(64) float powers[] = {/* 2^(i / 16) */
                                                0x1p0f,        0x1.0b5586p0f, 0x1.172b84p0f, 0x1.2387a6p0f,
                                                0x1.306fep0f,  0x1.3dea64p0f, 0x1.4bfdaep0f, 0x1.5ab07ep0f,
                                                0x1.6a09e6p0f, 0x1.7a1148p0f, 0x1.8ace54p0f, 0x1.9c4918p0f,
                                                0x1.ae89fap0f, 0x1.c199bep0f, 0x1.d5818ep0f, 0x1.ea4afap0f};
    static const float c[] = {0x1.62e43ep-1f, 0x1.ebe61p-3f, 0x1.d02ee6p-5f};
    const vf rest = v_sixteenth(x), power = v_of_sixteenth(powers, x);
    return v_ldexp_flushed(v_fma(v_mul(power, rest), v_polynomial(c, 2, rest), power), x);
}
#else
ATT_INLINE vf v_exp2(vf x)
{
    static const float c[] = {
        1, 0x1.62e42cp-1f, 0x1.ebfd3ap-3f, 0x1.c68af6p-5f, 0x1.3cfd82p-7f, 0x1.473738p-10f, 0x1.c4458p-13f};
    return v_ldexp_flushed(v_polynomial(c, 6, v_fraction(x)), x);
}
#endif

/* e^x = m 2^n for |x| < 2^20, m from sqrt(1/2) to sqrt(2); gives m. */
ATT_INLINE vf v_exp_split(vf x, vf *n)
{
    static const float c[] = {1, 1, 0x1.fffffcp-2f, 0x1.555494p-3f, 0x1.5558bep-5f, 0x1.123856p-7f, 0x1.6a3d0ep-10f};
    const vf minus_ln2_high = v_set(-0x1.62e4p-1f), minus_ln2_low = v_set(-0x1.7f7d1cp-20f);
    *n = v_round(v_mul(x, v_set(0x1.715476p0f)));
    return v_polynomial(c, 6, v_fma(*n, minus_ln2_low, v_fma(*n, minus_ln2_high, x)));
}

/* e^x for x < 88.37; below -87.33 it gives 2^-126, as v_exp2. Exactly 1 at 0. */
ATT_INLINE vf v_exp(vf x)
{
    vf n;
    const vf m = v_exp_split(v_max(v_set(-0x1.5d589ep6f), x), &n);
    return v_ldexp(m, n);
}

/* log2 x for normal x > 0, exactly n at 2^n: the exponent, plus a polynomial in the mantissa minus 1. */
ATT_INLINE vf v_log2(vf x)
{
    static const float c[] = {0x1.49dcc8p-26f, -0x1.71547p-1f, 0x1.ec7096p-2f, -0x1.715bp-2f,  0x1.277ecap-2f,
                              -0x1.eaa102p-3f, 0x1.a2dc02p-3f, -0x1.88165p-3f, 0x1.7ebc94p-3f, -0x1.c1f276p-4f};
    vf n;
    const vf f = v_sub(v_split(x, &n), v_set(1));
    return v_fma(f, v_set(0x1.715476p0f), v_fma(f, v_polynomial(c, 9, f), n));
}

/* log x for normal x > 0, exactly 0 at 1: x = m 2^n with f = m - 1 gives f + f^2 p(f) + n log 2, the largest addend
 * last. */
ATT_INLINE vf v_log(vf x)
{
    static const float c[] = {-0x1p-1f,       0x1.555554p-2f,  -0x1.000226p-2f, 0x1.99a01cp-3f, -0x1.54728cp-3f,
                              0x1.22d936p-3f, -0x1.0d8232p-3f, 0x1.055e62p-3f,  -0x1.38c91p-4f};
    const vf ln2_high = v_set(0x1.62e4p-1f), ln2_low = v_set(0x1.7f7d1cp-20f);
    vf n;
    const vf f = v_sub(v_split(x, &n), v_set(1));
    const vf low = v_fma(n, ln2_low, v_mul(v_mul(f, f), v_polynomial(c, 8, f)));
    return v_fma(n, ln2_high, v_add(f, low));
}

/* tanh: a polynomial to 5/8, then 1 - 2 / (1 + e^(2 |x|)). Odd; exactly 1 from 9.02 on. */
ATT_INLINE vf v_tanh(vf x)
{
    static const float near[] = {-0x1.555532p-2f, 0x1.1106f6p-3f, -0x1.b835a4p-5f, 0x1.51f8cep-6f, -0x1.750ce4p-8f};
    const vf t = v_min(v_set(10), v_abs(x)), s = v_mul(t, t);
    const vf low = v_fma(v_mul(t, s), v_polynomial(near, 4, s), t);
    const vf power = v_exp2_normal(v_mul(t, v_set(0x1.715476p1f))); /* 2 log2 e */
    const vf high = v_sub(v_set(1), v_div(v_set(2), v_add(power, v_set(1))));
    return v_sign_of(v_select(v_lt(t, v_set(0.625f)), low, high), x);
}

/* erf: a polynomial to 7/8, then 1 - 2^p(|x|). Odd; exactly 1 from 3.93 on. */
ATT_INLINE vf v_erf(vf x)
{
    static const float near[] = {0x1.06eba6p-3f,  -0x1.81270cp-2f, 0x1.ce2134p-4f,
                                 -0x1.b6f3ecp-6f, 0x1.49c9fep-8f,  -0x1.453362p-11f};
    static const float far[] = {-0x1.b4563ep-13f, -0x1.a09034p0f,  -0x1.d664d8p-1f, -0x1.34058p-3f,
                                0x1.0882dp-5f,    -0x1.2365b4p-8f, 0x1.2e67eep-12f};
    const vf t = v_min(v_set(4), v_abs(x));
    const vf low = v_fma(t, v_polynomial(near, 5, v_mul(t, t)), t);
    const vf high = v_sub(v_set(1), v_exp2_normal(v_polynomial(far, 6, t)));
    return v_sign_of(v_select(v_lt(t, v_set(0.875f)), low, high), x);
}

#endif
