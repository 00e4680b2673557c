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
    int64_t max_tokens; /* a longer text is truncated if `truncates`; otherwise the number of tokens must be from 1 to
                         * this */
    bool truncates;
} att_trace_text;

/* Tokenizes the text, or copies the ids of options, if they have any. options or NULL. att_tokens_free frees out. */
att_status att_trace_tokenize(const att_trace_text *text, const att_trace_options *options, att_tokens *out);

#endif
