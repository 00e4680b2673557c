/* Sums whose shape depends only on n and the instruction set: four chains of vectors. */
#ifndef ATT_KERNEL_REDUCE_H
#define ATT_KERNEL_REDUCE_H

#include "simd/simd.h"

/* Returns sum + the term of elements a and b, given s. */
typedef vf v_term(vf sum, vf a, vf b, vf s);

ATT_INLINE vf v_term_value(vf sum, vf a, vf b, vf s)
{
    (void)b, (void)s;
    return v_add(sum, a);
}
ATT_INLINE vf v_term_product(vf sum, vf a, vf b, vf s)
{
    (void)s;
    return v_fma(a, b, sum);
}
ATT_INLINE vf v_term_squared_deviation(vf sum, vf a, vf b, vf s)
{
    (void)b;
    const vf d = v_sub(a, s);
    return v_fma(d, d, sum);
}

/* Returns the sum of term over a [n], b [n] */
ATT_INLINE float v_sum_over(int64_t n, const float *a, const float *b, vf s, v_term *term)
{
    vf s0 = v_set(0), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * ATT_LANES <= n; i += 4 * ATT_LANES) {
        s0 = term(s0, v_load(a + i), v_load(b + i), s);
        s1 = term(s1, v_load(a + i + ATT_LANES), v_load(b + i + ATT_LANES), s);
        s2 = term(s2, v_load(a + i + 2 * ATT_LANES), v_load(b + i + 2 * ATT_LANES), s);
        s3 = term(s3, v_load(a + i + 3 * ATT_LANES), v_load(b + i + 3 * ATT_LANES), s);
    }
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        s0 = term(s0, v_load(a + i), v_load(b + i), s);
    if (i < n) {
        const int rest = (int)(n - i);
        s1 = v_select(v_first(rest), term(s1, v_load_n(a + i, rest), v_load_n(b + i, rest), s), s1);
    }
    return v_sum(v_add(v_add(s0, s1), v_add(s2, s3)));
}

#endif
