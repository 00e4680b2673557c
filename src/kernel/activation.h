/* The activations on vectors, for activation.c and the GEMM epilogue. */
#ifndef ATT_KERNEL_ACTIVATION_H
#define ATT_KERNEL_ACTIVATION_H

#include "attend_learn.h"
#include "simd/math.h"

ATT_INLINE vf v_identity(vf x) { return x; }
ATT_INLINE vf v_relu(vf x) { return v_max(v_set(0), x); }

/* Return the derivatives of tanh and of the sigmoid from their values y: 1 - y^2, without cancellation near 1, and y
 * (1 - y)
 */
ATT_INLINE vf v_tanh_slope(vf y) { return v_mul(v_sub(v_set(1), y), v_add(v_set(1), y)); }
ATT_INLINE vf v_sigmoid_slope(vf y) { return v_mul(y, v_sub(v_set(1), y)); }

/* x Phi(x) = max(x, 0) - t Phi(-t) with t = |x|, and Phi(-t) = 2^(t q(t) - 1) where q is rational: no cancellation, so
 * the negative tail keeps its relative precision. -inf gives -2^-122, not NaN. */
ATT_INLINE vf v_gelu_erf(vf x)
{
    static const float top[] = {-0x1.26aeb8p0f, -0x1.18af26p0f, -0x1.dc69f4p-2f, -0x1.99fdbep-4f, -0x1.2cb7a2p-7f};
    static const float bottom[] = {1, 0x1.1b6abcp-1f, 0x1.1a4118p-3f, 0x1.a13838p-7f};
    const vf t = v_min(v_set(12.75f), v_abs(x)); /* Phi(-12.75) > 2^-126 */
    const vf q = v_div(v_polynomial(top, 4, t), v_polynomial(bottom, 3, t));
    const vf tail = v_exp2_normal(v_fma(t, q, v_set(-1)));
    return v_fma(v_sub(v_set(0), t), tail, v_relu(x));
}

/* x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3) = max(x, 0) - t / (1 + exp(2 u(t))) with t = |x| */
ATT_INLINE vf v_gelu_tanh(vf x)
{
    const vf linear = v_set(2.302208198f), cubic = v_set(0.1029432397f); /* 2 log2(e) sqrt(2/pi) (1, 0.044715) */
    const vf t = v_min(v_set(10), v_abs(x));                             /* where the exponent is 125.97 */
    const vf power = v_exp2_normal(v_mul(t, v_fma(v_mul(t, t), cubic, linear)));
    return v_sub(v_relu(x), v_div(t, v_add(power, v_set(1))));
}

/* 1 / (1 + e^-x), by e^-|x|, which is at most 1. Below -87.3 it gives 2^-126. */
ATT_INLINE vf v_sigmoid(vf x)
{
    const vf e = v_exp(v_sub(v_set(0), v_abs(x)));
    return v_div(v_select(v_lt(x, v_set(0)), e, v_set(1)), v_add(e, v_set(1)));
}

/* x / (1 + e^-x); -inf gives -2^-119, not NaN */
ATT_INLINE vf v_silu(vf x) { return v_mul(v_max(v_set(-128), x), v_sigmoid(x)); }

/* x sigmoid(1.702 x); -inf gives -2^-119, not NaN */
ATT_INLINE vf v_quick_gelu(vf x) { return v_mul(v_max(v_set(-128), x), v_sigmoid(v_mul(x, v_set(1.702f)))); }

/* Returns f(x) of an att_activation. If `activation` is a constant, the caller's loop has no switch. */
ATT_INLINE vf activation_of(int activation, vf x)
{
    switch (activation) {
    case ATT_ACTIVATION_RELU:
        return v_relu(x);
    case ATT_ACTIVATION_GELU_ERF:
        return v_gelu_erf(x);
    case ATT_ACTIVATION_GELU_TANH:
        return v_gelu_tanh(x);
    case ATT_ACTIVATION_TANH:
        return v_tanh(x);
    case ATT_ACTIVATION_SILU:
        return v_silu(x);
    case ATT_ACTIVATION_SIGMOID:
        return v_sigmoid(x);
    case ATT_ACTIVATION_QUICK_GELU:
        return v_quick_gelu(x);
    default:
        return x;
    }
}

#endif
