/* BERT's tokenizer: BertNormalizer, then WordPiece. */
#ifndef ATT_BERT_TOKENIZER_H
#define ATT_BERT_TOKENIZER_H

#include "text/bert_normalizer.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/wordpiece.h"

typedef struct att_bert_tokenizer {
    att_tokenizer base;
    att_vocabulary vocabulary;
    att_bert_settings settings;
    att_trie
        added[2]; /* tokens that are matched in the text before anything else: all, "[MASK]", or not special ones */
    bool begins[2][256]; /* their first bytes */
} att_bert_tokenizer;

/* An empty tokenizer, filled by tokenizer_file.c; NULL: out of memory. */
att_bert_tokenizer *att_bert_tokenizer_new(att_ctx *ctx);

#endif
