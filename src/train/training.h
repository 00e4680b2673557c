/* The common part of all trainings, in memory or in a folder. A kind has the functions and tables that differ between
 * trainings; its struct begins with an att_training_base. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "model/model.h"
#include "util/shape.h"
#include "train/training_folder.h"

#include "attend_train.h"

#include <string.h>

/* The first member of each `self`: what all trainings have. */
typedef struct att_training_base {
    att_ctx *ctx;
    bool in_memory;              /* the model is the caller's */
    att_training_options common; /* complete */
    att_schedule schedule;       /* that of common */
} att_training_base;

/* The rows of a loss: one or more rows of a batch. */
typedef struct att_training_rows {
    int64_t batch, first, last;          /* [first, last) of a batch of the epoch */
    uint64_t seed;                       /* of dropout */
    int64_t step;                        /* steps before this one */
    int64_t next, next_first, next_last; /* rows of a batch that are probably needed next, to be read ahead; they may
                                          * not exist */
} att_training_rows;

/* Why the loss of a batch is not a sum over its rows: "WHAT", and an alternative: "or INSTEAD". */
typedef struct att_training_coupling {
    const char *what, *instead;
    bool moves; /* a forward pass changes parameters such as running statistics */
} att_training_coupling;

/* A kind of training: functions on `self`, which has the model and the data. */
typedef struct att_training_kind {
    const char *name; /* "translators", for errors */
    size_t bytes;     /* of self */
    /* The kind's own options: the name of their struct, its size, and its offset in self. */
    const char *options;
    size_t options_bytes, options_at;
    /* Defaults: number of checkpoints to keep, 0: 2; of AdamW, 0: 0.999 and 1e-8 */
    int64_t keep;
    double beta2, eps;
    /* Checks the kind's own options and sets defaults. After an error there is nothing to free. */
    att_status (*configure)(void *self);
    /* Reads the input before a new folder is made, so that wrong input leaves none; or NULL. */
    att_status (*check)(const void *self);
    const char *const *files; /* names of files and folders that `open` makes in the folder, up to NULL; or NULL */
    /* Opens the data and, unless it is the caller's, the model. folder: gets the files of the model before the first
     * step (resume: they exist already); NULL: in memory. */
    att_status (*open)(void *self, const char *folder, bool resume);
    /* Returns parameter i and its name, NULL after the last. */
    att_param *(*param)(const void *self, int64_t i, const char **name);
    att_param_options (*param_options)(const void *self, const char *name, const att_tensor *value);
    const char *own;     /* prefix of parameters that are not the model's and are never frozen; or NULL */
    const char *buffers; /* part of the names of parameters that the forward pass changes and the optimizer does not; or
                          * NULL */
    /* Prepares the epoch with this number, from 0: *batches. After an error there is no current epoch. */
    att_status (*begin_epoch)(void *self, int64_t number, int64_t *batches);
    /* Returns what couples the rows of a batch, known after `configure`, or NULL. The function or NULL: nothing
     * does. */
    const att_training_coupling *(*coupling)(const void *self);
    /* Returns the number of rows of a batch of the epoch. */
    int64_t (*rows)(const void *self, int64_t batch);
    /* Returns whether a loss that is a sum over rows does not depend on a parameter, which then is not changed. NULL:
     * it depends on all. */
    bool (*idle)(const void *self, const char *name);
    /* Computes the summed loss of rows of a batch -> [1], and adds to targets (the number of summands), examples and
     * sources. The sum over all rows is the batch's. Data to which the tape refers stays valid until the next call. */
    att_var *(*loss)(void *self, att_tape *t, const att_training_rows *rows, att_training_part *sum);
    /* Returns the rate of a step, from that of the schedule. NULL: the schedule's. */
    double (*rate)(const void *self, int64_t step, double rate);
    /* Computes the mean loss on validation data. NULL: there is none. */
    att_status (*validate)(const void *self, double *loss);
    /* Adds settings that change results, in addition to those of att_training_options. */
    void (*settings)(const void *self, att_fields *fields);
    /* Writes the current model. */
    att_status (*write)(const void *self, const char *folder, att_dtype dtype);
    /* Describes the training: examples, vocabulary. */
    void (*describe)(const void *self, att_training_info *info);
    void (*free)(void *self); /* frees everything except self */
} att_training_kind;

static inline double att_training_beta2(const att_training_kind *kind) { return kind->beta2 > 0 ? kind->beta2 : 0.999; }

/* The shards that were requested, to read ahead. */
typedef struct att_shard_order {
    int64_t step;        /* of the last call */
    int64_t first, last; /* shards of that step so far */
    int64_t end;         /* end of the shards of the step before */
} att_shard_order;

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
    char *freeze;                   /* the patterns of options.freeze, "layer.0,norm"; "": none */
    bool *froze;                    /* [params]: whether the training froze it */
    uint64_t frozen;                /* checksum of frozen parameters, which checkpoints do not have */
    float *buffers;                 /* their values before the step; NULL: there are none */
    int64_t step, epochs, batch;    /* steps done; epochs begun; next batch of the epoch */
    int64_t current_epoch, batches; /* number of the epoch that self has prepared, from 1; its batches */
    int64_t evaluated, best_step;   /* steps of the last and of the best evaluation */
    double best;
    const att_training_coupling *coupling; /* or NULL */
    float *gradients;                      /* the optimizer's, once they are one buffer; otherwise NULL */
    float *pending;                        /* a stack of sums that wait for their neighbor in the tree; or NULL */
    att_shard_order shards;
};

