/* Makes the text of generated tokens one by one: whole characters, up to the first stop string. */
#ifndef ATT_LANGUAGE_TEXT_STREAM_H
#define ATT_LANGUAGE_TEXT_STREAM_H

#include "attend_text.h"
#include "io/bytes.h"

enum { ATT_STREAM_CONTEXT = 8 }; /* tokens of the prompt with which the first one is decoded */

typedef struct att_text_stream {
    const att_tokenizer *tokenizer;
    const char *const *stop; /* [n_stop], none empty */
    int64_t n_stop;
    att_bytes text; /* complete characters without a stop string */
    size_t sent;    /* bytes of the text that were delivered; set by the caller */
    size_t ready;   /* at least `sent`: bytes that may be delivered, because they are not the beginning of a stop
                     * string */
    bool stopped;   /* the text has ended at a stop string */
    /* The last tokens, because the text of a token depends on those before it. The text of the first `decoded` ones is
     * complete. */
    att_bytes window; /* of int32_t */
    int64_t decoded;
} att_text_stream;

/* Begins a text. ids [n]: the prompt; its last tokens are kept. */
void att_text_stream_begin(att_text_stream *s, att_ctx *ctx, const att_tokenizer *t, const int32_t *ids, int64_t n);
/* Appends the next token, or none (-1). last: all the rest of the text is ready. */
att_status att_text_stream_add(att_text_stream *s, int32_t id, bool last);
void att_text_stream_free(att_text_stream *s);

#endif
