/* What encoder and decoder layers share: the order of norms, layer scale, residuals */
#include "nn/nn.h"

bool att_nn_check_layer(att_nn_params *p, const char *name, const att_nn_layer_config *c)
{
    return (unsigned)c->order <= ATT_QUERY_NORM ||
           att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": order is %d, no att_nn_order", name, (int)c->order);
}

att_nn_sublayer att_nn_sublayer_begin(att_tape *t, att_nn_order order, const att_nn_norm *norm, att_var *x)
{
    att_var *y = att_nn_norm_if(t, order != ATT_POST_NORM, norm, x);
    return (att_nn_sublayer){y, order == ATT_QUERY_NORM ? y : x};
}

att_var *att_nn_sublayer_end(att_tape *t, att_nn_order order, const att_nn_norm *norm, att_var *x)
{
    return att_nn_norm_if(t, order == ATT_POST_NORM, norm, x);
}

/* scale * x + residual */
static att_var *add_scaled(att_tape *t, att_param *scale, att_var *x, att_var *residual)
{
    return att_add(t, att_mul(t, x, att_parameter(t, scale)), residual);
}

att_var *att_nn_attend(att_tape *t, const att_nn_attention *l, att_param *scale, att_nn_sublayer in,
                       const att_nn_attention_call *call)
{
    att_nn_attention_call c = *call;
    c.residual = scale ? NULL : in.residual;
    att_var *y = att_nn_attention_apply(t, l, in.x, &c);
    return scale ? add_scaled(t, scale, y, in.residual) : y;
}

att_var *att_nn_feed(att_tape *t, const att_nn_feed_forward *l, att_param *scale, att_nn_sublayer in,
                     const att_nn_dropout *dropout)
{
    att_var *y = att_nn_feed_forward_apply(t, l, in.x, scale ? NULL : in.residual, dropout);
    return scale ? add_scaled(t, scale, y, in.residual) : y;
}

att_param *att_nn_layer_scale(att_nn_params *p, const char *prefix, const char *name, const att_nn_layer_config *c)
{
    const att_init init = {.size = sizeof init, .value = c->layer_scale};
    return c->layer_scale != 0 ? att_nn_params_request(p, prefix, name, 1, &c->width, &init) : NULL;
}

const att_nn_attention *att_nn_layer_attention(att_nn_params *p, const char *prefix, const char *name,
                                               const att_nn_layer_config *c, const att_nn_attention_config *given,
                                               bool causal)
{
    const bool none = c->no_bias;
    const att_nn_attention_config own = {.size = sizeof own,
                                         .width = c->width,
                                         .heads = c->heads,
                                         .causal = causal,
                                         .dropout = c->attention_dropout,
                                         .no_query_bias = none,
                                         .no_key_bias = none,
                                         .no_value_bias = none,
                                         .no_output_bias = none};
    return att_nn_attention_new(p, att_nn_join(prefix, name).text, given ? given : &own);
}
