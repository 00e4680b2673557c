/* attend_train.h - trainings: what those of all models have in common.
 *
 * The constructor of a training, its options and what is special about it are in the header of its subject:
 * attend_sentence.h, attend_translate.h, attend_vision.h, attend_caption.h, attend_recommend.h. Arguments that may be
 * NULL are marked as in attend.h. */
#ifndef ATTEND_TRAIN_H
#define ATTEND_TRAIN_H

#include "attend_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A training: a model, an optimizer and its data; in memory, or in a folder with settings and checkpoints, which in the
 * end becomes a model folder. */
typedef struct att_training att_training;

typedef struct att_training_report {
    size_t size;
    int64_t step, epoch;                  /* steps so far; epochs begun */
    int64_t steps_left;                   /* in this epoch */
    int64_t pairs;                        /* used pairs of the files */
    int64_t empty, invalid, too_long;     /* skipped pairs: with an empty text, not UTF-8, too long */
    int64_t source_tokens, target_tokens; /* in this step */
    double loss;                          /* mean per target token, with dropout and label smoothing */
    double norm, rate;
} att_training_report;
/* One step: one or more batches, then an update by the optimizer. The same bits for any number of threads and after any
 * interruption. Errors: a loss or gradients that are not finite; the message names the step and the operation that
 * produced the first such number (see att_tape_config.detect_anomaly). After an error the weights are unchanged. */
ATT_API att_status att_training_step(att_training *t, att_training_report *report);
ATT_API int64_t att_training_steps(const att_training *t); /* steps so far */
typedef struct att_training_info {
    size_t size;
    int64_t evaluated, best_step;     /* step of the last score of att_training_keep_best and of the best; 0: none, or
                                       * of the model that the training begins with */
    double best;                      /* best score; -INFINITY: none */
    int64_t pairs;                    /* used pairs of the files */
    int64_t empty, invalid, too_long; /* as in att_training_report */
    int64_t vocabulary, parameters;   /* tokens of the tokenizer; numbers that are trained */
} att_training_info;
ATT_API att_status att_training_describe(const att_training *t, att_training_info *info);
/* The mean loss of a translator per target token of the validation files, without dropout and label smoothing. */
ATT_API att_status att_training_validate(att_training *t, double *loss);

/* The rest is for trainings in a folder only. */

/* Saves a checkpoint: weights, moments and the position in the data. It is written atomically. Errors: numbers that are
 * not finite, which the message names; I/O errors. After an error the older checkpoints are intact. */
ATT_API att_status att_training_save(att_training *t);
/* Saves a checkpoint for an interruption: the next checkpoint replaces it, so that averages over checkpoints are those
 * of an uninterrupted run. */
ATT_API att_status att_training_pause(att_training *t);
/* For all but translators: records the score of the current weights on held-out data. If it is the best so far,
 * including before a resume, the model is written to the folder, like att_training_write(t, 0, dtype). */
ATT_API att_status att_training_keep_best(att_training *t, double score, att_dtype dtype);
/* Before the first step: the folder has the model that the training begins with, and this is its score.
 * att_training_keep_best then writes only a model that is better; until then best_step is 0, and the files stay as they
 * are. Error: a step has been made. */
ATT_API att_status att_training_keep_first(att_training *t, double score);
/* Writes model.safetensors: the mean of the weights of the newest n checkpoints (n = 0: the current weights), as dtype.
 * The folder can then be opened as one of the kind that was learnt: by att_translator_open, att_sentence_open,
 * att_image_model_open or att_recommender_open. */
ATT_API att_status att_training_write(att_training *t, int64_t n, att_dtype dtype);
/* Removes all checkpoints but the newest n, for a training that has finished: to continue it takes one, and a mean over
 * more of them is then over those that are left and new ones. */
ATT_API att_status att_training_keep(att_training *t, int64_t n);
/* One that has made no step and saved nothing leaves no files in its folder, and no folder that it has made. */
ATT_API void att_training_free(att_training *t);

#ifdef __cplusplus
}
#endif
#endif
