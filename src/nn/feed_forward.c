/* Position-wise feed-forward network, plain or gated */
#include "nn/nn.h"

const att_nn_feed_forward *att_nn_feed_forward_new(att_nn_params *p, const char *name,
                                                   const att_nn_layer_config *config)
{
    att_nn_layer_config c;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_layer_config"))
        return NULL;
    if (!att_nn_check_size(p, name, "width", c.width) || !att_nn_check_size(p, name, "intermediate", c.intermediate))
        return NULL;
    if ((unsigned)c.activation > ATT_ACTIVATION_QUICK_GELU)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": activation is %d, which is not an att_activation", name,
                           (int)c.activation);
    att_nn_feed_forward *l = att_nn_params_alloc(p, sizeof *l);
    if (!l)
        return NULL;
    *l = (att_nn_feed_forward){.activation = c.activation ? c.activation : ATT_ACTIVATION_RELU,
                               .dropout_id = att_nn_dropout_id(name, "outer"),
                               .inner_dropout_id = c.inner_dropout ? att_nn_dropout_id(name, "inner") : 0};
    if (c.gated)
        l->gate = att_nn_linear_new(p, att_nn_join(name, "gate").text, c.width, c.intermediate,
                                    ATT_OPTIONS(att_nn_linear_options, .no_bias = c.no_bias));
    l->inner = att_nn_linear_new(p, att_nn_join(name, "inner").text, c.width, c.intermediate,
                                 ATT_OPTIONS(att_nn_linear_options, .no_bias = c.no_bias));
    l->outer = att_nn_linear_new(p, att_nn_join(name, "outer").text, c.intermediate, c.width,
                                 ATT_OPTIONS(att_nn_linear_options, .no_bias = c.no_bias));
    return l->outer ? l : NULL;
}

att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x, att_var *residual,
                                   const att_nn_dropout *dropout)
{
    if (!att_nn_given(t, __func__, l))
        return NULL;
    att_scope s = att_scope_begin(t, "feed_forward");
    att_var *h = att_nn_linear_apply(t, l->gate ? l->gate : l->inner, x, l->activation, NULL);
    if (l->gate)
        h = att_mul(t, h, att_nn_linear_apply(t, l->inner, x, ATT_ACTIVATION_IDENTITY, NULL));
    if (l->inner_dropout_id)
        h = att_nn_dropout_apply(t, dropout, l->inner_dropout_id, h, NULL);
    return att_scope_end(t, s, att_nn_linear_dropout(t, l->outer, h, residual, dropout, l->dropout_id));
}
