/* The Transformer, internal. Public: att_transformer_*. */
#ifndef ATT_TRANSLATE_TRANSFORMER_H
#define ATT_TRANSLATE_TRANSFORMER_H

#include "translate/encoder_decoder.h"
#include "translate/marian_config.h"

extern const att_architecture att_transformer_architecture;

/* Makes a new model for training, randomly initialized. Errors: ctx, config or out is NULL; those of reading its
 * config.json. */
att_status att_transformer_new(att_ctx *ctx, const att_marian_config *config, uint64_t seed, att_transformer **out);

#endif
