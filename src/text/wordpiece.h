/* WordPiece: a word is cut into the longest pieces that the vocabulary has, from left to right. (Wu et al. 2016) */
#ifndef ATT_WORDPIECE_H
#define ATT_WORDPIECE_H

#include "text/hash_table.h"

#define ATT_MAX_WORD 1000 /* characters of the longest word that is looked at */
#define ATT_MAX_PREFIX 32
#define ATT_NO_TOKEN ATT_NO_ITEM
#define ATT_MAX_VOCABULARY (1 << 22)
#define ATT_MAX_PROBES 256 /* the real vocabularies need 20 at most */

typedef struct att_vocabulary_token {
    uint32_t start, bytes; /* in att_vocabulary.text */
} att_vocabulary_token;

/* Tokens by id, and a hash table to find the id. An id may have no token. */
typedef struct att_vocabulary {
    att_ctx *ctx;
    int64_t size;                 /* ids are in [0, size) */
    att_vocabulary_token *tokens; /* [size]; bytes 0: no token has this id */
    char *text;                   /* [used]: all tokens, each followed by a zero byte */
    size_t used;
    att_hash_table ids;          /* of tokens, each in one of the first ATT_MAX_PROBES slots of its hash */
    size_t longest;              /* bytes of the longest token */
    char prefix[ATT_MAX_PREFIX]; /* of pieces that continue a word: "##" */
    size_t prefix_bytes;
    int32_t unknown; /* the token of words that cannot be cut */
} att_vocabulary;

/* Room for ids in [0, size), size <= ATT_MAX_VOCABULARY, and for tokens of text_bytes bytes in all, zero bytes not
 * counted. On failure nothing need be freed. */
att_status att_vocabulary_init(att_vocabulary *v, att_ctx *ctx, int64_t size, size_t text_bytes);
void att_vocabulary_free(att_vocabulary *v);
/* Gives a free id its token, which is not empty and for which there is room; WordPiece does not use it. */
void att_vocabulary_set(att_vocabulary *v, int32_t id, const char *token, size_t bytes);
/* The same, for WordPiece to use; the token must not be there yet. False: too many others have the same hash, so the
 * tokens were made for slow searches. */
bool att_vocabulary_add(att_vocabulary *v, int32_t id, const char *token, size_t bytes);
/* The token of an id; NULL: none has it. */
const char *att_vocabulary_get(const att_vocabulary *v, int64_t id);
/* The id of a token that was added, else ATT_NO_TOKEN. */
int32_t att_vocabulary_find(const att_vocabulary *v, const char *token, size_t bytes);

/* Is there a token of this text, at the beginning of a word or inside one? */
bool att_wordpiece_has(const att_vocabulary *v, const char *text, size_t bytes);

/* Cuts word[bytes], UTF-8 of at most ATT_MAX_WORD characters, into ids[bytes at most]; returns how many. */
int att_wordpiece(const att_vocabulary *v, const char *word, size_t bytes, int32_t *ids);

#endif
