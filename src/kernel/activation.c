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
    case ATT_ACTIVATION_RELU:
        map(n, x, y, v_relu);
        break;
    case ATT_ACTIVATION_GELU_ERF:
        map(n, x, y, v_gelu_erf);
        break;
    case ATT_ACTIVATION_GELU_TANH:
        map(n, x, y, v_gelu_tanh);
        break;
    case ATT_ACTIVATION_TANH:
        map(n, x, y, v_tanh);
        break;
    case ATT_ACTIVATION_SILU:
        map(n, x, y, v_silu);
        break;
    case ATT_ACTIVATION_SIGMOID:
        map(n, x, y, v_sigmoid);
        break;
    case ATT_ACTIVATION_QUICK_GELU:
        map(n, x, y, v_quick_gelu);
        break;
    default:
        map(n, x, y, v_identity);
    }
}

/* ---- derivatives */

static vf back_relu(vf x, vf dy) { return v_select(v_lt(v_set(0), x), dy, v_set(0)); }

static vf back_tanh(vf x, vf dy) { return v_mul(dy, v_tanh_slope(v_tanh(x))); }

/* Clamps x to the range where the derivative is not exactly 0 or 1; NaN stays. Outside, products with a large x would
 * overflow. */
ATT_INLINE vf within(float limit, vf x) { return v_max(v_set(-limit), v_min(v_set(limit), x)); }

/* Phi(x) + x phi(x) */
static vf back_gelu_erf(vf x, vf dy)
{
    const vf half = v_set(0.5f);
    x = within(12.75f, x);
    const vf cumulative = v_fma(v_erf(v_mul(x, v_set(0.707106781f))), half, half);
    const vf density = v_mul(v_exp(v_mul(v_mul(x, x), v_set(-0.5f))), v_set(0.398942280f));
    return v_mul(dy, v_fma(x, density, cumulative));
}

/* (1 + tanh u) / 2 + x / 2 (1 - tanh^2 u) u', u = sqrt(2/pi) (x + 0.044715 x^3) */
static vf back_gelu_tanh(vf x, vf dy)
{
    const vf half = v_set(0.5f), linear = v_set(0.797884561f), cubic = v_set(0.0356774081f);
    x = within(10, x);
    const vf squared = v_mul(x, x), t = v_tanh(v_mul(x, v_fma(squared, cubic, linear)));
    const vf slope = v_fma(squared, v_mul(v_set(3), cubic), linear);
    return v_mul(dy, v_fma(v_mul(v_mul(x, half), v_tanh_slope(t)), slope, v_fma(t, half, half)));
}

/* s (1 - s) = e / (1 + e)^2, e = e^-|x| */
ATT_INLINE vf sigmoid_slope(vf x)
{
    const vf e = v_exp(v_sub(v_set(0), v_abs(x))), whole = v_add(e, v_set(1));
    return v_div(v_div(e, whole), whole);
}
static vf back_sigmoid(vf x, vf dy) { return v_mul(dy, sigmoid_slope(x)); }

/* s + x s (1 - s) */
static vf back_silu(vf x, vf dy)
{
    x = within(88, x);
    return v_mul(dy, v_fma(x, sigmoid_slope(x), v_sigmoid(x)));
}

/* Returns the derivative of SiLU at 1.702 x, because x sigmoid(1.702 x) = silu(1.702 x) / 1.702. */
static vf back_quick_gelu(vf x, vf dy) { return back_silu(v_mul(x, v_set(1.702f)), dy); }

static vf back_identity(vf x, vf dy)
{
    (void)x;
    return dy;
}

/* dx [n] = dy [n] f'(x [n]), by f(x, dy) */
ATT_INLINE void map2(int64_t n, const float *x, const float *dy, float *dx, vf (*f)(vf, vf))
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(dx + i, f(v_load(x + i), v_load(dy + i)));
    if (i < n) {
        const int rest = (int)(n - i);
        v_store_n(dx + i, f(v_load_n(x + i, rest), v_load_n(dy + i, rest)), rest);
    }
}

static void tanh_back(int64_t n, const float *x, const float *dy, float *dx) { map2(n, x, dy, dx, back_tanh); }

static void activate_back(int activation, int64_t n, const float *x, const float *dy, float *dx)
{
    switch (activation) {
    case ATT_ACTIVATION_RELU:
        map2(n, x, dy, dx, back_relu);
        break;
    case ATT_ACTIVATION_GELU_ERF:
        map2(n, x, dy, dx, back_gelu_erf);
        break;
    case ATT_ACTIVATION_GELU_TANH:
        map2(n, x, dy, dx, back_gelu_tanh);
        break;
    case ATT_ACTIVATION_TANH:
        tanh_back(n, x, dy, dx);
        break;
    case ATT_ACTIVATION_SILU:
        map2(n, x, dy, dx, back_silu);
        break;
    case ATT_ACTIVATION_SIGMOID:
        map2(n, x, dy, dx, back_sigmoid);
        break;
    case ATT_ACTIVATION_QUICK_GELU:
        map2(n, x, dy, dx, back_quick_gelu);
        break;
    default:
        map2(n, x, dy, dx, back_identity);
    }
}

