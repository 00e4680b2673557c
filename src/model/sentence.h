/* Inside sentences: the model's parts. Public: att_sentence_open and its neighbours. */
#ifndef ATT_MODEL_SENTENCE_H
#define ATT_MODEL_SENTENCE_H

#include "model/model.h"
#include "model/modules.h"

#include <pthread.h>

enum { ATT_MAX_IDLE_TAPES = 16 };
struct att_sentence {
    att_model model; /* whose parameters are those of bert */
    att_modules modules;
    att_tokenizer *tokenizer;
    att_bert *bert;
    att_bert_info info;
    pthread_mutex_t lock; /* of the idle tapes: they keep their memory from call to call */
    att_tape *idle[ATT_MAX_IDLE_TAPES];
    int n_idle;
};

#endif
