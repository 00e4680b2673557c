/* attend_train.h - what the trainings of all models have in common.
 *
 * The header of each subject has the constructors of its trainings and their options: attend_sentence.h,
 * attend_translate.h, attend_vision.h, attend_caption.h, attend_recommend.h. attend.h states how arguments that may be
 * NULL are marked. */
#ifndef ATTEND_TRAIN_H
#define ATTEND_TRAIN_H

#include "attend_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A training: a model, an optimizer (AdamW) and data. It is in memory, or in a folder with settings and checkpoints,
 * which in the end becomes a model folder. */
typedef struct att_training att_training;

/* The options that all trainings have; constructors take options of their kind besides. 0 and NULL stand for the
 * default of a field; the comment names it unless it is 0 or none. */
typedef struct att_training_options {
    size_t size;
    const att_schedule *schedule; /* [call] of the learning rate; not NULL */
    double beta2;                 /* of AdamW (Loshchilov, Hutter 2019); 0: 0.999, of translators 0.98 */
    double weight_decay;          /* of AdamW: for matrices only, except those that the kind excludes */
    double clip;                  /* maximum gradient norm; 0: no clipping */
    int64_t accumulate;           /* batches per step; 0: 1 */
    int64_t shards;               /* of each batch, see att_training_gradients: another number changes the bits; 0: 1 */
    /* Names or patterns of the model's parameters that are frozen, as in att_trainable_options. They do not apply to
     * the training's own classifier. A training in memory freezes the caller's parameters until att_training_free.
     * Checkpoints have a checksum of the frozen weights instead of these weights: resuming takes them from the model
     * that the training began with, or makes the same random ones, and refuses other weights or other patterns. */
    const char *const *freeze; /* [call] [n_freeze] or NULL: none */
    int64_t n_freeze;
    uint64_t seed; /* of everything random: initialization, dropout, the order of examples, ... */
    /* The following fields are for trainings in a folder only. */
    bool resume;           /* continue from the newest checkpoint, with the bits of an uninterrupted training */
    int64_t keep;          /* number of checkpoints to keep; 0: 2, of translators 5 */
    int64_t evaluation_id; /* identifies the held-out data of att_training_keep_best; a checkpoint with another id is
                            * refused */
    char *note; /* [object] [note_bytes], zero-terminated: the caller's text, saved with each checkpoint and read on
                 * resume; or NULL */
    size_t note_bytes;
    /* What products compute, forward and backward; ATT_COMPUTE_BF16 is training in mixed precision. Weights, gradients,
     * moments and sums are f32. The model that a training in a folder opens or makes computes the same in validations.
     * Resuming refuses another one. Error: the instruction set has no products of bf16 */
    att_compute compute;
} att_training_options;
/* Errors of all constructors: an option out of range; in a folder, another process trains there; there are checkpoints
 * but options.resume is false, or none but it is true; a checkpoint has other options or is invalid (damaged, of
 * another step, with numbers that are not finite); a symbolic link in place of the lock or a checkpoint. */

/* The report of one step. Examples are pairs of texts of a translator, rows of texts of a sentence model, images of a
 * classifier or captioner, or histories of two or more items of a recommender. */
typedef struct att_training_report {
    size_t size;
    int64_t step, epoch; /* steps so far; epochs begun */
    int64_t steps_left;  /* in this epoch */
    int64_t examples;    /* of this step */
    int64_t sources;     /* inputs of the model in this step: tokens of source texts or of all texts of a row, images,
                          * or items of histories */
    int64_t targets;     /* number of terms in the mean loss of this step: target tokens, rows, images of a classifier,
                          * words of captions, or positions of histories */
    double loss;         /* with dropout and label smoothing */
    double norm, rate;
} att_training_report;
/* Makes one step: one or more batches, then an update by the optimizer. The bits are the same for any number of threads
 * and after any interruption. Errors: a loss or gradients that are not finite (the message names the step and the
 * operation that produced the first such number, see att_tape_config.detect_anomaly). After an error the weights are
 * unchanged. */
ATT_API att_status att_training_step(att_training *t, att_training_report *report);

/* A step can be made in two halves, to train on several machines with the bits of one. options.shards = S divides each
 * batch of n rows (examples) by index: shard s has rows [s n / S, (s + 1) n / S), rounded down. The step's gradients
 * are the sum of those of all shards by a tree, whoever computes them: neighbors are added pairwise, shards 0 and 1, 2
 * and 3, ..., then the sums of neighbors, level by level; an odd last one passes to the next level. So S = 5 is
 * ((0 + 1) + (2 + 3)) + 4. Callers that have trainings with the same options and the same S get the same bits, which
 * are those of att_training_step:
 *
 *     for (int64_t s = first; s < last; s++)                        // its own shards: 2^k neighbors
 *         att_training_gradients(t, s, gradients[s - first], &part[s - first]);
 *     ...                                  // att_training_add, first here, then between callers: by the tree
 *     att_training_apply(t, sum, &part_of_sum, &report);            // each caller, of the same sum
 *
 * Random changes, dropout and the draw of negatives are those of the whole batch. A loss that couples the examples of a
 * batch is not a sum over rows. So options.shards above 1 is an error with the multiple negatives ranking loss, and for
 * captioners whose CNN has batch normalization. A step needs the memory of log2 S more gradients. Callers need the same
 * instruction set, on which bits depend (att_config.isa). */