/* ---- elementary functions */

/* Extends v_exp2_normal to any x: computes the result near 1 and then scales it into the denormals or to infinity. */
ATT_INLINE vf exp2_any(vf x)
{
    x = v_min(v_set(191), v_max(v_set(-190), x));
    const vm tiny = v_lt(x, v_set(-126)), huge = v_lt(v_set(127), x);
    const vf shift = v_select(tiny, v_set(-64), v_select(huge, v_set(64), v_set(0)));
    const vf scale = v_select(tiny, v_set(0x1p-64f), v_select(huge, v_set(0x1p64f), v_set(1)));
    return v_mul(v_exp2_normal(v_sub(x, shift)), scale);
}

/* Extends v_exp to any x: multiplies by the power of 2 in two parts; the second one reaches the denormals or
 * infinity. */
ATT_INLINE vf exp_any(vf x)
{
    vf n;
    const vf m = v_exp_split(v_min(v_set(89), v_max(v_set(-105), x)), &n), part = v_round(v_mul(n, v_set(0.5f)));
    return v_ldexp(v_ldexp(m, part), v_sub(n, part));
}

/* Extends v_log2 or v_log to any x: negative x gives NaN, 0 gives -inf, and denormals are first multiplied by 2^24,
 * whose logarithm is `shift`. */
ATT_INLINE vf log_of_any(vf x, vf (*log)(vf), float shift)
{
    const vm tiny = v_lt(x, v_set(FLT_MIN));
    const vf scale = v_select(tiny, v_set(0x1p24f), v_set(1)), less = v_select(tiny, v_set(shift), v_set(0));
    const vf finite = v_sub(log(v_mul(x, scale)), less), nothing = v_sub(x, v_set(INFINITY)); /* NaN stays */
    const vf y = v_select(v_lt(v_set(0), x), finite, v_select(v_lt(x, v_set(0)), v_set(NAN), nothing));
    return v_select(v_lt(v_set(FLT_MAX), x), x, y);
}
ATT_INLINE vf log2_any(vf x) { return log_of_any(x, v_log2, 24); }
ATT_INLINE vf log_any(vf x) { return log_of_any(x, v_log, 16.6355323f); }

/* ---- logistic regression: of x, the logit, and t, the target; where t is below 0, 0 */

/* Returns log(1 + e) for e from 0 to 1, corrected for the rounding of 1 + e. */
ATT_INLINE vf log_1p(vf e)
{
    const vf whole = v_add(e, v_set(1)), part = v_sub(whole, v_set(1));
    const vf y = v_mul(v_mul(v_log2(whole), v_set(0.693147181f)), v_div(e, part));
    return v_select(v_lt(v_set(0), part), y, e);
}

/* max(x, 0) - x t + log(1 + e^-|x|) */
static vf logistic_loss(vf x, vf t)
{
    const vf y = v_add(v_sub(v_relu(x), v_mul(x, t)), log_1p(v_exp(v_sub(v_set(0), v_abs(x)))));
    return v_select(v_lt(t, v_set(0)), v_set(0), y);
}
static vf logistic_slope(vf x, vf t) { return v_select(v_lt(t, v_set(0)), v_set(0), v_sub(v_sigmoid(x), t)); }

static void logistic(int64_t n, const float *x, const float *t, float *y) { map2(n, x, t, y, logistic_loss); }
static void logistic_back(int64_t n, const float *x, const float *t, float *dx) { map2(n, x, t, dx, logistic_slope); }

static void exp_n(int64_t n, const float *x, float *y) { map(n, x, y, exp_any); }
static void exp2_n(int64_t n, const float *x, float *y) { map(n, x, y, exp2_any); }
static void log2_n(int64_t n, const float *x, float *y) { map(n, x, y, log2_any); }
static void log_n(int64_t n, const float *x, float *y) { map(n, x, y, log_any); }
static void erf_n(int64_t n, const float *x, float *y) { map(n, x, y, v_erf); }
static void tanh_n(int64_t n, const float *x, float *y) { map(n, x, y, v_tanh); }

void ATTEND_ISA(att_kernel_activation)(att_kernels *k);
void ATTEND_ISA(att_kernel_activation)(att_kernels *k)
{
    k->layer.activate = activate;
    k->layer.activate_back = activate_back;
    k->layer.logistic = logistic;
    k->layer.logistic_back = logistic_back;
    k->vector.exp = exp_n;
    k->vector.exp2 = exp2_n;
    k->vector.log2 = log2_n;
    k->vector.log = log_n;
    k->vector.erf = erf_n;
    k->vector.tanh = tanh_n;
    k->layer.tanh_back = tanh_back;
}
