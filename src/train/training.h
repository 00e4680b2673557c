/* The common part of all trainings, with or without a folder. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "train/training_folder.h"

#include "attend_translate.h"
#include "attend_util.h"

/* A kind of training: functions on `self`, which has the model and the data. */
typedef struct att_training_kind {
    const char *name; /* for errors */
    int64_t keep;     /* default number of checkpoints to keep */
    /* Reads the input before a new folder is made, so that wrong input leaves none; or NULL. */
    att_status (*check)(const void *self);
    const char *const *files; /* names of those that `open` writes to the folder, and of folders that it makes there, up
                               * to NULL; or NULL */
    /* Opens the data and, unless it is the caller's, the model. folder: gets the files of the model before the first
     * step (resume: they exist already); NULL: no folder, and the model is the caller's. */
    att_status (*open)(void *self, const char *folder, bool resume);
    /* Parameter i and its name, NULL after the last; and its optimizer options, or NULL: the defaults. */
    att_param *(*param)(const void *self, int64_t i, const char **name);
    att_param_options (*param_options)(const void *self, const char *name, const att_tensor *value);
    /* Prepares the epoch with this number, from 0: *batches. After an error there is no current epoch. */
    att_status (*begin_epoch)(void *self, uint64_t seed, int64_t number, int64_t *batches);
    /* The summed loss of a batch -> [1] and the number of summands; updates the token counts and file statistics of the
     * report. seed: of dropout. The data that the tape refers to stays valid until the next call. */
    att_var *(*loss)(void *self, att_tape *t, int64_t batch, uint64_t seed, att_training_report *r, int64_t *count);
    /* The rate of a step, from that of the schedule; or NULL: that one. */
    double (*rate)(const void *self, int64_t step, double rate);
    /* The mean loss on validation data; or NULL. */
    att_status (*validate)(const void *self, double *loss);
    /* Adds settings that change results, besides those of att_training_config. */
    void (*settings)(const void *self, att_fields *fields);
    /* Writes the current model. */
    att_status (*write)(const void *self, const char *folder, att_dtype dtype);
    /* What the training has: pairs, vocabulary. */
    void (*describe)(const void *self, att_training_info *info);
    void (*free)(void *self);
} att_training_kind;

typedef struct att_training_config {
    const char *folder; /* NULL: none, and no checkpoints */
    bool resume;
    int64_t keep; /* number of checkpoints to keep; 0: the default of its kind */
    char *note;   /* [note_bytes], the caller's; NULL: none */
    size_t note_bytes;
    bool keep_best;        /* see att_training_keep_best */
    int64_t evaluation_id; /* identifies the evaluation data */
    att_optimizer_config optimizer;
    att_schedule schedule;
    double clip;
    int64_t accumulate; /* batches per step */
    uint64_t seed;
} att_training_config;

struct att_training {
    att_ctx *ctx;
    const att_training_kind *kind;
    void *self;
    att_training_config config; /* the folder's path is copied */
    char folder[ATT_MAX_PATH];
    att_run *run; /* NULL: no folder */
    bool saved;   /* it has saved a checkpoint or written the model */
    att_optimizer *optimizer;
    att_tape *tape;
    int64_t params;
    float *frozen;                  /* values of frozen parameters before the step; NULL: none are frozen */
    int64_t step, epochs, batch;    /* steps done; epochs begun; next batch of the epoch */
    int64_t current_epoch, batches; /* number of the epoch that self has prepared, from 1; its batches */
    int64_t evaluated, best_step;   /* steps of the last and of the best evaluation */
    double best;
};

/* Takes ownership of self, even on error. */
att_status att_training_make(att_ctx *ctx, const att_training_kind *kind, void *self, const att_training_config *config,
                             att_training **out);
/* A number of a training's options, which is from 0 to max. */
typedef struct att_training_option {
    const char *name;
    double value, max;
} att_training_option;
att_status att_training_check_options(att_ctx *ctx, const att_training_option *options, int n);
/* A training in a folder begins with one of settings and a model's folder; one in memory (folder NULL) with neither. */
att_status att_training_check_start(att_ctx *ctx, const char *folder, const char *settings, const char *model);
/* Error: the folder is that of the pre-trained model, which the training would overwrite. */
att_status att_training_other_folder(att_ctx *ctx, const char *folder, const char *model);
/* Errors: t is NULL, or has no folder. `caller` is for messages. */
att_status att_training_in_folder(const att_training *t, const char *caller);
/* Loads the newest checkpoint of the folder. */
att_status att_training_load(att_training *t);
static inline att_param *att_training_param(const att_training *t, int64_t i, const char **name)
{
    return t->kind->param(t->self, i, name);
}
static inline int64_t att_training_elements(const att_tensor *x)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
        n *= x->dim[i];
    return n;
}
/* Does the optimizer leave parameter i alone? Its values may change in a step, as running statistics do. */
static inline bool att_training_is_frozen(const att_training *t, int64_t i)
{
    return !att_optimizer_moment(t->optimizer, i, 0);
}
/* Checks that the elements of x (f32, dense) are finite and at least `min`; else: "WHAT: "NAME" has -1 at 3". */
att_status att_training_check_numbers(const att_training *t, att_status status, const char *what, const char *name,
                                      const att_tensor *x, float min);

/* Makes source.spm, target.spm and vocab.json in the folder of a translator's training. */
att_status att_training_vocabulary(att_ctx *ctx, const att_translator_training_options *options, const char *folder);

#endif
