/* Attention to a key-value cache, to which new tokens are appended first (decoding). It is not recorded. */
#include "tape/tape.h"
#include "attn/call/call.h"

/* [sequences * n, heads, dim] -> [sequences, heads, n, dim] */
static att_tensor batched(const att_tensor *x, int64_t sequences)
{
    const int64_t n = x->dim[0] / sequences, heads = x->dim[1], dim = x->dim[2];
    att_tensor y = {.data = x->data, .dtype = x->dtype, .rank = 4, .dim = {sequences, heads, n, dim}};
    const int64_t stride[4] = {n * heads * dim, dim, heads * dim, 1};
    for (int i = 0; i < 4; i++)
        y.stride[i] = stride[i];
    return y;
}

static bool check_rows(att_tape *t, const char *name, const att_tensor *x, bool ragged, int64_t sequences)
{
    if (x->rank != 3)
        return att_tape_fail(t, ATT_ERR_SHAPE, "attend_cached: %s is %s, not [tokens, heads, dim]", name,
                             att_shape_of(x).text);
    if (!ragged && x->dim[0] % sequences != 0)
        return att_tape_fail(t, ATT_ERR_SHAPE,
                             "attend_cached: %s has %lld tokens, which %lld sequences cannot share equally", name,
                             (long long)x->dim[0], (long long)sequences);
    return true;
}

static bool check_offsets(att_tape *t, const att_attention_args *a, bool appends, int64_t sequences)
{
    if (a->k_offsets && !(a->q_offsets && appends))
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend_cached: args.k_offsets is given without %s",
                             appends ? "args.q_offsets" : "k");
    if (a->q_offsets && a->n_sequences != sequences)
        return att_tape_fail(t, ATT_ERR_SHAPE,
                             "attend_cached: args.n_sequences is %lld, but the cache has %lld sequences",
                             (long long)a->n_sequences, (long long)sequences);
    return true;
}

static bool check(att_tape *t, const att_plan *plan, const att_var *const in[3], const att_cache *cache,
                  const att_attention_args *a)
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
    for (int i = 0; i < 3 && in[i]; i++)
        if (!check_rows(t, names[i], &in[i]->value, a->q_offsets, sequences))
            return false;
    return check_offsets(t, a, in[1], sequences);
}

/* Makes y, a tensor of another type in the shape of x, in memory of the tape. */
static att_status make_like(att_tape *t, const att_tensor *x, att_dtype type, att_tensor *y)
{
    void *memory = att_arena_alloc(&t->arena, att_size_mul((size_t)att_count(x), att_dtype_size(type)));
    return memory ? att_wrap(y, memory, type, x->rank, x->dim, NULL) : ATT_ERR_MEMORY;
}

/* Keys and values to append to the cache; offsets or NULL: the same number for each sequence. */
typedef struct new_tokens {
    att_cache *cache;
    const att_tensor *k, *v; /* or NULL: none */
    const int64_t *offsets;
} new_tokens;

static att_status append(const new_tokens *n)
{
    const int64_t sequences = att_cache_sequences(n->cache);
    if (!n->k)
        return ATT_OK;
    if (n->offsets)
        return att_cache_append_ragged(n->cache, n->offsets, n->k, n->v);
    const att_tensor k = batched(n->k, sequences), v = batched(n->v, sequences);
    return att_cache_append(n->cache, ATT_ALL_SEQUENCES, &k, &v);
}

static void undo(const new_tokens *n)
{
    const int64_t sequences = att_cache_sequences(n->cache);
    for (int64_t b = 0; n->k && b < sequences; b++) {
        const int64_t count = n->offsets ? n->offsets[b + 1] - n->offsets[b] : n->k->dim[0] / sequences;
        att_cache_truncate(n->cache, b, att_cache_length(n->cache, b) - count);
    }
}

/* Appends and attends, q and out in the plan's type. */
static att_status attend(const att_plan *plan, const new_tokens *n, const att_tensor *q, const att_tensor *out,
                         att_attention_args *a)
{
    const int64_t sequences = att_cache_sequences(n->cache);
    a->q = a->q_offsets ? *q : batched(q, sequences);
    a->out = a->q_offsets ? *out : batched(out, sequences);
    a->cache = n->cache;
    att_status s = append(n);
    if (!s && (s = att_forward(plan, a)))
        undo(n);
    return s;
}

/* Appends and attends, with q and out in f32. */
static att_status attend_converted(att_tape *t, const att_plan *plan, const new_tokens *n, const att_tensor *q,
                                   const att_tensor *out, att_attention_args *a)
{
    const size_t mark = att_arena_mark(&t->arena);
    att_tensor q_converted, out_converted;
    att_status s = make_like(t, q, plan->spec.dtype, &q_converted);
    s = s ? s : make_like(t, out, plan->spec.dtype, &out_converted);
    s = s ? s : att_tensor_convert(t->ctx, q, &q_converted);
    s = s ? s : attend(plan, n, &q_converted, &out_converted, a);
    s = s ? s : att_tensor_convert(t->ctx, &out_converted, out);
    att_arena_release(&t->arena, mark);
    return s;
}

att_var *att_attend_cached(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v, att_cache *cache,
                           const att_attention_args *args)
{
    att_attention_args a;
    if (!q || !att_tape_ready(t) ||
        !att_tape_options_read(t, "attend_cached", &a, sizeof a, args, "att_attention_args"))
        return NULL;
    if (!check(t, plan, (const att_var *[]){q, k, v}, cache, &a))
        return NULL;
    att_var *out = att_tape_var(t, 3, (const int64_t[]){q->value.dim[0], q->value.dim[1], plan->spec.value_dim});
    if (!out)
        return NULL;
    const new_tokens n = {.cache = cache,
                          .k = k ? &k->value : NULL,
                          .v = v ? &v->value : NULL,
                          .offsets = a.k_offsets ? a.k_offsets : a.q_offsets};
    a.k_offsets = NULL;
    const att_status s = plan->spec.dtype == ATT_F32 ? attend(plan, &n, &q->value, &out->value, &a)
                                                     : attend_converted(t, plan, &n, &q->value, &out->value, &a);
    return s ? att_tape_fail(t, s, "attend_cached: %s", att_error(t->ctx)) : out;
}
