/* config.json of the class MarianMTModel, read strictly, and made. */
#ifndef ATT_MODEL_MARIAN_CONFIG_H
#define ATT_MODEL_MARIAN_CONFIG_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/settings.h"

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

/* From settings, as a config.json has them. Errors name the file, the setting and its value. */
void att_marian_config_take(att_settings *s, att_marian_config *c);
/* A Transformer of 3 + 3 layers of 256 for one vocabulary of both languages, the last of which is <pad>. */
att_marian_config att_marian_config_default(int64_t vocabulary);
/* What a config.json has; NULL: memory ran out. */
json_t *att_marian_config_json(const att_marian_config *c);

#endif
