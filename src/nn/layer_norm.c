/* Each row to mean 0 and variance 1, then scaled and shifted */
#include "nn/nn.h"

att_nn_layer_norm att_nn_layer_norm_load(att_nn_source *s, const char *prefix, int64_t features, float eps)
{
    return (att_nn_layer_norm){.gamma = att_nn_vector(s, prefix, "gamma", features),
                               .beta = att_nn_vector(s, prefix, "beta", features),
                               .eps = eps};
}

att_var *att_nn_layer_norm_apply(att_tape *t, const att_nn_layer_norm *l, att_var *x)
{
    return att_layer_norm(t, x, l->gamma, l->beta, l->eps);
}

att_var *att_nn_norm_if(att_tape *t, bool norm, const att_nn_layer_norm *l, att_var *x)
{
    return norm ? att_nn_layer_norm_apply(t, l, x) : x;
}
