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

/* A training: a model, an optimizer (AdamW) and its data; in memory, or in a folder with settings and checkpoints,
 * which in the end becomes a model folder. */
typedef struct att_training att_training;

/* The options of all trainings, whose constructors have those of their kind beside these. What is 0 or NULL has its
 * default, unless another one is named. */
typedef struct att_training_options {
    size_t size;
    const att_schedule *schedule; /* [call] of the learning rate; not NULL */
    double beta2;                 /* of AdamW (Loshchilov, Hutter 2019); 0: 0.999, of translators 0.98 */
    double weight_decay;          /* of AdamW: of matrices only, and not of those that the kind leaves out */
    double clip;                  /* maximum gradient norm; 0: no clipping */
    int64_t accumulate;           /* batches per step; 0: 1 */
    int64_t shards;               /* of each batch, as att_training_gradients has them: another number makes other bits;
                                   * 0: 1 */
    /* Names of the model's parameters that are frozen, or patterns, as in att_trainable_options, and of the training's
     * own classifier none. In memory the caller's parameters are frozen until att_training_free. Checkpoints do not
     * have frozen weights, but a checksum of them: on resume they are those of the model that the training began with,
     * or the same random ones, and other ones or other patterns are refused. */
    const char *const *freeze; /* [call] [n_freeze] or NULL: none */
    int64_t n_freeze;
    uint64_t seed; /* of all that is random: initialization, dropout, the order of examples, ... */
    /* The following fields are for trainings in a folder only. */
    bool resume;           /* continue from the newest checkpoint, with the same bits as without interruption */
    int64_t keep;          /* number of checkpoints to keep; 0: 2, of translators 5 */
    int64_t evaluation_id; /* identifies the held-out data of att_training_keep_best; a checkpoint with another id is
                            * refused */
    char *note; /* [object] [note_bytes], zero-terminated: the caller's text, saved with each checkpoint and read on
                 * resume; or NULL */
    size_t note_bytes;
} att_training_options;
/* All constructors have an error for: an option out of range; in a folder, another process that trains there;
 * checkpoints but options.resume false, or none but it is true; a checkpoint with other options, or an invalid one
 * (damaged, of another step, with numbers that are not finite); a symbolic link instead of the lock or a checkpoint. */

/* Examples are a translator's pairs of texts, a sentence model's rows of texts, the images of a classifier and of a
 * captioner, and a recommender's histories of two or more items. */
typedef struct att_training_report {
    size_t size;
    int64_t step, epoch; /* steps so far; epochs begun */
    int64_t steps_left;  /* in this epoch */
    int64_t examples;    /* of this step */
    int64_t sources;     /* what the model has read in this step: tokens of source texts, of all texts of a row, images,
                          * or items of histories */
    int64_t targets; /* what the loss of this step is the mean over: target tokens, rows, images of a classifier, words
                      * of captions, or positions of histories */
    double loss;     /* with dropout and label smoothing */
    double norm, rate;
} att_training_report;
/* One step: one or more batches, then an update by the optimizer. The same bits for any number of threads and after any
 * interruption. Errors: a loss or gradients that are not finite; the message names the step and the operation that
 * produced the first such number (see att_tape_config.detect_anomaly). After an error the weights are unchanged. */
ATT_API att_status att_training_step(att_training *t, att_training_report *report);

/* A step in halves, for training on several machines with the bits of one. options.shards = S parts each batch of n
 * rows (examples) by index: shard s has rows [s n / S, (s + 1) n / S), rounded down. Whoever computes them, the step's
 * gradients are the sum of those of all shards by a tree: neighbors are added pairwise, shards 0 and 1, 2 and 3, ...,
 * then these sums likewise, level by level; at each level an odd last one passes on. So S = 5 is ((0 + 1) + (2 + 3))
 * + 4. With the same S each caller, which has a training of the same options, gets the same bits, as does
 * att_training_step by itself:
 *
 *     for (int64_t s = first; s < last; s++)                        // its own shards: 2^k neighbors
 *         att_training_gradients(t, s, gradients[s - first], &part[s - first]);
 *     ...                                  // att_training_add, first here, then between callers: by the tree
 *     att_training_apply(t, sum, &part_of_sum, &report);            // each caller, of the same sum
 *
 * Random changes, dropout and the draw of negatives are those of the whole batch. A loss that couples the examples of a
 * batch is no sum over rows: a training with the multiple negatives ranking loss or, of a captioner with its network
 * of convolutions, batch normalization, refuses options.shards above 1. A step has the memory of log2 S sums of
 * gradients more. Callers need the same instruction set, which decides on bits (att_config.isa). */

