/* The common part of all trainings, in memory or in a folder. A kind has functions and tables that are special about
 * it; its struct begins with an att_training_base. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "model/model.h"
#include "util/shape.h"
#include "train/training_folder.h"

#include "attend_train.h"

/* The first member of each `self`: what all trainings have. */
typedef struct att_training_base {
    att_ctx *ctx;
    bool in_memory;              /* the model is the caller's */
    att_training_options common; /* complete */
    att_schedule schedule;       /* that of common */
} att_training_base;

/* A kind of training: functions on `self`, which has the model and the data. */
typedef struct att_training_kind {
    const char *name; /* "translators", for errors */
    size_t bytes;     /* of self */
    /* The options of its own: the name of their struct, its size, and where self has it */
    const char *options;
    size_t options_bytes, options_at;
    /* Defaults: number of checkpoints to keep, 0: 2; of AdamW, 0: 0.999 and 1e-8 */
    int64_t keep;
    double beta2, eps;
    /* Checks the options of its own and sets defaults. After an error there is nothing to free. */
    att_status (*configure)(void *self);
    /* Reads the input before a new folder is made, so that wrong input leaves none; or NULL. */
    att_status (*check)(const void *self);
    const char *const *files; /* names of those that `open` writes to the folder, and of folders that it makes there, up
                               * to NULL; or NULL */
    /* Opens the data and, unless it is the caller's, the model. folder: gets the files of the model before the first
     * step (resume: they exist already); NULL: in memory. */
    att_status (*open)(void *self, const char *folder, bool resume);
    /* Parameter i and its name, NULL after the last; and its optimizer options, or NULL: the defaults. */
    att_param *(*param)(const void *self, int64_t i, const char **name);
    att_param_options (*param_options)(const void *self, const char *name, const att_tensor *value);
    /* Prepares the epoch with this number, from 0: *batches. After an error there is no current epoch. */
    att_status (*begin_epoch)(void *self, int64_t number, int64_t *batches);
    /* The summed loss of a batch -> [1] and the number of summands; updates examples and sources of the report. seed:
     * of dropout. The data that the tape refers to stays valid until the next call. */
    att_var *(*loss)(void *self, att_tape *t, int64_t batch, uint64_t seed, att_training_report *r, int64_t *count);
    /* The rate of a step, from that of the schedule; or NULL: that one. */
    double (*rate)(const void *self, int64_t step, double rate);
    /* The mean loss on validation data; or NULL. */
    att_status (*validate)(const void *self, double *loss);
    /* Adds settings that change results, besides those of att_training_options. */
    void (*settings)(const void *self, att_fields *fields);
    /* Writes the current model. */
    att_status (*write)(const void *self, const char *folder, att_dtype dtype);
    /* What the training has: examples, vocabulary. */
    void (*describe)(const void *self, att_training_info *info);
    void (*free)(void *self); /* all but self */
} att_training_kind;

static inline double att_training_beta2(const att_training_kind *kind) { return kind->beta2 > 0 ? kind->beta2 : 0.999; }

struct att_training {
    att_ctx *ctx;
    const att_training_kind *kind;
    void *self;
    const att_training_options *options; /* those of self */
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

/* The constructors of all kinds; `caller` is for errors. common and options: of the caller. In memory, of a model:
 * given [kind->bytes] is what self begins with. In a folder. */
att_status att_training_new(const char *caller, const att_training_kind *kind, const att_model *m, const void *given,
                            const att_training_options *common, const void *options, att_training **out);
att_status att_training_open(const char *caller, const att_training_kind *kind, att_ctx *ctx, const char *folder,
                             const att_training_options *common, const void *options, att_training **out);
/* self, or NULL for a training of another kind. */
static inline void *att_training_self(const att_training *t, const att_training_kind *kind)
{
    return t && t->kind == kind ? t->self : NULL;
}
/* Error: t is NULL, or of another kind. `caller` is for messages. */
att_status att_training_of_kind(const char *caller, const att_training *t, const att_training_kind *kind);

/* A number of a training's options, which is from 0 to max, or less than 1. */
#define ATT_BELOW_1 (-1.0)
typedef struct att_training_option {
    const char *name;
    double value, max; /* or ATT_BELOW_1 */
} att_training_option;
att_status att_training_check_options(att_ctx *ctx, const att_training_option *options, int n);
/* An option of trainings in a folder, which in memory is an error if it is set. */
typedef struct att_folder_option {
    const char *name;
    bool set;
} att_folder_option;
att_status att_training_check_in_memory(const att_training_base *base, const att_folder_option *options, int n);
/* A training in a folder begins with one of settings and a model's folder; one in memory with neither. */
att_status att_training_check_start(const att_training_base *base, const char *settings, const char *model);
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
/* Does the optimizer leave parameter i alone? Its values may change in a step, as running statistics do. */
static inline bool att_training_is_frozen(const att_training *t, int64_t i)
{
    return !att_optimizer_moment(t->optimizer, i, 0);
}
/* Checks that the elements of x (f32, dense) are finite and at least `min`; else: "WHAT: "NAME" has -1 at 3". */
att_status att_training_check_numbers(const att_training *t, att_status status, const char *what, const char *name,
                                      const att_tensor *x, float min);

#endif
