/* config.json of "attend-seq2seq", read strictly, and written. */
#ifndef ATT_MODEL_SEQ2SEQ_CONFIG_H
#define ATT_MODEL_SEQ2SEQ_CONFIG_H

#include "attend_model.h"

/* FOLDER/config.json. Errors name the file, the setting and its value. */
att_status att_seq2seq_config_read(att_ctx *ctx, const char *folder, att_seq2seq_config *out);
/* A configuration made by a program, by the same rules. */
att_status att_seq2seq_config_check(att_ctx *ctx, const att_seq2seq_config *c);
/* The text of a config.json; the caller frees it with att_free. */
att_status att_seq2seq_config_text(att_ctx *ctx, const att_seq2seq_config *c, char **out);

#endif
