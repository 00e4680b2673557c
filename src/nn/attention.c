/* Multi-head self-attention */
#include "nn/nn.h"

att_nn_attention att_nn_attention_load(att_nn_source *s, const char *prefix, const att_nn_encoder_config *c)
{
    const int64_t n = c->hidden;
    return (att_nn_attention){.query = att_nn_linear_load(s, att_nn_join(prefix, "query").text, n, n),
                              .key = att_nn_linear_load(s, att_nn_join(prefix, "key").text, n, n),
                              .value = att_nn_linear_load(s, att_nn_join(prefix, "value").text, n, n),
                              .output = att_nn_linear_load(s, att_nn_join(prefix, "output").text, n, n),
                              .plan = c->plan,
                              .heads = c->heads};
}

static att_var *heads_of(att_tape *t, const att_nn_attention *l, const att_nn_linear *projection, att_var *x)
{
    return att_split_heads(t, att_nn_linear_apply(t, projection, x, ATT_IDENTITY, NULL), l->heads);
}

att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, const att_attention_args *args)
{
    att_scope s = att_scope_begin(t, "attention");
    att_var *q = heads_of(t, l, &l->query, x);
    att_var *k = heads_of(t, l, &l->key, x);
    att_var *v = heads_of(t, l, &l->value, x);
    att_var *concat = att_merge_heads(t, att_attend(t, l->plan, q, k, v, args, NULL));
    return att_scope_end(t, s, att_nn_linear_apply(t, &l->output, concat, ATT_IDENTITY, x));
}
