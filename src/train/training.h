/* Inside a training in a folder, whatever learns there. */
#ifndef ATT_TRAIN_TRAINING_H
#define ATT_TRAIN_TRAINING_H

#include "train/trainer.h"

/* What learns in the folder: functions of a `self` that has the model. */
typedef struct att_training_kind {
    /* What the folder has before the first step (resume: it has that already), the model and its trainer. */
    att_status (*begin)(void *self, const char *folder, bool resume, att_trainer **out);
    /* The model, as it is now. */
    att_status (*write)(const void *self, const char *folder, att_dtype dtype);
    void (*free)(void *self);
    /* A number that stands for what models are judged by: checkpoints have it, and know what att_training_judge was
     * told. NULL: they are not judged. */
    int64_t (*judged_by)(const void *self);
} att_training_kind;

struct att_training {
    att_ctx *ctx;
    char folder[ATT_MAX_PATH];
    const att_training_kind *kind;
    void *self;
    att_run *run;
    att_trainer *trainer;
    int64_t judged, best_step; /* the last step that was judged, and the best */
    double best;
    char *note; /* [note_bytes] of the caller's; NULL: none */
    size_t note_bytes;
};

/* What all of them are told. */
typedef struct att_training_start {
    bool resume;
    int64_t keep; /* checkpoints that stay; 0: 5 */
    char *note;
    size_t note_bytes;
} att_training_start;
/* self is the training's from here on, after an error too. */
att_status att_training_make(att_ctx *ctx, const char *folder, const att_training_start *start,
                             const att_training_kind *kind, void *self, att_training **out);

#endif
