/* Shared by encoder and decoder layers: the order of norms, layer scale, residuals. */
#include "nn/nn.h"

/* ---- norm, sublayer, layer scale, residual, norm */

static att_var *norm_before(att_tape *t, att_nn_sublayer s, att_var *x)
{
    return s.norm && s.order != ATT_NN_ORDER_POST_NORM ? att_nn_norm_apply(t, s.norm, x) : x;
}

/* Returns the variable to which the sublayer's result is added; y: x, normalized. */
static att_var *residual_of(att_nn_sublayer s, att_var *x, att_var *y)
{
    return s.order == ATT_NN_ORDER_QUERY_NORM ? y : x;
}

/* Returns whether the sublayer's last operation adds the residual. */
static bool adds_residual(att_nn_sublayer s) { return !s.scale && !s.result_norm; }

/* Finishes a sublayer; y is its result, to which it may have added the residual. */
static att_var *finish(att_tape *t, att_nn_sublayer s, att_var *y, att_var *residual)
{
    if (s.result_norm)
        y = att_nn_norm_apply(t, s.result_norm, y);
    if (s.scale)
        y = att_mul(t, y, att_parameter(t, s.scale));
    if (!adds_residual(s))
        y = att_add(t, y, residual);
    return s.order == ATT_NN_ORDER_POST_NORM ? att_nn_norm_apply(t, s.norm, y) : y;
}

att_var *att_nn_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                       att_nn_attention_call call)
{
    att_var *y = norm_before(t, s, x), *residual = residual_of(s, x, y);
    call.residual = adds_residual(s) ? residual : NULL;
    return finish(t, s, att_nn_attention_apply(t, l, y, &call), residual);
}

att_var *att_nn_self_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                            const att_nn_layer_call *c)
{
    const att_nn_attention_call call = {.size = sizeof call,
                                        .source = s.order == ATT_NN_ORDER_QUERY_NORM ? x : NULL,
                                        .same_rows = true,
                                        .args = c->args,
                                        .positions = c->positions,
                                        .dropout = c->dropout,
                                        .cache = c->cache,
                                        .plan = c->plan};
    return att_nn_attend(t, s, l, x, call);
}

att_var *att_nn_feed(att_tape *t, att_nn_sublayer s, const att_nn_feed_forward *l, att_var *x,
                     const att_nn_dropout *dropout)
{
    att_var *y = norm_before(t, s, x), *residual = residual_of(s, x, y);
    return finish(t, s, att_nn_feed_forward_apply(t, l, y, adds_residual(s) ? residual : NULL, dropout), residual);
}

/* ---- making them */

bool att_nn_check_layer(att_nn_params *p, const char *name, const att_nn_layer_config *c)
{
    if ((unsigned)c->order > ATT_NN_ORDER_SANDWICH_NORM)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": order is %d, which is not an att_nn_order", name,
                           (int)c->order);
    return !c->no_attention_norm || c->order == ATT_NN_ORDER_PRE_NORM || c->order == ATT_NN_ORDER_SANDWICH_NORM ||
           att_nn_fail(p, ATT_ERR_ARGUMENT,
                       "\"%s\": no_attention_norm is true, but order is %d, neither ATT_NN_ORDER_PRE_NORM nor "
                       "ATT_NN_ORDER_SANDWICH_NORM",
                       name, (int)c->order);
}

const att_nn_norm *att_nn_layer_norm(att_nn_params *p, const char *prefix, const char *name,
                                     const att_nn_layer_config *c)
{
    return c->order == ATT_NN_ORDER_RESULT_NORM
               ? NULL
               : att_nn_norm_new(p, att_nn_join(prefix, name).text, c->norm, c->width, c->eps);
}

const att_nn_norm *att_nn_layer_result_norm(att_nn_params *p, const char *prefix, const char *name,
                                            const att_nn_layer_config *c)
{
    return c->order == ATT_NN_ORDER_RESULT_NORM || c->order == ATT_NN_ORDER_SANDWICH_NORM
               ? att_nn_norm_new(p, att_nn_join(prefix, name).text, c->norm, c->width, c->eps)
               : NULL;
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
