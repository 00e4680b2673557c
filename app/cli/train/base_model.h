/* The model that a training in its folder begins with, which the folder's own model then replaces. */
#ifndef CLI_TRAIN_BASE_MODEL_H
#define CLI_TRAIN_BASE_MODEL_H

#include "train.h"

#include <attend_model.h>

/* Copies the model to FOLDER/next, which *next becomes, and puts the checkpoints of the training that is there aside to
 * it. Fails while a process trains in the folder. */
int cli_base_model_begin(const char *folder, att_model_path *next);
/* To be called when the next training has begun with that, and the options are those to be stored, with FOLDER/base as
 * its model. code 0: they are stored, the model moves to FOLDER/base, and the checkpoints are removed; else these are
 * put back. Returns code, or that of an error. */
int cli_base_model_end(cli_training *t, const att_model_path *next, int code);
/* To be called before the folder's options are read: completes what a process that was killed has left of the two calls
 * above, or undoes it. */
int cli_base_model_recover(const char *folder);
/* Restores the folder's model from the folder `base`, if it is another one. */
int cli_base_model_restore(const char *folder, const char *base);

#endif
