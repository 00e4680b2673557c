/* The model that a training in its folder begins with, which the folder's own model then replaces. */
#ifndef CLI_TRAIN_BASE_MODEL_H
#define CLI_TRAIN_BASE_MODEL_H

#include "train.h"

#include <attend_model.h>

/* Copies the model to FOLDER/next, which *next becomes, and puts the checkpoints of the training that is there aside to
 * it. Fails while a process trains in the folder. */
int cli_base_model_begin(const char *folder, att_model_path *next);
/* Ends the change of the model. To be called when the next training has begun with it, and the options, with
 * FOLDER/base as the model, are ready to be stored. If code is 0, stores them, moves the model to FOLDER/base and
 * removes the checkpoints; otherwise restores the checkpoints. Returns code, or that of an error. */
int cli_base_model_end(cli_training *t, const att_model_path *next, int code);
/* Completes or undoes the two calls above after a process was killed between them. To be called before the folder's
 * options are read. */
int cli_base_model_recover(const char *folder);
/* Restores the folder's model from the folder `base`, if it is another one. */
int cli_base_model_restore(const char *folder, const char *base);

#endif
