/* The model that a training in its folder begins with, which the folder's own model then replaces. */
#ifndef CLI_TRAIN_BASE_MODEL_H
#define CLI_TRAIN_BASE_MODEL_H

#include "cli/base/cli.h"

/* Copies the recommender in the folder to FOLDER/base. Each file appears completely or not at all.
 * Fails while a training runs there. */
int cli_base_model_copy(const char *folder);

#endif
