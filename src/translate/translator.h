/* Translators, internal: translate.c and alignment.c. */
#ifndef ATT_TRANSLATE_TRANSLATOR_H
#define ATT_TRANSLATE_TRANSLATOR_H

#include "translate/encoder_decoder.h"
#include "decoder/beam_config.h"

struct att_translator {
    att_ctx *ctx;
    att_encoder_decoder *model;
    att_tokenizer *tokenizer;
    bool borrowed; /* model and tokenizer are the caller's */
    att_generation generation;
};

#endif
