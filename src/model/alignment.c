/* What a translation looks at: its tokens given, all at once, while a tape is watched. */
#include "model/translator.h"

#include <stdio.h>
#include <string.h>

/* Waits for one decoder layer's attention to the source, and adds up the weights of its heads. */
typedef struct look {
    char scope[64];
    int64_t first_head, heads, rows, columns;
    float *head;    /* [rows, columns] of one */
    float *weights; /* [rows, columns] their mean */
    att_status status;
} look;

static void watch(void *user, const att_event *event)
{
    look *l = user;
    if (!event->plan || strcmp(event->scope, l->scope) != 0)
        return;
    for (int64_t h = 0; !l->status && h < l->heads; h++) {
        l->status = att_weights(event->plan, event->args, 0, l->first_head + h, 0, l->rows, l->head);
        for (int64_t i = 0; !l->status && i < l->rows * l->columns; i++)
            l->weights[i] += l->head[i] / (float)l->heads;
    }
}

/* ids [rows]: the target, one token later */
static att_status decode(const att_translator *m, const att_tokens *source, const int32_t *ids, look *l)
{
    const int64_t from[] = {0, l->columns}, to[] = {0, l->rows};
    att_tape *t;
    att_tensor y;
    att_status s = att_tape_new(m->ctx, ATT_OPTIONS(att_tape_config, .watch = watch, .watch_user = l), &t);
    if (s)
        return s;
    att_var *x = att_transformer_encode(t, m->model, source->ids, from, 1);
    s = att_read(t, att_transformer_decode(t, m->model, x, from, ids, to, 1), &y);
    att_tape_free(t);
    return s ? s : l->status;
}

static att_status check(const att_translator *m, const int32_t *ids, int64_t n, int64_t layer, int64_t head)
{
    const att_marian_config *c = att_transformer_config(m->model);
    if (n < 0 || (n > 0 && !ids))
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_translate_alignment: n = %lld needs ids", (long long)n);
    if (layer < -1 || layer >= c->decoder.layers)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "layer %lld, but the decoder's are 0 to %lld", (long long)layer,
                        (long long)c->decoder.layers - 1);
    if (head < -1 || head >= c->decoder.heads)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "head %lld, but the decoder's are 0 to %lld", (long long)head,
                        (long long)c->decoder.heads - 1);
    return ATT_OK;
}

/* Weights of out's tokens */
static att_status weigh(const att_translator *m, int64_t layer, int64_t head, att_alignment *out)
{
    const att_marian_config *c = att_transformer_config(m->model);
    look l = {.first_head = head < 0 ? 0 : head,
              .heads = head < 0 ? c->decoder.heads : 1,
              .rows = out->target.count,
              .columns = out->source.count};
    snprintf(l.scope, sizeof l.scope, "decoder/layer.%lld/cross",
             (long long)(layer < 0 ? c->decoder.layers - 1 : layer));
    const size_t count = (size_t)(l.rows * l.columns);
    int32_t *ids = att_alloc(m->ctx, (size_t)l.rows, sizeof *ids);
    l.head = att_alloc(m->ctx, count, sizeof *l.head);
    l.weights = out->weights = att_calloc(m->ctx, count, sizeof *out->weights);
    att_status s = ids && l.head && l.weights ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        ids[0] = m->generation.search.start;
        memcpy(ids + 1, out->target.ids, (size_t)(l.rows - 1) * sizeof *ids);
        s = decode(m, &out->source, ids, &l);
    }
    att_free(m->ctx, l.head);
    att_free(m->ctx, ids);
    return s;
}

att_status att_translate_alignment(const att_translator *m, const char *text, size_t bytes, const int32_t *ids,
                                   int64_t n, int64_t layer, int64_t head, att_alignment *out)
{
    att_alignment a = {0};
    *out = a;
    att_status s = check(m, ids, n, layer, head);
    s = s ? s : att_encode(m->tokenizer, text, bytes, NULL, &a.source);
    if (s)
        return s;
    a.target.ids = att_alloc(m->ctx, (size_t)n + 1, sizeof *a.target.ids);
    s = a.target.ids ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        if (n > 0)
            memcpy(a.target.ids, ids, (size_t)n * sizeof *ids);
        a.target.ids[n] = m->generation.search.end;
        a.target.count = n + 1;
        s = weigh(m, layer, head, &a);
    }
    if (s)
        att_alignment_free(m, &a);
    else
        *out = a;
    return s;
}

void att_alignment_free(const att_translator *m, att_alignment *a)
{
    att_tokens_free(m->tokenizer, &a->source);
    att_tokens_free(m->tokenizer, &a->target);
    att_free(m->ctx, a->weights);
    *a = (att_alignment){0};
}
