#include "model/attention_map.h"

#include "attend_util.h"
#include "model/attention_recorder.h"

static att_status apply(const att_map_source *s, const att_tokens *tokens, att_attention_recorder *r)
{
    att_tape *t;
    att_tensor y;
    att_status e = att_tape_new(s->ctx, ATT_OPTIONS(att_tape_config, .hook = att_attention_record, .hook_user = r), &t);
    if (e)
        return e;
    e = att_var_value(t, s->apply(t, s->model, tokens->ids, (const int64_t[]){0, tokens->count}), &y);
    att_tape_free(t);
    return e ? e : r->status;
}

att_status att_map_attention(const att_map_source *s, const char *text, size_t bytes,
                             const att_tokenize_options *options, int64_t layer, int64_t head, att_attention_map *out)
{
    *out = (att_attention_map){0};
    att_attention_map map = {0};
    att_status e = att_attention_check(s->ctx, "layer", layer, 0, s->layers);
    e = e ? e : att_attention_check(s->ctx, "head", head, 0, s->heads);
    e = e ? e : att_tokenize(s->tokenizer, text, bytes, options, &map.tokens);
    if (e)
        return e;
    const size_t count = (size_t)map.tokens.count;
    map.weights = att_alloc(s->ctx, count * count + 1, sizeof *map.weights);
    att_attention_recorder r = {
        .ctx = s->ctx, .layer = layer, .head = head, .weights = map.weights, .count = map.tokens.count};
    e = map.weights ? apply(s, &map.tokens, &r) : ATT_ERR_MEMORY;
    if (e)
        att_attention_map_free(s->ctx, &map);
    else
        *out = map;
    return e;
}

void att_attention_map_free(att_ctx *ctx, att_attention_map *map)
{
    if (!ctx || !map)
        return;
    att_tokens_free(ctx, &map->tokens);
    att_free(ctx, map->weights);
    *map = (att_attention_map){0};
}
