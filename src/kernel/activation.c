/* Activations and elementary functions on n numbers. */
#include "kernel/activation.h"
#include "kernel/kernel.h"

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

/* e^x as the square of e^(x/2), which cannot overflow, so all of the range is there: 0, denormals, infinity */
ATT_INLINE vf exp_any(vf x)
{
    const vf root = v_exp(v_min(v_set(88), v_mul(x, v_set(0.5f))));
    return v_mul(root, root);
}

static void exp_n(int64_t n, const float *x, float *y) { map(n, x, y, exp_any); }
static void exp2_n(int64_t n, const float *x, float *y) { map(n, x, y, exp2_any); }
static void erf_n(int64_t n, const float *x, float *y) { map(n, x, y, v_erf); }
static void tanh_n(int64_t n, const float *x, float *y) { map(n, x, y, v_tanh); }

void ATT_ISA(att_kernel_activation)(att_kernels *k);
void ATT_ISA(att_kernel_activation)(att_kernels *k)
{
    k->activate = activate;
    k->exp = exp_n;
    k->exp2 = exp2_n;
    k->erf = erf_n;
    k->tanh = tanh_n;
}
