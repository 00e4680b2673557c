/* f(x W^T + b) + residual */
#include "nn/nn.h"

att_nn_linear att_nn_linear_load(att_nn_source *s, const char *prefix, int64_t in, int64_t out)
{
    return (att_nn_linear){.weight = att_nn_matrix(s, prefix, "weight", out, in),
                           .bias = att_nn_vector(s, prefix, "bias", out)};
}

att_var *att_nn_linear_drop(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                            const att_nn_dropout *dropout, uint64_t place)
{
    if (!dropout || dropout->p == 0)
        return att_nn_linear_apply(t, l, x, ATT_IDENTITY, residual);
    return att_nn_drop(t, dropout, place, att_nn_linear_apply(t, l, x, ATT_IDENTITY, NULL), residual);
}

att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f, att_var *residual)
{
    return att_linear(t, x, l->weight, l->bias, f, residual);
}
