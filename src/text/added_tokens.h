/* Tokens that are matched in the raw text before anything else: "[MASK]". */
#ifndef ATT_ADDED_TOKENS_H
#define ATT_ADDED_TOKENS_H

#include "attend_util.h"

typedef struct att_added_token {
    const char *text; /* zero-terminated */
    size_t bytes;
    int32_t id;
} att_added_token;

typedef struct att_added_tokens {
    att_ctx *ctx;
    att_added_token *token; /* [count], sorted by their bytes */
    int64_t count;
    bool begins[256]; /* first bytes */
} att_added_tokens;

/* Reserves space for max tokens. */
att_status att_added_tokens_init(att_added_tokens *a, att_ctx *ctx, size_t max);
void att_added_tokens_free(att_added_tokens *a);
/* Adds a token, not empty, whose text must stay valid. */
void att_added_tokens_add(att_added_tokens *a, att_added_token token);
/* To be called after the last addition. */
void att_added_tokens_sort(att_added_tokens *a);
/* The longest token at the start of s [bytes]; NULL: none. */
const att_added_token *att_added_tokens_find(const att_added_tokens *a, const char *s, size_t bytes);

#endif
