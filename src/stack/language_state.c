/* The state of decoding with a language model: a cache of keys and values for each layer. */
#include "stack/language_model.h"

struct att_language_state {
    att_ctx *ctx;
    const att_language_model *model;
    int64_t layers;
    att_cache **cache; /* [layers] */
    att_plan *plan;    /* of all layers, in the caches' dtype; NULL: f32, the layers' own */
};

att_status att_language_state_new(const att_language_model *m, int64_t n, att_dtype dtype, att_language_state **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    if (dtype != ATT_F32 && dtype != ATT_F16 && dtype != ATT_BF16)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "att_language_state_new: dtype is %s, not f32, f16 or bf16",
                        att_dtype_name(dtype));
    att_language_state *s = att_calloc(ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (att_language_state){.ctx = ctx, .model = m, .layers = m->info.layers};
    s->cache = att_calloc(ctx, (size_t)s->layers, sizeof(att_cache *));
    att_status e = s->cache ? ATT_OK : ATT_ERR_MEMORY;
    if (!e && dtype != ATT_F32)
        e = att_language_model_plan(m, dtype, &s->plan);
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_new(s->plan ? s->plan : m->layer[i]->attention->plan, n, &s->cache[i]);
    if (e)
        att_language_state_free(s);
    else
        *out = s;
    return e;
}

void att_language_state_free(att_language_state *s)
{
    if (!s)
        return;
    for (int64_t i = 0; s->cache && i < s->layers; i++)
        att_cache_free(s->cache[i]);
    att_plan_free(s->plan);
    att_free(s->ctx, s->cache);
    att_free(s->ctx, s);
}

size_t att_language_state_bytes(const att_language_state *s)
{
    size_t bytes = 0;
    for (int64_t i = 0; s && i < s->layers; i++)
        bytes += att_cache_bytes(s->cache[i]);
    return bytes;
}

bool att_language_state_exact(const att_language_state *s) { return s->plan == NULL; }

int64_t att_language_state_length(const att_language_state *s, int64_t sequence)
{
    return s ? att_cache_length(s->cache[0], sequence) : -1;
}

att_status att_language_state_truncate(att_language_state *s, int64_t sequence, int64_t length)
{
    att_status e = att_require(__func__, ATT_NAMED({"s", s})) ? ATT_ERR_ARGUMENT : ATT_OK;
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_truncate(s->cache[i], sequence, length);
    return e;
}

att_status att_language_state_select(att_language_state *s, int64_t n, const int64_t *from)
{
    att_status e = att_require(__func__, ATT_NAMED({"s", s}, {"from", from})) ? ATT_ERR_ARGUMENT : ATT_OK;
    for (int64_t i = 0; !e && i < s->layers; i++)
        e = att_cache_select(s->cache[i], n, from);
    return e;
}

bool att_language_state_fits(const att_language_state *s, const att_language_model *m) { return s->model == m; }

int64_t att_language_state_sequences(const att_language_state *s) { return att_cache_sequences(s->cache[0]); }

att_nn_layer_call att_language_state_call(const att_language_state *s, int64_t layer, const att_attention_args *args)
{
    return (att_nn_layer_call){.size = sizeof(att_nn_layer_call),
                               .args = args,
                               .cache = s ? s->cache[layer] : NULL,
                               .plan = s ? s->plan : NULL};
}
