#include "model/attention_map.h"

#include "attend_util.h"

typedef struct recorder {
    int64_t layer, head; /* layer counts down to 0 */
    float *weights;      /* [count, count] */
    int64_t count;
    att_status status;
} recorder;

static void record(void *user, const att_tape_event *event)
{
    recorder *r = user;
    if (event->plan && r->layer-- == 0)
        r->status = att_weights(event->plan, event->args, 0, r->head, 0, r->count, r->weights);
}

static att_status apply(const att_map_source *s, const att_tokens *tokens, recorder *r)
{
    att_tape *t;
    att_tensor y;
    att_status e = att_tape_new(s->ctx, ATT_OPTIONS(att_tape_config, .hook = record, .hook_user = r), &t);
    if (e)
        return e;
    e = att_var_value(t, s->apply(t, s->model, tokens->ids, (const int64_t[]){0, tokens->count}), &y);
    att_tape_free(t);
    return e ? e : r->status;
}

att_status att_map_attention(const att_map_source *s, const char *text, size_t bytes, const att_encode_options *options,
                             int64_t layer, int64_t head, att_attention_map *out)
{
    *out = (att_attention_map){0};
    if (layer < 0 || layer >= s->layers)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "layer %lld, but the model's are 0 to %lld", (long long)layer,
                        (long long)s->layers - 1);
    if (head < 0 || head >= s->heads)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "head %lld, but the model's are 0 to %lld", (long long)head,
                        (long long)s->heads - 1);
    att_attention_map map = {0};
    att_status e = att_encode(s->tokenizer, text, bytes, options, &map.tokens);
    if (e)
        return e;
    const size_t count = (size_t)map.tokens.count;
    map.weights = att_alloc(s->ctx, count * count + 1, sizeof *map.weights);
    recorder r = {.layer = layer, .head = head, .weights = map.weights, .count = map.tokens.count};
    e = map.weights ? apply(s, &map.tokens, &r) : ATT_ERR_MEMORY;
    if (e)
        att_map_free(s, &map);
    else
        *out = map;
    return e;
}

void att_map_free(const att_map_source *s, att_attention_map *map)
{
    att_tokens_free(s->tokenizer, &map->tokens);
    att_free(s->ctx, map->weights);
    *map = (att_attention_map){0};
}
