/* Inside att_translator: translate.c and alignment.c. */
#ifndef ATT_MODEL_TRANSLATOR_H
#define ATT_MODEL_TRANSLATOR_H

#include "model/encoder_decoder.h"
#include "model/generation.h"

struct att_translator {
    att_ctx *ctx;
    att_encoder_decoder *model;
    att_tokenizer *tokenizer;
    bool borrowed; /* both are the caller's */
    att_generation generation;
};

#endif
