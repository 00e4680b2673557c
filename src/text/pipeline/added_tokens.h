/* Tokens that are found in the text before anything else: "<|im_start|>". */
#ifndef ATT_ADDED_TOKENS_H
#define ATT_ADDED_TOKENS_H

#include "text/pipeline/step.h"
#include "text/tokenizer.h"
#include "text/trie.h"

typedef struct att_added_token {
    int32_t id;
    bool special;        /* not found in a text whose special tokens are split */
    bool left_out;       /* left out of decoded text: a special token that normalization does not change */
    bool single_word;    /* found only where no letter or digit is next to it */
    bool lstrip, rstrip; /* includes the white space before, after it */
    bool normalized;     /* found in the normalized text, by its own text after normalization */
    char *text;          /* [bytes], zero-terminated; normalized if `normalized` */
    size_t bytes;
} att_added_token;

typedef struct att_added_tokens {
    att_ctx *ctx;
    att_added_token *token; /* [count] */
    size_t count, capacity;
    att_trie trie[2];    /* numbers of the tokens that are found before, after normalization */
    bool begins[2][256]; /* their first bytes */
} att_added_tokens;

/* Reads an item of "added_tokens"; its text is not normalized yet. */
void att_added_token_read(att_settings *s, const json_t *item, att_added_tokens *a);
/* Normalizes the texts of all tokens that were read, and makes the tries. */
att_status att_added_tokens_finish(att_added_tokens *a, const att_steps *normalizers);
void att_added_tokens_free(att_added_tokens *a);
/* Makes pieces of the tokens in the text, before (false) or after normalization, except special ones that overlap
 * `literal`. */
void att_added_tokens_find(const att_added_tokens *a, bool normalized, const att_literals *literal, att_pieces *p);
/* Returns the added token with this id; NULL: none. */
const att_added_token *att_added_token_get(const att_added_tokens *a, int32_t id);

#endif
