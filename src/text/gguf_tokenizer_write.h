/* The tokenizer of a folder, tokenizer.json or vocab.json and merges.txt, as values of a .gguf file. */
#ifndef ATT_TEXT_GGUF_TOKENIZER_WRITE_H
#define ATT_TEXT_GGUF_TOKENIZER_WRITE_H

#include "io/gguf_write.h"
#include "text/tokenizer_file.h"

typedef struct att_gguf_vocabulary {
    att_ctx *ctx;
    const char *folder;
    att_text_file file;
    att_token_list list;   /* texts of file */
    att_settings settings; /* tokenizer.json without the texts; it has the first error */
    att_tokenizer *t;
    bool pieces; /* like SentencePiece, with scores; false: byte level, with merges */
} att_gguf_vocabulary;

att_status att_gguf_vocabulary_open(att_gguf_vocabulary *v, att_ctx *ctx, const char *folder);
void att_gguf_vocabulary_close(att_gguf_vocabulary *v);
/* Adds the values, with n tokens: unused ones follow those of the folder. Errors are what the format cannot express: a
 * model other than BPE; a normalizer or pre_tokenizer that is not one of llama.cpp's tags; more than one special token
 * before or after a text; more than three tokens that end a text. */
att_status att_gguf_vocabulary_put(att_gguf_vocabulary *v, att_gguf_writer *to, int64_t n);
/* Checks that the tokenizer of a written file is the same. For pieces, merges are made from scores again. */
att_status att_gguf_vocabulary_check(att_gguf_vocabulary *v, att_gguf *g);

#endif
