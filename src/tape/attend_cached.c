/* Attention to a key-value cache, to which new tokens are appended first: decoding. Not recorded. */
#include "tape/tape.h"
#include "attn/call/call.h"

/* [sequences * n, heads, dim] -> [sequences, heads, n, dim] */
static att_tensor batched(const att_tensor *x, int64_t sequences)
{
    const int64_t n = x->dim[0] / sequences, heads = x->dim[1], dim = x->dim[2];
    att_tensor y = {.data = x->data, .dtype = ATT_F32, .rank = 4, .dim = {sequences, heads, n, dim}};
    const int64_t stride[4] = {n * heads * dim, dim, heads * dim, 1};
    for (int i = 0; i < 4; i++)
        y.stride[i] = stride[i];
    return y;
}

static bool check(att_tape *t, const att_plan *plan, const att_var *const in[3], const att_cache *cache)
{
    static const char *const names[] = {"q", "k", "v"};
    const int64_t sequences = att_cache_sequences(cache);
    if (!plan || !cache)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend_cached: %s is NULL", plan ? "cache" : "plan");
    if (!in[1] != !in[2])
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend_cached: %s is NULL, but not %s", names[in[1] ? 2 : 1],
                             names[in[1] ? 1 : 2]);
    if (t->record)
        return att_tape_fail(t, ATT_ERR_UNSUPPORTED,
                             "attend_cached: the tape records, but through a cache there is no backward");
    for (int i = 0; i < 3 && in[i]; i++) {
        const att_tensor *x = &in[i]->value;
        if (x->rank != 3)
            return att_tape_fail(t, ATT_ERR_SHAPE, "attend_cached: %s is %s, not [tokens, heads, dim]", names[i],
                                 att_shape_of(x).text);
        if (x->dim[0] % sequences != 0)
            return att_tape_fail(t, ATT_ERR_SHAPE,
                                 "attend_cached: %s has %lld tokens, which %lld sequences cannot have equally many of",
                                 names[i], (long long)x->dim[0], (long long)sequences);
    }
    return true;
}

att_var *att_attend_cached(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v, att_cache *cache,
                           const att_attention_args *args)
{
    if (!q || !att_tape_ready(t) || !check(t, plan, (const att_var *[]){q, k, v}, cache))
        return NULL;
    att_attention_args a;
    if (!att_tape_take_options(t, "attend_cached", &a, sizeof a, args, "att_attention_args"))
        return NULL;
    att_var *out = att_tape_var(t, 3, (const int64_t[]){q->value.dim[0], q->value.dim[1], plan->spec.value_dim});
    if (!out)
        return NULL;
    const int64_t sequences = att_cache_sequences(cache);
    a.q = batched(&q->value, sequences);
    a.out = batched(&out->value, sequences);
    a.cache = cache;
    att_status s = ATT_OK;
    if (k) {
        const att_tensor keys = batched(&k->value, sequences), values = batched(&v->value, sequences);
        s = att_cache_append(cache, ATT_ALL_SEQUENCES, &keys, &values);
    }
    if (!s && (s = att_forward(plan, &a)))
        for (int64_t b = 0; k && b < sequences; b++) /* undo the append */
            att_cache_truncate(cache, b, att_cache_length(cache, b) - k->value.dim[0] / sequences);
    return s ? att_tape_fail(t, s, "attend_cached: %s", att_error(t->ctx)) : out;
}
