/* WordPiece: greedy longest-match-first segmentation of words, left to right (Wu et al. 2016). */
#ifndef ATT_WORDPIECE_H
#define ATT_WORDPIECE_H

#include "io/bytes.h"
#include "text/hash_table.h"

#define ATT_MAX_WORD 1000 /* characters; longer words are unknown */
#define ATT_MAX_PREFIX 32
#define ATT_NO_TOKEN ATT_NO_ITEM
#define ATT_MAX_VOCABULARY (1 << 22)
#define ATT_MAX_PROBES 256 /* known vocabularies need 20 at most */

typedef struct att_vocabulary_token {
    uint32_t start, bytes; /* in att_vocabulary.text */
} att_vocabulary_token;

/* Tokens by id, and a hash table from text to id. An id may have no token. */
typedef struct att_vocabulary {
    att_ctx *ctx;
    int64_t size;                 /* ids are in [0, size) */
    att_vocabulary_token *tokens; /* [size]; bytes 0: no token */
    char *text;                   /* [used]: all tokens, each followed by a zero byte */
    size_t used;
    att_hash_table ids;          /* each token is in one of the first ATT_MAX_PROBES slots of its hash */
    size_t longest;              /* bytes of the longest token */
    char prefix[ATT_MAX_PREFIX]; /* of tokens inside a word: "##" */
    size_t prefix_bytes;
    int32_t unknown; /* token of words that cannot be segmented */
} att_vocabulary;

/* Reserves space for ids in [0, size), size <= ATT_MAX_VOCABULARY, and for tokens of text_bytes bytes in all.
 * After an error nothing needs to be freed. */
att_status att_vocabulary_init(att_vocabulary *v, att_ctx *ctx, int64_t size, size_t text_bytes);
void att_vocabulary_free(att_vocabulary *v);
/* Sets the token of an unused id. The token must not be empty, and the caller has reserved space. WordPiece does not
 * match it. */
void att_vocabulary_set(att_vocabulary *v, int32_t id, const char *token, size_t bytes);
/* Sets the token of an unused id, which WordPiece matches; the token must be new. False: too many hash collisions (a
 * vocabulary made to slow down searches). */
bool att_vocabulary_add(att_vocabulary *v, int32_t id, const char *token, size_t bytes);
/* Returns the token of an id, zero-terminated; NULL: none. */
const char *att_vocabulary_get(const att_vocabulary *v, int64_t id);
/* Returns the token of an id, which may have zero bytes; data NULL: none. */
att_byte_view att_vocabulary_view(const att_vocabulary *v, int64_t id);
/* Returns the id of a token, or ATT_NO_TOKEN. */
int32_t att_vocabulary_find(const att_vocabulary *v, const char *token, size_t bytes);

/* Returns whether the text is a token, at the start of a word or inside one. */
bool att_wordpiece_has(const att_vocabulary *v, const char *text, size_t bytes);

/* Segments word [bytes], UTF-8 of at most ATT_MAX_WORD characters, into ids [at most bytes]; returns their number. */
int att_wordpiece(const att_vocabulary *v, const char *word, size_t bytes, int32_t *ids);

#endif
