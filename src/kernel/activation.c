/* Activations and elementary functions on n numbers. */
#include "kernel/activation.h"
#include "kernel/kernel.h"

#include <float.h>
#include <math.h> /* INFINITY, NAN */

/* y [n] = f(x [n]) */
ATT_INLINE void map(int64_t n, const float *x, float *y, vf (*f)(vf))
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, f(v_load(x + i)));
    if (i < n)
        v_store_n(y + i, f(v_load_n(x + i, (int)(n - i))), (int)(n - i));
}

static void activate(int activation, int64_t n, const float *x, float *y)
{
    switch (activation) {
    case ATT_RELU:
        map(n, x, y, v_relu);
        break;
    case ATT_GELU_ERF:
        map(n, x, y, v_gelu_erf);
        break;
    case ATT_GELU_TANH:
        map(n, x, y, v_gelu_tanh);
        break;
    case ATT_TANH:
        map(n, x, y, v_tanh);
        break;
    default:
        map(n, x, y, v_identity);
    }
}

/* v_exp2 for any x: the result is made near 1 and then scaled into the denormals or to infinity. */
ATT_INLINE vf exp2_any(vf x)
{
    x = v_min(v_set(191), v_max(v_set(-190), x));
    const vm tiny = v_lt(x, v_set(-126)), huge = v_lt(v_set(127), x);
    const vf shift = v_select(tiny, v_set(-64), v_select(huge, v_set(64), v_set(0)));
    const vf scale = v_select(tiny, v_set(0x1p-64f), v_select(huge, v_set(0x1p64f), v_set(1)));
    return v_mul(v_exp2_normal(v_sub(x, shift)), scale);
}

/* v_exp for any x: the power of 2 is multiplied with in two parts, the second into the denormals or to infinity. */
ATT_INLINE vf exp_any(vf x)
{
    vf n;
    const vf m = v_exp_split(v_min(v_set(89), v_max(v_set(-105), x)), &n), part = v_round(v_mul(n, v_set(0.5f)));
    return v_ldexp(v_ldexp(m, part), v_sub(n, part));
}

/* v_log2 for any x: below 0 NaN; 0 gives -inf, and from denormals a power of 2 is taken out first. */
ATT_INLINE vf log2_any(vf x)
{
    const vm tiny = v_lt(x, v_set(FLT_MIN));
    const vf scale = v_select(tiny, v_set(0x1p24f), v_set(1)), shift = v_select(tiny, v_set(-24), v_set(0));
    const vf finite = v_add(v_log2(v_mul(x, scale)), shift), nothing = v_sub(x, v_set(INFINITY)); /* NaN stays */
    const vf y = v_select(v_lt(v_set(0), x), finite, v_select(v_lt(x, v_set(0)), v_set(NAN), nothing));
    return v_select(v_lt(v_set(FLT_MAX), x), x, y);
}

static void exp_n(int64_t n, const float *x, float *y) { map(n, x, y, exp_any); }
static void exp2_n(int64_t n, const float *x, float *y) { map(n, x, y, exp2_any); }
static void log2_n(int64_t n, const float *x, float *y) { map(n, x, y, log2_any); }
static void erf_n(int64_t n, const float *x, float *y) { map(n, x, y, v_erf); }
static void tanh_n(int64_t n, const float *x, float *y) { map(n, x, y, v_tanh); }

void ATT_ISA(att_kernel_activation)(att_kernels *k);
void ATT_ISA(att_kernel_activation)(att_kernels *k)
{
    k->activate = activate;
    k->exp = exp_n;
    k->exp2 = exp2_n;
    k->log2 = log2_n;
    k->erf = erf_n;
    k->tanh = tanh_n;
}
