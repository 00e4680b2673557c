/* BERT, internal functions for sentence models. Public: att_bert_*. */
#ifndef ATT_STACK_BERT_H
#define ATT_STACK_BERT_H

#include "attend_sentence.h"
#include "attend_util.h"
#include "model/model.h"

extern const att_model_kind att_bert_kind;

/* Writes FOLDER/model.safetensors with the names of the class BertModel: the weights of a model opened for training,
 * and other tensors of the file in `from` that belong to the class (a pooler). dtype 0: f32. */
att_status att_bert_write_weights(const att_bert *m, const char *from, const char *folder, att_dtype dtype);

#endif
