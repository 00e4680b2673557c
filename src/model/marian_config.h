/* config.json of the class MarianMTModel, read strictly. */
#ifndef ATT_MODEL_MARIAN_CONFIG_H
#define ATT_MODEL_MARIAN_CONFIG_H

#include "attend_model.h"

typedef struct att_marian_config {
    int64_t source_vocabulary, target_vocabulary, hidden, max_positions;
    struct {
        int64_t layers, heads, intermediate;
    } encoder, decoder;
    att_activation activation;
    bool scale_embedding; /* by sqrt(hidden) */
    bool share;           /* one table for source and target */
    bool tie;             /* the output's weights are the target's table */
    int64_t pad, eos, start;
} att_marian_config;

/* FOLDER/config.json. Errors name the file, the setting and its value. */
att_status att_marian_config_read(att_ctx *ctx, const char *folder, att_marian_config *out);
/* FOLDER/config.json and FOLDER/generation_config.json, by which <pad> is never generated. Error: a configuration that
 * could not be read again, and nothing is written. */
att_status att_marian_config_write(att_ctx *ctx, const char *folder, const att_marian_config *c, int64_t beam);

#endif
