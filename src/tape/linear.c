/* activation(x weight^T + bias) + residual */
#include "tape/tape.h"
#include "gemm/gemm.h"

static bool check(att_tape *t, const att_tensor *x, const att_param *weight, const att_param *bias, att_activation act,
                  const att_tensor *residual)
{
    const att_tensor *w = weight ? att_param_value(weight) : NULL;
    const att_tensor *b = bias ? att_param_value(bias) : NULL;
    if (!w)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "linear: weight is NULL");
    else if ((unsigned)act > ATT_TANH)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "linear: %d is no activation", (int)act);
    else if (x->rank != 2 || w->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: x is %s and weight is %s, not matrices", att_shape_of(x).text,
                      att_shape_of(w).text);
    else if (x->dim[1] != w->dim[1])
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: x has %lld features but weight is %s", (long long)x->dim[1],
                      att_shape_of(w).text);
    else if (b && (b->rank != 1 || b->dim[0] != w->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: bias is %s but weight is %s", att_shape_of(b).text,
                      att_shape_of(w).text);
    else if (residual && (residual->rank != 2 || residual->dim[0] != x->dim[0] || residual->dim[1] != w->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: residual is %s but the result is [%lld, %lld]",
                      att_shape_of(residual).text, (long long)x->dim[0], (long long)w->dim[0]);
    else
        return true;
    return false;
}

/* ---- forward */

att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act, att_var *residual)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, weight, bias, act, residual ? &residual->value : NULL))
        return NULL;
    const int64_t m = x->value.dim[0], k = x->value.dim[1], n = att_param_value(weight)->dim[0];
    const float *packed = att_param_packed(weight);
    const float *b = bias ? att_param_floats(bias) : NULL;
    if (!packed || (bias && !b))
        return att_tape_fail(t, ATT_ERR_MEMORY, "linear: %s", att_error(t->ctx));
    att_var *y = att_tape_var(t, 2, (const int64_t[]){m, n});
    if (!y)
        return NULL;
    const att_epilogue e = {
        .bias = b, .residual = residual ? residual->value.data : NULL, .residual_stride = n, .activation = (int)act};
    att_gemm(t->ctx, m, n, k, x->value.data, k, packed, y->value.data, n, &e);
    return att_tape_done(t, "linear", y, NULL, NULL);
}
