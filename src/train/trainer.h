/* Inside training: what learns, whatever it is, step by step. */
#ifndef ATT_TRAIN_TRAINER_H
#define ATT_TRAIN_TRAINER_H

#include "train/run_state.h"

#include "attend_model.h"

/* What is learnt, of which texts, with which loss: functions of a `self` that has the model and the texts. */
typedef struct att_task {
    const char *name; /* for errors */
    /* The i-th parameter and its name, NULL beyond the last; and how it learns. */
    att_param *(*param)(const void *self, int64_t i, const char **name);
    att_learn_options (*rule)(const void *self, const char *name, const att_tensor *value);
    /* Lays out the epoch of this number, counted from 0, instead of the one before: *batches. After an error there is
     * none. */
    att_status (*begin_epoch)(void *self, uint64_t seed, int64_t number, int64_t *batches);
    /* The loss of a batch of the epoch, summed -> [1], and of how many; adds to the report's tokens, and says what it
     * knows of the files. seed: of dropout. What the tape reads stays until the next call. */
    att_var *(*loss)(void *self, att_tape *t, int64_t batch, uint64_t seed, att_train_report *r, int64_t *count);
    /* What would make other bits, for checkpoints, beside what the trainer has itself. */
    void (*settings)(const void *self, att_facts *facts);
    void (*free)(void *self);
} att_task;

typedef struct att_trainer_config {
    att_optimizer_config optimizer;
    att_schedule schedule;
    double clip;
    int64_t accumulate; /* batches of a step */
    uint64_t seed;
} att_trainer_config;

struct att_trainer {
    att_ctx *ctx;
    const att_task *task;
    void *self;
    att_trainer_config config;
    att_optimizer *optimizer;
    att_tape *tape;
    int64_t params;
    int64_t step, epochs, batch; /* taken; begun; the next of this epoch */
    int64_t laid_out, batches;   /* the epoch of which self has the order, counted from 1; its batches */
};

/* self is the trainer's from here on, after an error too. */
att_status att_trainer_make(att_ctx *ctx, const att_task *task, void *self, const att_trainer_config *config,
                            att_trainer **out);
/* Where it is, which is loaded, and its settings and the task's. */
void att_trainer_facts(att_trainer *t, att_facts *facts);
/* After loading: where it is, is where a training can be. Errors name the file. */
att_status att_trainer_check(const att_trainer *t, const char *path);

#endif
