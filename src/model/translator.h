/* Inside att_translator: translate.c and alignment.c. */
#ifndef ATT_MODEL_TRANSLATOR_H
#define ATT_MODEL_TRANSLATOR_H

#include "model/generation.h"
#include "model/transformer.h"

struct att_translator {
    att_ctx *ctx;
    att_transformer *model;
    att_tokenizer *tokenizer;
    bool borrowed; /* both are the caller's */
    att_generation generation;
};

#endif
