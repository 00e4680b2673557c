/* --refit: trains twice, with validation in FOLDER/validated, and then in FOLDER on all data for the epochs that were
 * best there. Each of the two is a training like others, so that it resumes as they do. */
#ifndef CLI_TRAIN_REFIT_H
#define CLI_TRAIN_REFIT_H

#include "train.h"

/* Begins to read the options: finds which of the two trainings to make in the folder, and if it is the first, makes
 * that folder the output. Errors: the folder has a training. */
int cli_refit_begin(cli_training *t);
/* Checks the options of the first training, whose limits are known. falls: its last step decides learning rates. */
int cli_refit_check(const cli_training *t, bool falls);
/* After the first training, whose best model was trained for this number of epochs: turns t into the second one. Error:
 * no step was better than the model to begin with. */
int cli_refit_next(cli_training *t, double epochs);

#endif
