/* Traces text classifiers. */
#include "classifier/classifier.h"
#include "model/trace_tokens.h"

typedef struct traced {
    const att_text_classifier *m;
    const int32_t *ids, *type_ids;
    int64_t n;
} traced;

static att_var *apply(const void *self, att_tape *t)
{
    const traced *x = self;
    return att_encoder_apply(t, x->m->encoder, x->ids, (const int64_t[]){0, x->n}, 1,
                             ATT_OPTIONS(att_encoder_options, .type_ids = x->type_ids));
}

static att_var *logits(const void *self, att_tape *t, att_var *x)
{
    const traced *of = self;
    return att_text_head_apply(t, &of->m->config.head, att_encoder_output(t, of->m->encoder, x),
                               &(const att_text_head_call){.offsets = (const int64_t[]){0, of->n}, .n = 1});
}

/* Tokenizes a text or a pair, or copies given ids. */
static att_status tokenize(const att_text_classifier *m, const att_trace_text *of, const char *pair, size_t pair_bytes,
                           const att_trace_options *options, att_tokens *out)
{
    att_trace_options o;
    if (!pair)
        return att_trace_tokenize(of, options, out);
    *out = (att_tokens){0};
    const att_status s = att_options_read(&o, sizeof o, options, "att_trace_options");
    if (s)
        return s;
    if (o.ids || o.n_ids || !of->text)
        return att_fail(of->ctx, ATT_ERR_ARGUMENT, "%s: %s", of->caller,
                        of->text ? "pair and options.ids are both given" : "text is NULL, but pair is not");
    return att_tokenize_pair(m->tokenizer, of->text, of->bytes, pair, pair_bytes,
                             ATT_OPTIONS(att_tokenize_options, .max_tokens = of->max_tokens), out);
}

att_status att_text_classifier_trace(const att_text_classifier *m, const char *text, size_t bytes, const char *pair,
                                     size_t pair_bytes, const att_trace_options *options, att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (m->probe)
        return att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                        "%s: the model is a probe of the embeddings of a sentence model, which att_sentence_open opens "
                        "and att_sentence_trace traces",
                        __func__);
    const att_trace_text of = {.ctx = m->model.ctx,
                               .caller = __func__,
                               .tokenizer = m->tokenizer,
                               .text = text,
                               .bytes = bytes,
                               .max_tokens = m->config.max_tokens,
                               .truncates = true};
    att_tokens tokens;
    att_status s = tokenize(m, &of, pair, pair_bytes, options, &tokens);
    if (s)
        return s;
    const traced self = {m, tokens.ids, att_text_classifier_has_types(m) ? tokens.type_ids : NULL, tokens.count};
    const att_trace_pass pass = {.ctx = m->model.ctx,
                                 .compute = m->model.options.compute,
                                 .caller = __func__,
                                 .part = {att_encoder_trace_part(m->encoder, tokens.count)},
                                 .parts = 1,
                                 .info = {.source = tokens.count,
                                          .source_ids = tokens.ids,
                                          .truncated = tokens.truncated,
                                          .output_rows = 1,
                                          .outputs = m->config.head.labels},
                                 .apply = apply,
                                 .output = logits,
                                 .output_side = ATT_TRACE_SIDE_ENCODER,
                                 .whole = true};
    s = att_trace_make(&pass, &self, sizeof self, options, out);
    att_tokens_free(m->model.ctx, &tokens);
    return s;
}
