/* Traces translations. The tokens of a translation are decoded in one pass. */
#include "model/trace_tokens.h"
#include "translate/translator.h"

#include <string.h>

/* The tokens of a translation, as the decoder's input. Ids and offsets must be valid until the model has been
 * applied. */
typedef struct forced {
    const att_encoder_decoder *m;
    att_sequence_pairs pair;
} forced;

static att_var *output(const void *self, att_tape *t, att_var *x)
{
    const forced *f = self;
    return att_architecture_of(f->m)->output(t, f->m, x);
}

static att_var *apply(const void *self, att_tape *t)
{
    const forced *f = self;
    return att_encoder_decoder_states(t, f->m, &f->pair, &(const att_loss_options){.size = sizeof(att_loss_options)});
}

/* Applies a model whose decoder has no hidden states. */
static att_var *apply_all(const void *self, att_tape *t) { return output(self, t, apply(self, t)); }

static att_status check(const att_translator *m, const int32_t *target, int64_t n)
{
    static const char caller[] = "att_translator_trace";
    const att_encoder_decoder_info *i = &m->model->info;
    if (n < 0 || (n > 0 && !target))
        return att_fail(m->ctx, ATT_ERR_ARGUMENT,
                        n < 0 ? "%s: n is %lld, less than 0" : "%s: target is NULL, but n is %lld", caller,
                        (long long)n);
    if (i->attention_layers == 0)
        return att_fail(m->ctx, ATT_ERR_UNSUPPORTED,
                        "there is no alignment: the model has no attention, but one fixed context of a text");
    return n < i->max_positions ? ATT_OK
                                : att_fail(m->ctx, ATT_ERR_ARGUMENT,
                                           "%s: target has %lld tokens and eos, but the model has %lld positions",
                                           caller, (long long)n, (long long)i->max_positions);
}

/* Traces a pair. Source and target are complete, including eos. */
static att_status trace(const att_translator *m, const att_tokens *source, const int32_t *target, int64_t n,
                        const att_trace_options *options, att_trace **out)
{
    const int64_t from[] = {0, source->count}, to[] = {0, n};
    const forced self = {m->model,
                         {.size = sizeof self.pair,
                          .n = 1,
                          .source = source->ids,
                          .source_offsets = from,
                          .target = target,
                          .target_offsets = to}};
    att_trace_pass pass = {.ctx = m->ctx,
                           .compute = m->model->model.options.compute,
                           .caller = "att_translator_trace",
                           .info = {.source = source->count,
                                    .target = n,
                                    .source_ids = source->ids,
                                    .target_ids = target,
                                    .shifted = true,
                                    .output_rows = n,
                                    .outputs = m->model->info.target_vocabulary},
                           .apply = apply_all,
                           .output_side = ATT_TRACE_SIDE_DECODER};
    att_architecture_of(m->model)->trace(m->model, &pass);
    for (int i = 0; i < pass.parts; i++)
        if (pass.part[i].side == ATT_TRACE_SIDE_DECODER) {
            pass.apply = apply;
            pass.output = output;
        }
    return att_trace_make(&pass, &self, sizeof self, options, out);
}

att_status att_translator_trace(const att_translator *m, const char *text, size_t bytes, const int32_t *target,
                                int64_t n, const att_trace_options *options, att_trace **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_trace_text of = {.ctx = m->ctx,
                               .caller = __func__,
                               .tokenizer = m->tokenizer,
                               .text = text,
                               .bytes = bytes,
                               .max_tokens = m->model->info.max_positions};
    att_tokens source;
    att_status s = check(m, target, n);
    s = s ? s : att_trace_tokenize(&of, options, &source);
    if (s)
        return s;
    int32_t *whole = att_alloc(m->ctx, (size_t)n + 1, sizeof *whole);
    s = whole ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        if (n > 0)
            memcpy(whole, target, (size_t)n * sizeof *whole);
        whole[n] = m->generation.search.end;
        s = trace(m, &source, whole, n + 1, options, out);
    }
    att_free(m->ctx, whole);
    att_tokens_free(m->ctx, &source);
    return s;
}
