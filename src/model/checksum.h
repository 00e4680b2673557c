/* Checksums of models, FNV-1a of 64 bits. Checkpoints have them, so that a training continues only with the model that
 * it began with. */
#ifndef ATT_MODEL_CHECKSUM_H
#define ATT_MODEL_CHECKSUM_H

#include "model/model.h"

/* Computes *sum of settings (compact, with sorted keys), which it releases. settings NULL: out of memory. */
att_status att_settings_checksum(att_ctx *ctx, json_t *settings, uint64_t *sum);
/* Returns sum continued over a parameter's numbers as f32. */
uint64_t att_param_checksum(uint64_t sum, att_ctx *ctx, const att_param *p);
/* Returns sum continued over all weights of a trainable model, in the order of its parameters. */
uint64_t att_model_checksum(uint64_t sum, const att_model *m);

#endif
