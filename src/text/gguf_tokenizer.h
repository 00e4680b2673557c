/* The tokenizer of a .gguf file as the files of a folder describe it, tokenizer.json and tokenizer_config.json. */
#ifndef ATT_TEXT_GGUF_TOKENIZER_H
#define ATT_TEXT_GGUF_TOKENIZER_H

#include "io/gguf.h"
#include "text/tokenizer_file.h"

/* Kinds of tokens */
enum {
    ATT_GGUF_NORMAL = 1,
    ATT_GGUF_UNKNOWN = 2,
    ATT_GGUF_CONTROL = 3,
    ATT_GGUF_USER_DEFINED = 4,
    ATT_GGUF_UNUSED = 5,
    ATT_GGUF_BYTE = 6
};

/* Reads the vocabulary, whose texts belong to the file -> list; tokenizer.json without it -> *root. Errors: an unknown
 * kind of tokenizer or pre-tokenizer (the message names it); values that do not fit. */
att_status att_gguf_tokenizer(att_gguf *g, att_token_list *list, json_t **root);
/* Makes tokenizer_config.json, with "chat_template" if the file has one. */
att_status att_gguf_tokenizer_config(att_gguf *g, json_t **root);

/* Pieces of SentencePiece by their ids, as its BPE has them. */
typedef struct att_gguf_pieces {
    const att_token_list *list; /* pieces that merges may make and join */
    const double *score;        /* [ids] */
} att_gguf_pieces;
/* Finds the merges that the scores imply, the best first, as a list of pairs (gguf_merges.c). */
att_status att_gguf_merges(att_gguf *g, const att_gguf_pieces *p, json_t *merges);

/* Opens a .gguf file as a tokenizer, which does not need the file any more. */
att_status att_gguf_tokenizer_read(att_ctx *ctx, att_gguf *g, att_tokenizer **out);
att_status att_gguf_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);

#endif
