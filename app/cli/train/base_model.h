/* The model that a training in its folder begins with, which the folder's own model then replaces. */
#ifndef CLI_TRAIN_BASE_MODEL_H
#define CLI_TRAIN_BASE_MODEL_H

#include "cli/base/cli.h"

/* Copies the model to FOLDER/next, which *next becomes, and puts the checkpoints of the training that is there aside to
 * it. Fails while a process trains in the folder. */
int cli_base_model_begin(const char *folder, att_model_path *next);
/* To be called when the next training has begun with that. code 0: it moves to FOLDER/base, which *base becomes, and
 * the checkpoints are removed; else they are put back. Returns code, or that of an error. */
int cli_base_model_end(const char *folder, const att_model_path *next, att_model_path *base, int code);

#endif
