/* A tokenizer: what all kinds have, and what each does its own way. */
#ifndef ATT_TOKENIZER_H
#define ATT_TOKENIZER_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/bytes.h"

#define ATT_MAX_SPECIAL 16

/* Where the tokens of a text go, up to a limit. */
typedef struct att_token_sink {
    const att_tokenizer *t;
    int64_t limit;
    size_t capacity;
    att_tokens tokens;
    att_status status;
    bool target;                                                 /* the text is of the target language */
    void (*unknown)(void *user, const char *text, size_t bytes); /* as in att_encode_options */
    void *user;
    bool full; /* no further token has room */
    bool cut;  /* one had none, or there was a failure: the rest of the text need not be looked at */
} att_token_sink;

/* Tokens of the text. */
void att_token_sink_add(att_token_sink *sink, const int32_t *ids, int64_t n);
/* Reports text [bytes] that becomes the unknown token: characters one by one, or the whole. */
void att_token_sink_unknown(const att_token_sink *sink, const char *text, size_t bytes, bool by_characters);
/* What failed, and has its sentence, is what att_encode gives. */
void att_token_sink_fail(att_token_sink *sink, att_status status);

typedef struct att_tokenizer_kind {
    void (*encode)(att_token_sink *sink, const char *text, size_t bytes);
    void (*decode)(const att_tokenizer *t, const int32_t *ids, int64_t n, att_bytes *text); /* or NULL: it cannot */
    const char *(*token)(const att_tokenizer *t, int32_t id);
    void (*free)(att_tokenizer *t); /* all of it */
} att_tokenizer_kind;

/* The first member of each kind's own struct. */
struct att_tokenizer {
    att_ctx *ctx;
    const att_tokenizer_kind *kind;
    int64_t size;                     /* ids are in [0, size) */
    int32_t special[ATT_MAX_SPECIAL]; /* [n_before + n_after]: [CLS] before the text, [SEP] after it */
    int64_t n_before, n_after;
};

/* The kinds; *out is NULL where they fail. */
att_status att_bert_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_marian_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_sentencepiece_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);

#endif
