/* One layer of a Transformer's encoder */
#include "nn/nn.h"

att_nn_encoder_layer att_nn_encoder_layer_load(att_nn_source *s, const char *prefix, const att_nn_encoder_config *c)
{
    const int64_t n = c->hidden;
    return (att_nn_encoder_layer){
        .attention = att_nn_attention_load(s, att_nn_join(prefix, "attention").text, c),
        .attention_norm = att_nn_layer_norm_load(s, att_nn_join(prefix, "attention_norm").text, n, c->eps),
        .feed_forward = att_nn_feed_forward_load(s, att_nn_join(prefix, "feed_forward").text, c),
        .feed_forward_norm = att_nn_layer_norm_load(s, att_nn_join(prefix, "feed_forward_norm").text, n, c->eps)};
}

att_var *att_nn_encoder_layer_apply(att_tape *t, const att_nn_encoder_layer *l, att_var *x,
                                    const att_attention_args *args)
{
    x = att_nn_layer_norm_apply(t, &l->attention_norm, att_nn_attention_apply(t, &l->attention, x, args));
    return att_nn_layer_norm_apply(t, &l->feed_forward_norm, att_nn_feed_forward_apply(t, &l->feed_forward, x));
}