/* What gradients are of; also that of a sum. Set size before a call. */
typedef struct att_training_part {
    size_t size;
    double loss;                        /* summed over the targets */
    int64_t targets, examples, sources; /* as in att_training_report */
} att_training_part;
/* Gradients [att_training_info.parameters] of the summed loss of a shard, from 0, of the next step's batches
 * (options.accumulate), of the parameters that learn, one after another, and what they are of; of an empty shard,
 * zeros. The training stays where it is. Errors: those of att_training_step; no such shard; batch normalization, which
 * has running statistics to move. */
ATT_API att_status att_training_gradients(att_training *t, int64_t shard, float *gradients, att_training_part *part);
/* A node of the tree: adds other gradients, and what they are of, to `gradients` and `part`. Error: a sum of counts
 * that an int64_t does not have, or negative ones. */
ATT_API att_status att_training_add(const att_training *t, float *gradients, att_training_part *part,
                                    const float *other, const att_training_part *other_part);
/* The second half: divides the sum of all shards by the targets, clips it, updates the parameters and continues after
 * this step's batches; others may have computed all of it. Errors, after which the training is unchanged: a
 * loss or gradients that are not finite, as in a step; negative counts. */
ATT_API att_status att_training_apply(att_training *t, const float *gradients, const att_training_part *sum,
                                      att_training_report *report);

ATT_API int64_t att_training_steps(const att_training *t); /* steps so far */
typedef struct att_training_info {
    size_t size;
    int64_t evaluated, best_step; /* step of the last score of att_training_keep_best and of the best; 0: none, or
                                   * of the model that the training begins with */
    double best;                  /* best score; -INFINITY: none */
    int64_t examples;             /* those that are used */
    /* Of a translator: pairs of the files that are left out, with an empty text, not in UTF-8, with a long text. */
    int64_t skipped_empty, skipped_invalid, skipped_long;
    int64_t truncated;              /* of a sentence model: rows with a truncated text */
    int64_t vocabulary, parameters; /* tokens of the tokenizer, words or items; numbers that are trained */
    int64_t frozen;                 /* numbers that are not, as their parameters are frozen */
} att_training_info;
ATT_API att_status att_training_describe(const att_training *t, att_training_info *info);
/* The mean loss of a translator or a captioner on its validation data, without dropout and label smoothing. Error: the
 * training has none, or is of another kind. */
ATT_API att_status att_training_validate(att_training *t, double *loss);

/* The rest is for trainings in a folder only. */

/* Saves a checkpoint: weights, moments and the position in the data. It is written atomically. Errors: numbers that are
 * not finite, which the message names; I/O errors. After an error the older checkpoints are intact. */
ATT_API att_status att_training_save(att_training *t);
/* Saves a checkpoint for an interruption: the next checkpoint replaces it, so that averages over checkpoints are those
 * of an uninterrupted run. */
ATT_API att_status att_training_pause(att_training *t);
/* Records the score of the current weights on held-out data. If it is the best so far,
 * including before a resume, the model is written to the folder, like att_training_write(t, 0, dtype). */
ATT_API att_status att_training_keep_best(att_training *t, double score, att_dtype dtype);
/* Before the first step: the folder has the model that the training begins with, and this is its score.
 * att_training_keep_best then writes only a model that is better; until then best_step is 0, and the files stay as they
 * are. Error: a step has been made. */
ATT_API att_status att_training_keep_first(att_training *t, double score);
/* Writes model.safetensors: the mean of the weights of the newest n checkpoints (n = 0: the current weights), as dtype.
 * The folder can then be opened as a model of the kind that was trained: by att_translator_open, att_sentence_open,
 * att_image_model_open, att_caption_model_open or att_recommender_open. */
ATT_API att_status att_training_write(att_training *t, int64_t n, att_dtype dtype);
/* Deletes all but the newest n checkpoints. Resuming needs one; later averages of checkpoints use only those that
 * remain and new ones. */
ATT_API att_status att_training_keep(att_training *t, int64_t n);
/* Frees a training, and unlocks its folder; NULL is allowed. One that has made no step and saved nothing leaves no
 * files in its folder, and no folder that it has made. */
ATT_API void att_training_free(att_training *t);

#ifdef __cplusplus
}
#endif
#endif
