/* A decoder layer of the Transformer */
#include "nn/nn.h"

att_nn_decoder_layer att_nn_decoder_layer_load(att_nn_loader *s, const char *prefix, const att_nn_layer_config *c)
{
    const int64_t n = c->hidden;
    return (att_nn_decoder_layer){
        .attention = att_nn_attention_load(s, prefix, "attention", c, c->plan),
        .cross = att_nn_attention_load(s, prefix, "cross", c, c->cross),
        .attention_norm = att_nn_layer_norm_load(s, att_nn_join(prefix, "attention_norm").text, n, c->eps),
        .cross_norm = att_nn_layer_norm_load(s, att_nn_join(prefix, "cross_norm").text, n, c->eps),
        .feed_forward = att_nn_feed_forward_load(s, att_nn_join(prefix, "feed_forward").text, c),
        .feed_forward_norm = att_nn_layer_norm_load(s, att_nn_join(prefix, "feed_forward_norm").text, n, c->eps),
        .norm_first = c->norm_first};
}

static att_var *feed_forward(att_tape *t, const att_nn_decoder_layer *l, att_var *x, const att_nn_dropout *dropout)
{
    att_var *y = att_nn_norm_if(t, l->norm_first, &l->feed_forward_norm, x);
    x = att_nn_feed_forward_apply(t, &l->feed_forward, y, x, dropout);
    return att_nn_norm_if(t, !l->norm_first, &l->feed_forward_norm, x);
}

att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_var *source,
                                    const att_attention_args *args, const att_attention_args *cross,
                                    const att_nn_dropout *dropout)
{
    const bool first = l->norm_first;
    att_var *y = att_nn_norm_if(t, first, &l->attention_norm, x);
    x = att_nn_norm_if(t, !first, &l->attention_norm, att_nn_attention_apply(t, &l->attention, y, y, x, args, dropout));
    y = att_nn_norm_if(t, first, &l->cross_norm, x);
    x = att_nn_norm_if(t, !first, &l->cross_norm, att_nn_attention_apply(t, &l->cross, y, source, x, cross, dropout));
    return feed_forward(t, l, x, dropout);
}

att_var *att_nn_decoder_layer_step(att_tape *t, const att_nn_decoder_layer *l, att_var *x, att_cache *cache,
                                   att_cache *memory)
{
    const bool first = l->norm_first;
    att_var *y = att_nn_norm_if(t, first, &l->attention_norm, x);
    x = att_nn_norm_if(t, !first, &l->attention_norm, att_nn_attention_step(t, &l->attention, y, cache, x));
    y = att_nn_norm_if(t, first, &l->cross_norm, x);
    x = att_nn_norm_if(t, !first, &l->cross_norm, att_nn_attention_cross_step(t, &l->cross, y, memory, x));
    return feed_forward(t, l, x, NULL);
}
