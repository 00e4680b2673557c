/* Inside sentences: the model's parts. Public: att_sentence_open and its neighbours. */
#ifndef ATT_MODEL_SENTENCE_H
#define ATT_MODEL_SENTENCE_H

#include "model/modules.h"

att_ctx *att_sentence_ctx(const att_sentence *m);
const att_bert *att_sentence_bert(const att_sentence *m);
const att_modules *att_sentence_modules(const att_sentence *m);

#endif
