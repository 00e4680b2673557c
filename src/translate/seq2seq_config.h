/* Reads config.json of "attend-seq2seq" strictly, and writes it. */
#ifndef ATT_TRANSLATE_SEQ2SEQ_CONFIG_H
#define ATT_TRANSLATE_SEQ2SEQ_CONFIG_H

#include "attend_translate.h"
#include "attend_util.h"
#include "io/settings.h"

/* The value of "model_type" in config.json. */
#define ATT_SEQ2SEQ_TYPE "attend-seq2seq"

/* Reads settings in the format of config.json. Errors name the file, the setting and its value. */
void att_seq2seq_config_read(att_settings *s, att_seq2seq_config *c);
/* Returns the default: one GRU layer with additive attention, about as large as the default Transformer, for a joint
 * vocabulary whose last token is <pad>. */
att_seq2seq_config att_seq2seq_config_default(int64_t vocabulary);
/* Returns the settings as JSON in the format of config.json; NULL: out of memory. */
json_t *att_seq2seq_config_json(const att_seq2seq_config *c);

#endif
