/* Sentence models, internal. Public: att_sentence_*. */
#ifndef ATT_SENTENCE_SENTENCE_H
#define ATT_SENTENCE_SENTENCE_H

#include "model/model.h"
#include "sentence/sentence_config.h"
#include "stack/encoder.h"

#include <pthread.h>

enum { ATT_MAX_IDLE_TAPES = 16 };
struct att_sentence {
    att_model model; /* parameters are those of the encoder */
    att_modules modules;
    att_tokenizer *tokenizer;
    att_encoder *encoder;
    att_encoder_info info;
    pthread_mutex_t lock; /* protects the free list of tapes, which keep their memory between calls */
    att_tape *idle[ATT_MAX_IDLE_TAPES];
    int n_idle;
};

/* A tape of the free list, or a new one; released, it is reset. */
att_status att_sentence_acquire_tape(const att_sentence *m, att_tape **out);
void att_sentence_release_tape(const att_sentence *m, att_tape *t);
/* The vectors of n texts: hidden states x [offsets[n], hidden], offsets [n + 1] -> [n, hidden] */
att_var *att_sentence_pool(att_tape *t, const att_sentence *m, att_var *x, const int64_t *offsets, int64_t n);

#endif
