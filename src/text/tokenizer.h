/* A tokenizer: what of the text is a token by itself, how the rest is cut, what is put around it. */
#ifndef ATT_TOKENIZER_H
#define ATT_TOKENIZER_H

#include "attend_model.h"
#include "text/bert_normalizer.h"
#include "text/wordpiece.h"

#define ATT_MAX_SPECIAL 16

/* A token that is found in the text as it is written, before anything else: "[MASK]". */
typedef struct att_added_token {
    const char *text; /* in the vocabulary */
    size_t bytes;
    int32_t id;
} att_added_token;

struct att_tokenizer {
    att_ctx *ctx;
    att_vocabulary vocabulary;
    att_bert_settings settings;
    att_added_token *added; /* [n_added], sorted by their bytes */
    int64_t n_added;
    bool begins_added[256];           /* first bytes of added tokens */
    int32_t special[ATT_MAX_SPECIAL]; /* [n_before + n_after]: [CLS] before the text, [SEP] after it */
    int64_t n_before, n_after;
};

#endif
