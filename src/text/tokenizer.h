/* The common base of all tokenizers. */
#ifndef ATT_TOKENIZER_H
#define ATT_TOKENIZER_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/bytes.h"

#define ATT_MAX_SPECIAL 16

/* A receiver of tokens, up to a limit. */
typedef struct att_token_sink {
    const att_tokenizer *t;
    int64_t limit;
    size_t capacity;
    att_tokens tokens;
    att_status status;
    const att_encode_options *options;
    bool full;      /* the limit is reached */
    bool truncated; /* a token was not accepted, or an error occurred: the rest of the text can be skipped */
} att_token_sink;

/* Appends tokens. */
void att_token_sink_add(att_token_sink *sink, const int32_t *ids, int64_t n);
/* Reports text [bytes] that becomes the unknown token: character by character, or as a whole. */
void att_token_sink_unknown(const att_token_sink *sink, const char *text, size_t bytes, bool by_characters);
/* Makes att_encode fail with a status whose message is set. */
void att_token_sink_fail(att_token_sink *sink, att_status status);

typedef struct att_tokenizer_kind {
    void (*encode)(att_token_sink *sink, const char *text, size_t bytes);
    void (*decode)(const att_tokenizer *t, const int32_t *ids, int64_t n, att_bytes *text); /* or NULL: not supported */
    const char *(*token)(const att_tokenizer *t, int32_t id);
    void (*free)(att_tokenizer *t); /* frees the whole tokenizer */
} att_tokenizer_kind;

/* The first member of each tokenizer's struct. */
struct att_tokenizer {
    att_ctx *ctx;
    const att_tokenizer_kind *kind;
    int64_t size;                     /* ids are in [0, size) */
    int32_t special[ATT_MAX_SPECIAL]; /* [n_before + n_after]: [CLS] before, [SEP] after the text */
    int64_t n_before, n_after;
};

/* Constructors; *out is NULL on error. */
att_status att_bert_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_marian_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_sentencepiece_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);

#endif
