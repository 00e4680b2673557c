/* Alignment of a translation: its tokens are decoded in one pass while a hook records attention weights. */
#include "model/attention_recorder.h"
#include "translate/translator.h"

#include <string.h>

static att_status decode(const att_translator *m, const att_alignment *a, att_source_recorder *l)
{
    const int64_t from[] = {0, a->source.count}, to[] = {0, a->target.count};
    const att_sequence_pairs pair = {.size = sizeof pair,
                                     .n = 1,
                                     .source = a->source.ids,
                                     .source_offsets = from,
                                     .target = a->target.ids,
                                     .target_offsets = to};
    att_tape *t;
    att_tensor y;
    att_status s = att_tape_new(m->ctx, ATT_OPTIONS(att_tape_config, .hook = att_source_record, .hook_user = l), &t);
    if (s)
        return s;
    s = att_var_value(t, att_encoder_decoder_logits(t, m->model, &pair, NULL), &y);
    att_tape_free(t);
    return s ? s : l->status;
}

static att_status check(const att_translator *m, const int32_t *ids, int64_t n, int64_t layer, int64_t head)
{
    const att_encoder_decoder_info *i = &m->model->info;
    if (n < 0 || (n > 0 && !ids))
        return att_fail(m->ctx, ATT_ERR_ARGUMENT,
                        n < 0 ? "att_translate_alignment: n is %lld, less than 0"
                              : "att_translate_alignment: ids is NULL, but n is %lld",
                        (long long)n);
    if (i->attention_layers == 0)
        return att_fail(m->ctx, ATT_ERR_UNSUPPORTED,
                        "there is no alignment: the model has no attention, but one fixed context of a text");
    if (layer < -1 || layer >= i->attention_layers)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "layer %lld, but the decoder's are 0 to %lld", (long long)layer,
                        (long long)i->attention_layers - 1);
    if (head < -1 || head >= i->attention_heads)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "head %lld, but the decoder's are 0 to %lld", (long long)head,
                        (long long)i->attention_heads - 1);
    return ATT_OK;
}

/* Computes the weights of out's tokens. */
static att_status compute_weights(const att_translator *m, int64_t layer, int64_t head, att_alignment *out)
{
    const att_encoder_decoder_info *i = &m->model->info;
    const att_nn_name scope =
        att_architecture_of(m->model)->scope_of_attention(layer < 0 ? i->attention_layers - 1 : layer);
    att_source_recorder l = {.scope = scope.text,
                             .first_head = head < 0 ? 0 : head,
                             .heads = head < 0 ? i->attention_heads : 1,
                             .columns = out->source.count};
    const size_t count = (size_t)(out->target.count * l.columns);
    l.head = att_alloc(m->ctx, count, sizeof *l.head);
    l.weights = out->weights = att_calloc(m->ctx, count, sizeof *out->weights);
    const att_status s = l.head && l.weights ? decode(m, out, &l) : ATT_ERR_MEMORY;
    att_free(m->ctx, l.head);
    return s;
}

att_status att_translate_alignment(const att_translator *m, const char *text, size_t bytes, const int32_t *ids,
                                   int64_t n, int64_t layer, int64_t head, att_alignment *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_alignment a = {0};
    *out = a;
    att_status s = check(m, ids, n, layer, head);
    s = s ? s : att_tokenize(m->tokenizer, text, bytes, NULL, &a.source);
    if (s)
        return s;
    a.target.ids = att_alloc(m->ctx, (size_t)n + 1, sizeof *a.target.ids);
    s = a.target.ids ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        if (n > 0)
            memcpy(a.target.ids, ids, (size_t)n * sizeof *ids);
        a.target.ids[n] = m->generation.search.end;
        a.target.count = n + 1;
        s = compute_weights(m, layer, head, &a);
    }
    if (s)
        att_alignment_free(m->ctx, &a);
    else
        *out = a;
    return s;
}

void att_alignment_free(att_ctx *ctx, att_alignment *a)
{
    if (!ctx || !a)
        return;
    att_tokens_free(ctx, &a->source);
    att_tokens_free(ctx, &a->target);
    att_free(ctx, a->weights);
    *a = (att_alignment){0};
}
