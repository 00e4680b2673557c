/* Traces language models. */
#include "language/text_generator.h"
#include "model/trace.h"
#include "model/trace_tokens.h"
#include "stack/language_model.h"

typedef struct traced {
    const att_language_model *m;
    const int32_t *ids;
    int64_t n;
} traced;

static att_var *apply(const void *self, att_tape *t)
{
    const traced *x = self;
    return att_language_model_apply(t, x->m, x->ids, (const int64_t[]){0, x->n}, 1, NULL,
                                    ATT_OPTIONS(att_language_model_options, .last_only = true));
}

static att_var *logits(const void *self, att_tape *t, att_var *x)
{
    return att_language_model_head(t, ((const traced *)self)->m, x);
}

att_status att_language_trace(const att_text_generator *g, const char *text, size_t bytes,
                              const att_trace_options *options, att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"g", g}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_trace_text of = {.ctx = g->ctx,
                               .caller = __func__,
                               .tokenizer = g->tokenizer,
                               .text = text,
                               .bytes = bytes,
                               .max_tokens = g->info.max_positions};
    att_tokens tokens;
    att_status s = att_trace_tokenize(&of, options, &tokens);
    if (s)
        return s;
    const traced self = {g->model, tokens.ids, tokens.count};
    const att_trace_pass pass = {.ctx = g->ctx,
                                 .compute = g->model->model.options.compute,
                                 .caller = __func__,
                                 .part = {att_language_trace_part(g->model, tokens.count)},
                                 .parts = 1,
                                 .info = {.target = tokens.count,
                                          .target_ids = tokens.ids,
                                          .output_rows = tokens.count,
                                          .outputs = g->info.vocabulary},
                                 .apply = apply,
                                 .output = logits,
                                 .output_side = ATT_TRACE_SIDE_DECODER};
    s = att_trace_make(&pass, &self, sizeof self, options, out);
    att_tokens_free(g->ctx, &tokens);
    return s;
}
