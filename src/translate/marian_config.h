/* Reads config.json of the class MarianMTModel strictly, and writes it. */
#ifndef ATT_TRANSLATE_MARIAN_CONFIG_H
#define ATT_TRANSLATE_MARIAN_CONFIG_H

#include "attend_util.h"
#include "attend_learn.h"
#include "io/settings.h"

/* The value of "model_type" in config.json. */
#define ATT_MARIAN_TYPE "marian"

typedef struct att_marian_config {
    int64_t source_vocabulary, target_vocabulary, hidden, max_positions;
    struct {
        int64_t layers, heads, intermediate;
    } encoder, decoder;
    att_activation activation;
    bool scale_embedding; /* multiply embeddings by sqrt(hidden) */
    bool share;           /* one embedding table for source and target */
    bool tie;             /* the output layer's weights are the target's table */
    int64_t pad, eos, start;
} att_marian_config;

/* Reads settings in the format of config.json. Errors name the file, the setting and its value. */
void att_marian_config_read(att_settings *s, att_marian_config *c);
/* Returns a Transformer of 3 + 3 layers of 256 for a joint vocabulary whose last token is <pad>. */
att_marian_config att_marian_config_default(int64_t vocabulary);
/* Returns the settings as JSON in the format of config.json; NULL: out of memory. */
json_t *att_marian_config_json(const att_marian_config *c);

#endif
