/* Elementary functions on the vocabulary, without libm. Polynomials by tests/golden/minimax.py. */
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

/* 2^x for x < 127.5, exactly 1 at 0. There are no denormal results: what is below -126, -inf too, gives 2^-126, so
 * who needs an exact 0 selects it. NaN gives NaN. */
ATT_INLINE vf v_exp2(vf x)
{
    static const float c[] = {0x1p0f,          0x1.62e43p-1f,   0x1.ebfbdcp-3f, 0x1.c6af7cp-5f,
                              0x1.3b2dep-7f,   0x1.5f082ep-10f, 0x1.416b5ep-13f};
    x = v_max(v_set(-126.0f), x);
    const vf n = v_round(x);
    return v_ldexp(v_polynomial(c, 6, v_sub(x, n)), n);
}

#endif
