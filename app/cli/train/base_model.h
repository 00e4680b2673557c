/* The model that a training in its folder begins with, which the folder's own model then replaces. */
#ifndef CLI_TRAIN_BASE_MODEL_H
#define CLI_TRAIN_BASE_MODEL_H

#include "cli/base/cli.h"

/* Copies the recommender in the folder to FOLDER/base, and removes the checkpoints of the training that made it; path:
 * receives that of the copy. Each file appears completely or not at all. */
int cli_base_model_copy(const char *folder, att_model_path *path);

#endif