/* The constructors of all kinds; `caller` is for errors, common and options are the caller's. att_training_new makes a
 * training of a model in memory: given [kind->bytes] is the initial self. att_training_open makes one in a folder. */
att_status att_training_new(const char *caller, const att_training_kind *kind, const att_model *m, const void *given,
                            const att_training_options *common, const void *options, att_training **out);
att_status att_training_open(const char *caller, const att_training_kind *kind, att_ctx *ctx, const char *folder,
                             const att_training_options *common, const void *options, att_training **out);
/* Returns self, or NULL for a training of another kind. */
static inline void *att_training_self(const att_training *t, const att_training_kind *kind)
{
    return t && t->kind == kind ? t->self : NULL;
}
/* Checks that t is a training of this kind. `caller` is for messages. */
att_status att_training_of_kind(const char *caller, const att_training *t, const att_training_kind *kind);

/* An option that is a number from 0 to max, or from 0 to less than 1. */
#define ATT_BELOW_1 (-1.0)
typedef struct att_training_option {
    const char *name;
    double value, max; /* or ATT_BELOW_1 */
} att_training_option;
att_status att_training_check_options(att_ctx *ctx, const att_training_option *options, int n);
/* An option of trainings in a folder; in memory it is an error to set it. */
typedef struct att_folder_option {
    const char *name;
    bool set;
} att_folder_option;
att_status att_training_check_in_memory(const att_training_base *base, const att_folder_option *options, int n);
/* Checks that a training in a folder begins with either settings or a model's folder, and one in memory with
 * neither. */
att_status att_training_check_start(const att_training_base *base, const char *settings, const char *model);
/* Checks that the folder is not that of the pre-trained model, which the training would overwrite. */
att_status att_training_other_folder(att_ctx *ctx, const char *folder, const char *model);
/* Checks that t has a folder. `caller` is for messages. */
att_status att_training_in_folder(const att_training *t, const char *caller);
/* Loads the newest checkpoint of the folder. */
att_status att_training_load(att_training *t);
static inline att_param *att_training_param(const att_training *t, int64_t i, const char **name)
{
    return t->kind->param(t->self, i, name);
}
/* Returns whether the optimizer has moments of parameter i: not if it was frozen when the training began. */
static inline bool att_training_learns(const att_training *t, int64_t i)
{
    return att_optimizer_moment(t->optimizer, i, 0) != NULL;
}
/* Returns whether the forward pass changes a parameter, such as running statistics. */
static inline bool att_training_is_buffer(const att_training *t, const char *name)
{
    return t->kind->buffers && strstr(name, t->kind->buffers);
}
/* Returns the number of elements of all trained parameters. */
int64_t att_training_count(const att_training *t);

/* ---- gradients (training_gradients.c) */

typedef struct att_training_position {
    int64_t epochs, batch;
} att_training_position;
static inline att_training_position att_training_position_of(const att_training *t)
{
    return (att_training_position){t->epochs, t->batch};
}
/* Adds the gradients of a shard of the next step's batches, and what they were computed from, and moves the position; a
 * single shard has all rows. After an error att_training_undo must be called. */
att_status att_training_add_batches(att_training *t, int64_t shard, att_training_part *sum);
/* Moves the position by a step. */
att_status att_training_skip_batches(att_training *t);
void att_training_zero_gradients(att_training *t);
/* Clears all gradients and restores the position. */
void att_training_undo(att_training *t, att_training_position was);
/* Returns the error that a shard's loss, or else the norm of the gradients, is not finite: repeats the step, with the
 * same bits, on a tape with detect_anomaly. Call att_training_undo before and after it. */
att_status att_training_find_cause(att_training *t, int64_t shard, double loss, double norm);
/* Computes the gradients of a shard of the next step's batches in t->gradients, zeros after an error. The position does
 * not change. */
att_status att_training_shard(att_training *t, int64_t shard, att_training_part *sum);

/* Returns whether checkpoints have parameter i. Others are frozen, and the same whenever the training is opened. */
static inline bool att_training_is_saved(const att_training *t, int64_t i, const char *name)
{
    return att_training_learns(t, i) || att_training_is_buffer(t, name);
}
/* Returns how the model of a training in a folder is opened. */
static inline att_trainable_options att_training_trainable(const att_training_base *b)
{
    return (att_trainable_options){.size = sizeof(att_trainable_options),
                                   .freeze = b->common.freeze,
                                   .n_freeze = b->common.n_freeze,
                                   .compute = b->common.compute};
}
/* Checks that the elements of x (f32, dense) are finite and at least `min`; the error is: "WHAT: "NAME" has -1 at
 * 3". */
att_status att_training_check_numbers(const att_training *t, att_status status, const char *what, const char *name,
                                      const att_tensor *x, float min);

#endif
