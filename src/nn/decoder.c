/* A decoder layer of the Transformer */
#include "nn/nn.h"

const att_nn_decoder_layer *att_nn_decoder_layer_new(att_nn_params *p, const char *name,
                                                     const att_nn_layer_config *config)
{
    att_nn_layer_config c;
    if (!att_nn_options_read(p, name, &c, sizeof c, config, "att_nn_layer_config"))
        return NULL;
    att_nn_decoder_layer *l = att_nn_check_layer(p, name, &c) ? att_nn_params_alloc(p, sizeof *l) : NULL;
    if (!l)
        return NULL;
    l->order = c.order;
    l->attention = att_nn_layer_attention(p, name, "attention", &c, c.attention, true);
    l->cross = att_nn_layer_attention(p, name, "cross", &c, c.cross, false);
    l->attention_norm = c.no_attention_norm ? NULL : att_nn_layer_norm(p, name, "attention_norm", &c);
    l->attention_result_norm = att_nn_layer_result_norm(p, name, "attention_result_norm", &c);
    l->cross_norm = att_nn_layer_norm(p, name, "cross_norm", &c);
    l->cross_result_norm = att_nn_layer_result_norm(p, name, "cross_result_norm", &c);
    l->feed_forward = att_nn_feed_forward_new(p, att_nn_join(name, "feed_forward").text, &c);
    l->feed_forward_norm = att_nn_layer_norm(p, name, "feed_forward_norm", &c);
    l->feed_forward_result_norm = att_nn_layer_result_norm(p, name, "feed_forward_result_norm", &c);
    l->attention_scale = att_nn_layer_scale(p, name, "attention_scale", &c);
    l->cross_scale = att_nn_layer_scale(p, name, "cross_scale", &c);
    l->feed_forward_scale = att_nn_layer_scale(p, name, "feed_forward_scale", &c);
    return att_nn_params_status(p) ? NULL : l;
}

static att_var *apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x, const att_nn_layer_call *c)
{
    const att_nn_sublayer attention = {l->order, l->attention_norm, l->attention_result_norm, l->attention_scale},
                          cross = {l->order, l->cross_norm, l->cross_result_norm, l->cross_scale},
                          feed_forward = {l->order, l->feed_forward_norm, l->feed_forward_result_norm,
                                          l->feed_forward_scale};
    const att_nn_attention_call source = {.size = sizeof source,
                                          .source = c->source,
                                          .args = c->cross,
                                          .positions = c->positions,
                                          .dropout = c->dropout,
                                          .cache = c->memory,
                                          .keep_cache = true};
    x = att_nn_self_attend(t, attention, l->attention, x, c);
    x = att_nn_attend(t, cross, l->cross, x, source);
    return att_nn_feed(t, feed_forward, l->feed_forward, x, c->dropout);
}

/* Finds the positions of rotated queries. In cross-attention with a cache they follow the tokens of the self-attention
 * cache, before it appends. */
static bool find_positions(att_tape *t, att_var *x, const att_nn_layer_call *c, att_nn_positions *p)
{
    att_attention_args args;
    att_tensor value;
    return !att_var_value(t, x, &value) &&
           att_tape_options_read(t, "decoder_layer", &args, sizeof args, c->args, "att_attention_args") &&
           att_nn_positions_begin(t, p, args.q_offsets, args.n_sequences, value.dim[0], c->cache);
}

att_var *att_nn_decoder_layer_apply(att_tape *t, const att_nn_decoder_layer *l, att_var *x,
                                    const att_nn_layer_call *call)
{
    att_nn_layer_call c = {.size = sizeof c};
    att_attention_args cross;
    att_nn_positions own = {.memory = NULL};
    if (!att_nn_given(t, __func__, l) || !att_tape_require(t, __func__, ATT_NAMED({"call", call})) ||
        !att_tape_options_read(t, "decoder_layer", &c, sizeof c, call, "att_nn_layer_call"))
        return NULL;
    if (!c.memory && !att_tape_require(t, __func__, ATT_NAMED({"source", c.source})))
        return NULL;
    if (c.memory && c.cross) {
        if (!att_tape_options_read(t, "decoder_layer", &cross, sizeof cross, c.cross, "att_attention_args"))
            return NULL;
        cross.k_offsets = NULL; /* the memory has the source's lengths */
        c.cross = &cross;
    }
    if (c.cache && !c.positions && l->cross->rotary) {
        if (!find_positions(t, x, &c, &own))
            return NULL;
        c.positions = &own.at;
    }
    x = apply(t, l, x, &c);
    att_nn_positions_end(t, &own);
    return x;
}
