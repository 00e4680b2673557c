/* Traces sentence models. */
#include "model/trace_tokens.h"
#include "sentence/sentence.h"

typedef struct traced {
    const att_sentence *m;
    const int32_t *ids;
    int64_t n, prompt;
} traced;

static att_var *apply(const void *self, att_tape *t)
{
    const traced *of = self;
    const att_texts texts = {.ids = of->ids, .offsets = (const int64_t[]){0, of->n}, .n = 1};
    return of->m->backbone.kind->tokens(t, &of->m->backbone, &texts);
}

static att_var *embed(const void *self, att_tape *t, att_var *x)
{
    const traced *of = self;
    const att_texts texts = {.offsets = (const int64_t[]){0, of->n}, .n = 1, .prompt = of->prompt};
    if (of->m->backbone.kind->finish)
        x = of->m->backbone.kind->finish(t, &of->m->backbone, x);
    return att_sentence_truncate(t, of->m, att_modules_apply(t, &of->m->modules, &texts, x, NULL), of->m->dim);
}

/* Makes the trace of the text, or of options.ids. */
static att_status trace(const att_sentence *m, const char *caller, const att_trace_text *text, int64_t prompt,
                        const att_trace_options *options, att_trace **out)
{
    att_tokens tokens;
    att_status s = att_trace_tokenize(text, options, &tokens);
    if (s)
        return s;
    const traced self = {m, tokens.ids, tokens.count, text->text ? prompt : 0};
    const att_trace_part part = m->backbone.kind->trace(&m->backbone, tokens.count);
    const bool decoder = part.side == ATT_TRACE_SIDE_DECODER;
    const att_trace_pass pass = {.ctx = m->model.ctx,
                                 .compute = m->model.options.compute,
                                 .caller = caller,
                                 .part = {part},
                                 .parts = 1,
                                 .info = {.source = decoder ? 0 : tokens.count,
                                          .source_ids = decoder ? NULL : tokens.ids,
                                          .target = decoder ? tokens.count : 0,
                                          .target_ids = decoder ? tokens.ids : NULL,
                                          .truncated = tokens.truncated,
                                          .output_rows = 1,
                                          .outputs = m->dim},
                                 .apply = apply,
                                 .output = embed,
                                 .output_side = part.side,
                                 .whole = true};
    s = att_trace_make(&pass, &self, sizeof self, options, out);
    att_tokens_free(m->model.ctx, &tokens);
    return s;
}

att_status att_sentence_trace(const att_sentence *m, const char *text, size_t bytes, const char *prompt,
                              const att_trace_options *options, att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_trace_text of = {.ctx = m->model.ctx,
                         .caller = __func__,
                         .tokenizer = m->backbone.tokenizer,
                         .text = text,
                         .bytes = bytes,
                         .max_tokens = m->max_tokens,
                         .truncates = true};
    att_prompted prompted = {0};
    int64_t tokens;
    if (!m->backbone.kind->trace)
        return att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED, "%s: the model has no attention", __func__);
    if (prompt && !text)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "%s: prompt is given, but text is NULL", __func__);
    att_status s = att_sentence_choose_prompt(m, __func__, prompt, NULL, &prompt);
    s = s ? s : att_sentence_prompt_tokens(m, prompt, &tokens);
    if (!s && text && *prompt)
        s = att_prompted_make(m->model.ctx, 1, &text, &bytes, prompt, &prompted);
    if (prompted.text) {
        of.text = *prompted.text;
        of.bytes = *prompted.bytes;
    }
    s = s ? s : trace(m, __func__, &of, tokens, options, out);
    att_free(m->model.ctx, prompted.text);
    return s;
}
