/* Translators, internal: translate.c and alignment.c. */
#ifndef ATT_MODEL_TRANSLATOR_H
#define ATT_MODEL_TRANSLATOR_H

#include "model/encoder_decoder.h"
#include "model/generation.h"

struct att_translator {
    att_ctx *ctx;
    att_encoder_decoder *model;
    att_tokenizer *tokenizer;
    bool borrowed; /* model and tokenizer are the caller's */
    att_generation generation;
};

#endif
