/* Tapes that keep their memory between the calls on a model, which may come from many threads at once. */
#ifndef ATT_MODEL_TAPE_POOL_H
#define ATT_MODEL_TAPE_POOL_H

#include "model/model.h"

#include <pthread.h>

enum { ATT_MAX_IDLE_TAPES = 16 };
typedef struct att_tape_pool {
    const att_model *model; /* whose compute the tapes have */
    pthread_mutex_t lock;   /* of what follows */
    att_tape *idle[ATT_MAX_IDLE_TAPES];
    int n_idle;
} att_tape_pool;

void att_tape_pool_begin(att_tape_pool *p, const att_model *m);
void att_tape_pool_end(att_tape_pool *p);
/* A tape of the pool, or a new one; releasing it resets it. */
att_status att_tape_pool_acquire(att_tape_pool *p, att_tape **out);
void att_tape_pool_release(att_tape_pool *p, att_tape *t);
/* Frees the tapes that no call has. */
void att_tape_pool_trim(att_tape_pool *p);
/* Their bytes */
size_t att_tape_pool_bytes(att_tape_pool *p);

#endif
