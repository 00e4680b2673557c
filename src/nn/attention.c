/* Multi-head attention: self-attention, cross-attention, and incremental decoding */
#include "nn/nn.h"

att_nn_attention att_nn_attention_load(att_nn_loader *s, const char *prefix, const char *name,
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
                              .dropout_id = att_nn_dropout_id(prefix, name)};
}

static att_var *heads_of(att_tape *t, const att_nn_attention *l, const att_nn_linear *projection, att_var *x)
{
    return att_split_heads(t, att_nn_linear_apply(t, projection, x, ATT_IDENTITY, NULL), l->heads);
}

static att_var *join(att_tape *t, const att_nn_attention *l, att_var *heads, att_var *residual,
                     const att_nn_dropout *dropout)
{
    return att_nn_linear_dropout(t, &l->output, att_merge_heads(t, heads), residual, dropout, l->dropout_id);
}

/* Keys and values, [tokens, heads, dim] each */
typedef struct key_value {
    att_var *key, *value;
} key_value;

static key_value keys_and_values(att_tape *t, const att_nn_attention *l, att_var *source)
{
    att_var *key = heads_of(t, l, &l->key, source);
    return (key_value){key, heads_of(t, l, &l->value, source)};
}

/* Tokens [first, last) of x [tokens, heads, dim], transposed to [heads, last - first, dim] */
static att_tensor part(const att_tensor *x, int64_t first, int64_t last)
{
    const int64_t heads = x->dim[1], dim = x->dim[2], stride[] = {dim, heads * dim, 1};
    att_tensor y;
    att_wrap(&y, (float *)x->data + first * heads * dim, ATT_F32, ATT_DIMS(heads, last - first, dim), stride);
    return y;
}

att_status att_nn_attention_project_source(att_tape *t, const att_nn_attention *l, att_var *source,
                                           const int64_t *offsets, att_cache *memory)
{
    const key_value at = keys_and_values(t, l, source);
    att_tensor key, value;
    att_status e = att_var_value(t, at.key, &key);
    e = e ? e : att_var_value(t, at.value, &value);
    for (int64_t b = 0; !e && b < att_cache_sequences(memory); b++) {
        const att_tensor k = part(&key, offsets[b], offsets[b + 1]), v = part(&value, offsets[b], offsets[b + 1]);
        e = att_cache_append(memory, b, &k, &v);
    }
    return e;
}

att_var *att_nn_attention_cross_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *memory,
                                     att_var *residual)
{
    att_var *q = heads_of(t, l, &l->query, x);
    return join(t, l, att_attend_cached(t, l->plan, q, NULL, NULL, memory, NULL), residual, NULL);
}

att_var *att_nn_attention_apply(att_tape *t, const att_nn_attention *l, att_var *x, att_var *source, att_var *residual,
                                const att_attention_args *args, const att_nn_dropout *dropout)
{
    att_scope s = att_scope_begin(t, l->name);
    att_var *q = heads_of(t, l, &l->query, x);
    const key_value at = keys_and_values(t, l, source);
    att_var *heads = att_attend(t, l->plan, q, at.key, at.value, args, NULL);
    return att_scope_end(t, s, join(t, l, heads, residual, dropout));
}

att_var *att_nn_attention_step(att_tape *t, const att_nn_attention *l, att_var *x, att_cache *cache, att_var *residual)
{
    att_var *q = heads_of(t, l, &l->query, x);
    const key_value at = keys_and_values(t, l, x);
    return join(t, l, att_attend_cached(t, l->plan, q, at.key, at.value, cache, NULL), residual, NULL);
}
