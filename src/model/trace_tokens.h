/* The tokens of a trace: of a text, or those that its options have. */
#ifndef ATT_MODEL_TRACE_TOKENS_H
#define ATT_MODEL_TRACE_TOKENS_H

#include "attend_text.h"
#include "attend_trace.h"

typedef struct att_trace_text {
    att_ctx *ctx;
    const char *caller; /* for errors */
    const att_tokenizer *tokenizer;
    const char *text; /* [bytes] */
    size_t bytes;
    int64_t max_tokens; /* a longer text is truncated, if `truncates`; other tokens than 1 to these are an error */
    bool truncates;
} att_trace_text;

/* options or NULL: the text's. out: att_tokens_free frees it. */
att_status att_trace_tokenize(const att_trace_text *text, const att_trace_options *options, att_tokens *out);

#endif
