/* Inside the training of a translator. */
#ifndef ATT_TRAIN_TRAINER_H
#define ATT_TRAIN_TRAINER_H

#include "model/transformer.h"
#include "train/pairs.h"

struct att_trainer {
    att_ctx *ctx;
    att_transformer *model;
    const att_tokenizer *tokenizer;
    att_trainer_options options;
    att_pair_set set;
    att_epoch epoch;
    att_optimizer *optimizer;
    att_tape *tape;
    int64_t step, epochs, batch; /* taken; begun; the next of this epoch */
};

/* The order of the epoch that makes `epochs` begun ones. */
att_status att_trainer_begin_epoch(att_trainer *t, int64_t epochs);

#endif
