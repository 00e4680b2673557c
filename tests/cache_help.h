/* Tensors of keys and values, and caches of them. */
#ifndef CACHE_HELP_H
#define CACHE_HELP_H

#include "attention_help.h"

/* Without its first dimension: that of index i. */
static inline att_tensor sequence_of(att_tensor t, int64_t i)
{
    t = slice(t, 0, i, 1);
    t.rank--;
    memmove(t.dim, t.dim + 1, sizeof t.dim - sizeof *t.dim);
    memmove(t.stride, t.stride + 1, sizeof t.stride - sizeof *t.stride);
    return t;
}

static inline void must(att_ctx *ctx, att_status e)
{
    if (e)
        fail_msg("%s", att_error(ctx));
}

/* Keys and values [first, first + n) of all sequences, of tensors [B, kv_heads, T, dim]. */
static inline void append(att_ctx *ctx, att_cache *c, const att_attention_args *a, int64_t first, int64_t n)
{
    const att_tensor k = slice(a->k, 2, first, n), v = slice(a->v, 2, first, n);
    must(ctx, att_cache_append(c, ATT_ALL_SEQUENCES, &k, &v));
}

/* The same of one sequence. */
static inline void append_one(att_ctx *ctx, att_cache *c, const att_attention_args *a, int64_t b, int64_t first,
                              int64_t n)
{
    const att_tensor k = sequence_of(slice(a->k, 2, first, n), b), v = sequence_of(slice(a->v, 2, first, n), b);
    must(ctx, att_cache_append(c, b, &k, &v));
}

static inline att_cache *cache_of(att_ctx *ctx, const att_plan *plan, int64_t sequences)
{
    att_cache *c = NULL;
    must(ctx, att_cache_new(plan, sequences, &c));
    return c;
}

/* The call with a cache in place of its keys and values. */
static inline att_attention_args with_cache(att_attention_args a, const att_cache *c)
{
    a.k = a.v = (att_tensor){0};
    a.k_lengths = NULL;
    a.cache = c;
    return a;
}

#endif