/* The data from which gradients, or a sum of gradients, were computed. Set size before a call. */
typedef struct att_training_part {
    size_t size;
    double loss;                        /* summed over the targets */
    int64_t targets, examples, sources; /* as in att_training_report */
} att_training_part;
/* Computes the gradients [att_training_info.parameters] of the summed loss of a shard, from 0, of the next step's
 * batches (options.accumulate), and what they were computed from. Gradients of all trained parameters follow one
 * another; those of an empty shard are zeros. The training does not advance. Errors: those of att_training_step; no
 * such shard; batch normalization, whose running statistics a step updates. */
ATT_API att_status att_training_gradients(att_training *t, int64_t shard, float *gradients, att_training_part *part);
/* Adds other gradients, and what they were computed from, to `gradients` and `part`: a node of the tree. Errors: counts
 * that are negative or whose sum overflows. */
ATT_API att_status att_training_add(const att_training *t, float *gradients, att_training_part *part,
                                    const float *other, const att_training_part *other_part);
/* Makes the second half of a step: divides the sum of all shards by the targets, clips it, updates the parameters and
 * advances past this step's batches, even if other callers computed all gradients. Errors: a loss or gradients that are
 * not finite, as in a step; negative counts. After an error the training is unchanged. */
ATT_API att_status att_training_apply(att_training *t, const float *gradients, const att_training_part *sum,
                                      att_training_report *report);

ATT_API int64_t att_training_steps(const att_training *t); /* steps so far */
typedef struct att_training_info {
    size_t size;
    int64_t evaluated, best_step; /* steps of the last and of the best score of att_training_keep_best; 0: none, or the
                                   * model that the training began with */
    double best;                  /* best score; -INFINITY: none */
    int64_t examples;             /* number of examples that are used */
    /* For translators: pairs of the files that are left out because a text is empty, not UTF-8, or too long. */
    int64_t skipped_empty, skipped_invalid, skipped_long;
    int64_t truncated;              /* for sentence models: rows with a truncated text */
    int64_t vocabulary, parameters; /* vocabulary: tokens of the tokenizer, words or items; parameters: numbers that are
                                     * trained */
    int64_t frozen;                 /* numbers that are not trained, because their parameters are frozen */
} att_training_info;
ATT_API att_status att_training_describe(const att_training *t, att_training_info *info);
/* Computes the mean loss of a translator or a captioner on its validation data, without dropout and label smoothing.
 * Errors: the training has no validation data, or is of another kind. */
ATT_API att_status att_training_validate(att_training *t, double *loss);

/* The rest is for trainings in a folder only. */

/* Saves a checkpoint atomically: weights, moments and the position in the data. Errors: numbers that are not finite
 * (the message names them); I/O errors. After an error older checkpoints are intact. */
ATT_API att_status att_training_save(att_training *t);
/* Saves a checkpoint for an interruption: the next checkpoint replaces it, so that averages over checkpoints are those
 * of an uninterrupted run. */
ATT_API att_status att_training_pause(att_training *t);
/* Records the score of the current weights on held-out data. If it is the best so far,
 * including before a resume, the model is written to the folder, like att_training_write(t, 0, dtype). */
ATT_API att_status att_training_keep_best(att_training *t, double score, att_dtype dtype);
/* Records, before the first step, the score of the model that the training begins with and that the folder has.
 * att_training_keep_best then writes only a model that is better; until then best_step is 0 and the files are not
 * changed. Error: a step has been made. */
ATT_API att_status att_training_keep_first(att_training *t, double score);
/* Writes model.safetensors: the mean of the weights of the newest n checkpoints (n = 0: the current weights), as dtype.
 * The folder can then be opened as a model of the kind that was trained: by att_translator_open, att_sentence_open,
 * att_image_model_open, att_caption_model_open or att_recommender_open. */
ATT_API att_status att_training_write(att_training *t, int64_t n, att_dtype dtype);
/* Deletes all but the newest n checkpoints. Resuming needs one; later averages of checkpoints use only those that
 * remain and new ones. */
ATT_API att_status att_training_keep(att_training *t, int64_t n);
/* Frees a training, and unlocks its folder; NULL is allowed. If the training has made no step and saved nothing, it
 * removes its files, and the folder if it created it. */
ATT_API void att_training_free(att_training *t);

#ifdef __cplusplus
}
#endif
#endif
