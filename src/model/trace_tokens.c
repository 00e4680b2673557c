/* The tokens of a trace: those of a text, or given by its options. */
#include "model/trace_tokens.h"
#include "attend_util.h"

#include <string.h>

/* Copies the options' ids. */
static att_status copy_ids(const att_trace_text *x, const att_trace_options *o, att_tokens *out)
{
    if (x->text || x->bytes)
        return att_fail(x->ctx, ATT_ERR_ARGUMENT, "%s: text and options.ids are both given", x->caller);
    if (o->n_ids < 1 || o->n_ids > x->max_tokens)
        return att_fail(x->ctx, ATT_ERR_ARGUMENT, "%s: options.n_ids is %lld, not in [1, %lld]", x->caller,
                        (long long)o->n_ids, (long long)x->max_tokens);
    out->ids = att_alloc(x->ctx, (size_t)o->n_ids, sizeof *out->ids);
    if (!out->ids)
        return ATT_ERR_MEMORY;
    memcpy(out->ids, o->ids, (size_t)o->n_ids * sizeof *out->ids);
    out->count = o->n_ids;
    return ATT_OK;
}

static att_status tokenize(const att_trace_text *x, att_tokens *out)
{
    if (!x->text)
        return att_fail(x->ctx, ATT_ERR_ARGUMENT, "%s: text is NULL, and so is options.ids", x->caller);
    att_status s = att_tokenize(x->tokenizer, x->text, x->bytes,
                                ATT_OPTIONS(att_tokenize_options, .max_tokens = x->truncates ? x->max_tokens : 0), out);
    if (!s && (out->count < 1 || out->count > x->max_tokens)) {
        s = att_fail(x->ctx, ATT_ERR_ARGUMENT, "%s: the text has %lld tokens, but the model has 1 to %lld", x->caller,
                     (long long)out->count, (long long)x->max_tokens);
        att_tokens_free(x->ctx, out);
    }
    return s;
}

att_status att_trace_tokenize(const att_trace_text *text, const att_trace_options *options, att_tokens *out)
{
    att_trace_options o;
    *out = (att_tokens){0};
    const att_status s = att_options_read(&o, sizeof o, options, "att_trace_options");
    if (s)
        return s;
    if (!o.ids && o.n_ids)
        return att_fail(text->ctx, ATT_ERR_ARGUMENT, "%s: options.ids is NULL, but n_ids is %lld", text->caller,
                        (long long)o.n_ids);
    return o.ids ? copy_ids(text, &o, out) : tokenize(text, out);
}
