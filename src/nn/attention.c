/* Multi-head attention: of tokens to themselves, to a source, to those before them */
#include "nn/nn.h"

att_nn_attention att_nn_attention_load(att_nn_source *s, const char *prefix, const char *name,
                                       const att_nn_layer_config *c, const att_plan *plan)
{
    const att_nn_name in = att_nn_join(prefix, name);
    const int64_t n = c->hidden;
    return (att_nn_attention){.query = att_nn_linear_load(s, att_nn_join(in.text, "query").text, n, n),
                              .key = att_nn_linear_load(s, att_nn_join(in.text, "key").text, n, n),
                              .value = att_nn_linear_load(s, att_nn_join(in.text, "value").text, n, n),
                              .output = att_nn_linear_load(s, att_nn_join(in.text, "output").text, n, n),
                              .plan = plan,
                              .heads = c->heads,
                              .name = name,
                              .place = att_nn_place(prefix, name)};
}

static att_var *heads_of(att_tape *t, const att_nn_attention *l, const att_nn_linear *projection, att_var *x)
{
    return att_split_heads(t, att_nn_linear_apply(t, projection, x, ATT_IDENTITY, NULL), l->heads);
}

static att_var *join(att_tape *t, const att_nn_attention *l, att_var *heads, att_var *residual,
                     const att_nn_dropout *dropout)
{
    return att_nn_linear_drop(t, &l->output, att_merge_heads(t, heads), residual, dropout, l->place);
}

att_nn_memory att_nn_attention_remember(att_tape *t, const att_nn_attention *l, att_var *source)
{
    att_var *key = heads_of(t, l, &l->key, source);
    return (att_nn_memory){key, heads_of(t, l, &l->value, source)};
}

att_var *att_nn_attention_recall(att_tape *t, const att_nn_attention *l, att_var *x, const att_nn_memory *memory,
                                 att_var *residual, const att_attention_args *args)
{
    att_scope s = att_scope_begin(t, l->name);
    att_var *q = heads_of(t, l, &l->query, x);
    att_var *heads = att_attend(t, l->plan, q, memory->key, memory->value, args, NULL);
    return att_scope_end(t, s, join(t, l, heads, residual, NULL));
}

att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, att_var *source, att_var *residual,
                                const att_attention_args *args, const att_nn_dropout *dropout)
{
    att_scope s = att_scope_begin(t, l->name);
    att_var *q = heads_of(t, l, &l->query, x);
    const att_nn_memory m = att_nn_attention_remember(t, l, source);
    att_var *heads = att_attend(t, l->plan, q, m.key, m.value, args, NULL);
    return att_scope_end(t, s, join(t, l, heads, residual, dropout));
}

att_var *att_nn_attention_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *cache, att_var *residual)
{
    att_scope s = att_scope_begin(t, l->name);
    att_var *q = heads_of(t, l, &l->query, x);
    const att_nn_memory m = att_nn_attention_remember(t, l, x);
    att_var *heads = att_attend_cached(t, l->plan, q, m.key, m.value, cache, NULL);
    return att_scope_end(t, s, join(t, l, heads, residual, NULL));
}
