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
    att_settings settings; /* tokenizer.json without them; it has the first error */
    att_tokenizer *t;
    bool pieces; /* as SentencePiece, with scores; else of byte level, with merges */
} att_gguf_vocabulary;

att_status att_gguf_vocabulary_open(att_gguf_vocabulary *v, att_ctx *ctx, const char *folder);
void att_gguf_vocabulary_close(att_gguf_vocabulary *v);
/* Adds the values, with n tokens: unused ones follow those that the folder has. Errors: what the format cannot express:
 * a model other than BPE, another normalizer or pre_tokenizer than those of llama.cpp's tags, special tokens around a
 * text other than one before and one after it, more than three that end one. */
att_status att_gguf_vocabulary_put(att_gguf_vocabulary *v, att_gguf_writer *to, int64_t n);
/* Is the tokenizer of a file, which was written, the same? Of pieces, merges are made of scores again. */
att_status att_gguf_vocabulary_check(att_gguf_vocabulary *v, att_gguf *g);

#endif
