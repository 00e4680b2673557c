/* Inside sentences: BERT in training. Public: att_bert_open and its neighbours. */
#ifndef ATT_MODEL_BERT_H
#define ATT_MODEL_BERT_H

#include "attend_model.h"
#include "attend_util.h"

/* Writes FOLDER/model.safetensors: the weights of a trainable model, under the names of the class BertModel, and
 * those of the file in `from` that the class has beside them (a pooler). dtype 0: as they are, f32. */
att_status att_bert_write_weights(const att_bert *m, const char *from, const char *folder, att_dtype dtype);

#endif
