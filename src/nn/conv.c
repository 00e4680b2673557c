/* Convolutions, and the norm that follows them */
#include "nn/nn.h"

/* ---- convolution */

static bool check_kernel(att_nn_params *p, const char *name, const att_nn_conv_config *c, int i)
{
    enum { MAX_KERNEL = 1 << 14 };
    return (c->kernel[i] >= 1 && c->kernel[i] <= MAX_KERNEL && c->stride[i] >= 0 && c->padding[i] >= 0) ||
           att_nn_fail(p, ATT_ERR_ARGUMENT,
                       "\"%s\": kernel[%d] is %lld, stride %lld, padding %lld; expected 1..%d, 0 or more, 0 or more",
                       name, i, (long long)c->kernel[i], (long long)c->stride[i], (long long)c->padding[i], MAX_KERNEL);
}

const att_nn_conv *att_nn_conv_new(att_nn_params *p, const char *name, const att_nn_conv_config *config)
{
    att_nn_conv_config c;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_conv_config"))
        return NULL;
    bool fits = att_nn_check_size(p, name, "in", c.in) && att_nn_check_size(p, name, "out", c.out);
    for (int i = 0; i < 2 && fits; i++)
        fits = check_kernel(p, name, &c, i);
    att_nn_conv *l = fits ? att_nn_params_alloc(p, sizeof *l) : NULL;
    if (!l)
        return NULL;
    const att_init init = {
        .size = sizeof init, .kind = ATT_INIT_FAN_IN_UNIFORM, .fan_in = c.in * c.kernel[0] * c.kernel[1]};
    l->weight =
        att_nn_params_request(p, name, "weight", 4, (const int64_t[]){c.out, c.in, c.kernel[0], c.kernel[1]}, &init);
    l->bias = c.no_bias ? NULL : att_nn_params_request(p, name, "bias", 1, &c.out, &init);
    for (int i = 0; i < 2; i++) {
        l->stride[i] = c.stride[i];
        l->padding[i] = c.padding[i];
    }
    return l->weight && (l->bias || c.no_bias) ? l : NULL;
}

att_var *att_nn_conv_apply(att_tape *t, const att_nn_conv *l, att_var *x)
{
    if (!att_nn_given(t, __func__, l))
        return NULL;
    const att_conv_options options = {
        .size = sizeof options, .stride = {l->stride[0], l->stride[1]}, .padding = {l->padding[0], l->padding[1]}};
    return att_conv2d(t, x, l->weight, l->bias, &options);
}

/* ---- batch normalization */

const att_nn_batch_norm *att_nn_batch_norm_new(att_nn_params *p, const char *name, int64_t channels, float eps)
{
    const att_init ones = {.size = sizeof ones, .value = 1}, zeros = {.size = sizeof zeros};
    att_nn_batch_norm *l = att_nn_params_alloc(p, sizeof *l);
    if (!l)
        return NULL;
    l->weight = att_nn_params_request(p, name, "weight", 1, &channels, &ones);
    l->bias = att_nn_params_request(p, name, "bias", 1, &channels, &zeros);
    l->running_mean = att_nn_buffer(p, name, "running_mean", 1, &channels, &zeros);
    l->running_var = att_nn_buffer(p, name, "running_var", 1, &channels, &ones);
    l->eps = eps > 0 ? eps : 1e-5f;
    l->trainable = att_nn_params_trainable(p);
    return l->running_var ? l : NULL;
}

att_var *att_nn_batch_norm_apply(att_tape *t, const att_nn_batch_norm *l, att_var *x,
                                 const att_batch_norm_options *options)
{
    att_batch_norm_options o;
    if (!att_nn_given(t, __func__, l) ||
        !att_tape_options_read(t, "batch_norm", &o, sizeof o, options, "att_batch_norm_options"))
        return NULL;
    if (o.training && !l->trainable)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: training, but the parameters are not trainable", __func__);
    o.training &= !att_param_frozen(l->weight) || !att_param_frozen(l->bias);
    o.eps = o.eps != 0 ? o.eps : (double)l->eps;
    return att_batch_norm(t, x, l->weight, l->bias, att_param_value(l->running_mean), att_param_value(l->running_var),
                          &o);
}
