/* Inside training: what all trainings have in common, whatever learns, in a folder of its own or not. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "train/run_state.h"

#include "attend_model.h"

/* What is learnt, of which texts, with which loss: functions of a `self` that has the model and the texts. */
typedef struct att_training_kind {
    const char *name; /* for errors */
    int64_t keep;     /* checkpoints that stay by default */
    /* Opens the texts and, where it is not the caller's, the model. folder: what it has before the first step is made
     * (resume: it is there already); NULL: there is none, and the model is the caller's. */
    att_status (*open)(void *self, const char *folder, bool resume);
    /* The i-th parameter and its name, NULL beyond the last; and how it learns. */
    att_param *(*param)(const void *self, int64_t i, const char **name);
    att_param_options (*rule)(const void *self, const char *name, const att_tensor *value);
    /* Lays out the epoch of this number, counted from 0, instead of the one before: *batches. After an error there is
     * none. */
    att_status (*begin_epoch)(void *self, uint64_t seed, int64_t number, int64_t *batches);
    /* The loss of a batch of the epoch, summed -> [1], and of how many; adds to the report's tokens, and says what it
     * knows of the files. seed: of dropout. What the tape reads stays until the next call. */
    att_var *(*loss)(void *self, att_tape *t, int64_t batch, uint64_t seed, att_training_report *r, int64_t *count);
    /* The mean loss of what is not learnt; NULL: there is none. */
    att_status (*validate)(const void *self, double *loss);
    /* What would make other bits, for checkpoints, beside what the training has itself. */
    void (*settings)(const void *self, att_fields *fields);
    /* The model, as it is now. */
    att_status (*write)(const void *self, const char *folder, att_dtype dtype);
    void (*free)(void *self);
} att_training_kind;

typedef struct att_training_config {
    const char *folder; /* NULL: none, and no checkpoints */
    bool resume;
    int64_t keep; /* checkpoints that stay; 0: as many as of its kind */
    char *note;   /* [note_bytes] of the caller's; NULL: none */
    size_t note_bytes;
    bool keeps_best;       /* the best model is kept, as att_training_keep_best says; */
    int64_t evaluation_id; /* a number that stands for what models are evaluated by */
    att_optimizer_config optimizer;
    att_schedule schedule;
    double clip;
    int64_t accumulate; /* batches of a step */
    uint64_t seed;
} att_training_config;

struct att_training {
    att_ctx *ctx;
    const att_training_kind *kind;
    void *self;
    att_training_config config; /* its folder is */
    char folder[ATT_MAX_PATH];
    att_run *run; /* NULL: there is no folder */
    att_optimizer *optimizer;
    att_tape *tape;
    int64_t params;
    int64_t step, epochs, batch;  /* taken; begun; the next of this epoch */
    int64_t laid_out, batches;    /* the epoch of which self has the order, counted from 1; its batches */
    int64_t evaluated, best_step; /* the last step that was evaluated, and the best */
    double best;
};

/* self is the training's from here on, after an error too. */
att_status att_training_make(att_ctx *ctx, const att_training_kind *kind, void *self, const att_training_config *config,
                             att_training **out);
/* Errors: t is NULL, or has no folder. `caller` is for errors. */
att_status att_training_in_folder(const att_training *t, const char *caller);
/* Goes on from the newest checkpoint of its folder. */
att_status att_training_load(att_training *t);
static inline att_param *att_training_param(const att_training *t, int64_t i, const char **name)
{
    return t->kind->param(t->self, i, name);
}
/* The first number of x, f32 and dense, that is not finite or below `min`; NULL: there is none. */
const float *att_training_find_bad(const att_tensor *x, float min);

/* Makes source.spm, target.spm and vocab.json of a translator's training in its folder. */
att_status att_training_vocabulary(att_ctx *ctx, const att_translator_training_options *options, const char *folder);

#endif
