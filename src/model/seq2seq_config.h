/* config.json of "attend-seq2seq", read strictly, and made. */
#ifndef ATT_MODEL_SEQ2SEQ_CONFIG_H
#define ATT_MODEL_SEQ2SEQ_CONFIG_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/settings.h"

/* "model_type" of config.json */
#define ATT_SEQ2SEQ_TYPE "attend-seq2seq"

/* From settings, as a config.json has them. Errors name the file, the setting and its value. */
void att_seq2seq_config_take(att_settings *s, att_seq2seq_config *c);
/* One layer of GRUs with additive attention, about as large as the default Transformer, for one vocabulary of both
 * languages, the last of which is <pad>. */
att_seq2seq_config att_seq2seq_config_default(int64_t vocabulary);
/* What a config.json has; NULL: memory ran out. */
json_t *att_seq2seq_config_json(const att_seq2seq_config *c);

#endif
