/* Traces of sentence models */
#include "model/trace_tokens.h"
#include "sentence/sentence.h"

typedef struct traced {
    const att_sentence *m;
    const int32_t *ids;
    int64_t n;
} traced;

static att_var *apply(const void *self, att_tape *t)
{
    const traced *x = self;
    return att_encoder_apply(t, x->m->encoder, x->ids, (const int64_t[]){0, x->n}, 1, NULL);
}

static att_var *embed(const void *self, att_tape *t, att_var *x)
{
    const traced *of = self;
    return att_sentence_pool(t, of->m, x, (const int64_t[]){0, of->n}, 1);
}

att_status att_sentence_trace(const att_sentence *m, const char *text, size_t bytes, const att_trace_options *options,
                              att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_trace_text of = {.ctx = m->model.ctx,
                               .caller = __func__,
                               .tokenizer = m->tokenizer,
                               .text = text,
                               .bytes = bytes,
                               .max_tokens = m->modules.max_tokens,
                               .truncates = true};
    att_tokens tokens;
    att_status s = att_trace_tokenize(&of, options, &tokens);
    if (s)
        return s;
    const traced self = {m, tokens.ids, tokens.count};
    const att_trace_pass pass = {.ctx = m->model.ctx,
                                 .caller = __func__,
                                 .part = {att_encoder_trace_part(m->encoder, tokens.count)},
                                 .parts = 1,
                                 .info = {.source = tokens.count,
                                          .source_ids = tokens.ids,
                                          .truncated = tokens.truncated,
                                          .output_rows = 1,
                                          .outputs = m->info.hidden},
                                 .apply = apply,
                                 .output = embed,
                                 .output_side = ATT_TRACE_SIDE_ENCODER,
                                 .whole = true};
    s = att_trace_make(&pass, &self, sizeof self, options, out);
    att_tokens_free(m->model.ctx, &tokens);
    return s;
}
