/* Position-wise feed-forward network */
#include "nn/nn.h"

att_nn_feed_forward att_nn_feed_forward_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c)
{
    return (att_nn_feed_forward){
        .inner = att_nn_linear_load(s, att_nn_join(prefix, "inner").text, c->hidden, c->intermediate),
        .outer = att_nn_linear_load(s, att_nn_join(prefix, "outer").text, c->intermediate, c->hidden),
        .activation = c->activation,
        .dropout_id = att_nn_dropout_id(prefix, "outer")};
}

att_var *att_nn_feed_forward_apply(att_tape *t, const att_nn_feed_forward *l, att_var *x, att_var *residual,
                                   const att_nn_dropout *dropout)
{
    att_scope s = att_scope_begin(t, "feed_forward");
    att_var *h = att_nn_linear_apply(t, &l->inner, x, l->activation, NULL);
    return att_scope_end(t, s, att_nn_linear_dropout(t, &l->outer, h, residual, dropout, l->dropout_id));
}
