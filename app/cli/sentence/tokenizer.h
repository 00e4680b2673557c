/* Tokenizers, with or without a model. */
#ifndef CLI_SENTENCE_TOKENIZER_H
#define CLI_SENTENCE_TOKENIZER_H

#include "sentence.h"

/* A tokenizer: of a sentence model, of a folder that has one, or a SentencePiece file. */
typedef struct cli_tokenizer {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t max_tokens; /* of the model; 0: no limit */
    cli_sentence model;
    att_tokenizer *own; /* of no model */
} cli_tokenizer;
int cli_tokenizer_open(cli_tokenizer *t, const char *name);
void cli_tokenizer_close(cli_tokenizer *t);

#endif
