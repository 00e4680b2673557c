/* Checks that recommenders were not trained on the actions that measure them, by their training.json. */
#ifndef CLI_RECOMMEND_TRAINING_DATA_CHECK_H
#define CLI_RECOMMEND_TRAINING_DATA_CHECK_H

#include "interactions.h"

#include <jansson.h>

/* The models that a training begins with, oldest first, as training.json stores them: an array of objects "model", a
 * name; "options" of log and split, "bytes" and "checksums" of its training, as far as they are known; "renewed", where
 * it is the model in the same folder and the log has grown. */

/* Returns the models that this training (NULL: not known) began with, and the model itself; to be released. */
json_t *cli_training_data_of(const json_t *training, const char *model, bool renewed);

/* Returns the split of a training by its options, with defaults for those that it leaves out. */
void cli_training_data_split(const json_t *options, cli_interactions_options *o);

/* Sets what was not typed of CLI_INTERACTIONS_OPTIONS, rows of `options`, to what the training with the options `all`
 * (or NULL) had; format and columns only of a log at `path` with the same ending. typed[i]: option i was. Reports what
 * was typed and differs; name: of the model. `all` stays, as options point into it. Returns a code. */
int cli_check_reading(const json_t *all, const char *name, const char *path, const cli_option *options,
                      const bool *typed);
/* Reports of each of `trained_on` (or NULL) in which way it may have been trained on what is held out by `here`, whose
 * path is that of the log; name: of the model that began with it. Returns a code. */
int cli_training_data_note(const json_t *trained_on, const char *name, const cli_interactions_options *here);
/* Sets *other: whether the log is not that of the training. Returns a code. */
int cli_training_data_other_log(const json_t *training, const char *path, bool *other);

#endif
