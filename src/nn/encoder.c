/* An encoder layer of the Transformer; if causal, a layer of a decoder-only model. */
#include "nn/nn.h"

const att_nn_encoder_layer *att_nn_encoder_layer_new(att_nn_params *p, const char *name,
                                                     const att_nn_layer_config *config)
{
    att_nn_layer_config c;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_layer_config"))
        return NULL;
    att_nn_encoder_layer *l = att_nn_check_layer(p, name, &c) ? att_nn_params_alloc(p, sizeof *l) : NULL;
    if (!l)
        return NULL;
    l->order = c.order;
    l->attention = att_nn_layer_attention(p, name, "attention", &c, c.attention, c.causal);
    l->attention_norm = c.no_attention_norm ? NULL : att_nn_layer_norm(p, name, "attention_norm", &c);
    l->attention_result_norm = att_nn_layer_result_norm(p, name, "attention_result_norm", &c);
    l->feed_forward = att_nn_feed_forward_new(p, att_nn_join(name, "feed_forward").text, &c);
    l->feed_forward_norm = att_nn_layer_norm(p, name, "feed_forward_norm", &c);
    l->feed_forward_result_norm = att_nn_layer_result_norm(p, name, "feed_forward_result_norm", &c);
    l->attention_scale = att_nn_layer_scale(p, name, "attention_scale", &c);
    l->feed_forward_scale = att_nn_layer_scale(p, name, "feed_forward_scale", &c);
    return att_nn_params_status(p) ? NULL : l;
}

att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                    const att_nn_layer_call *call)
{
    att_nn_layer_call c = {.size = sizeof c};
    if (!att_nn_given(t, __func__, l) ||
        !att_tape_options_read(t, "encoder_layer", &c, sizeof c, call, "att_nn_layer_call"))
        return NULL;
    const att_nn_sublayer attention = {l->order, l->attention_norm, l->attention_result_norm, l->attention_scale},
                          feed_forward = {l->order, l->feed_forward_norm, l->feed_forward_result_norm,
                                          l->feed_forward_scale};
    x = att_nn_self_attend(t, attention, l->attention, x, &c);
    return att_nn_feed(t, feed_forward, l->feed_forward, x, c.dropout);
}
