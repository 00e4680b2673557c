/* The options of a training, which its folder stores: FOLDER/training.json. */
#ifndef CLI_TRAIN_OPTIONS_H
#define CLI_TRAIN_OPTIONS_H

#include "cli/base/command.h"

#include <jansson.h>

typedef struct cli_training_options {
    const char *command; /* "translate" */
    const cli_option *table;
    const char **folder;          /* the variable of --output */
    bool *resume;                 /* of --resume */
    const char *const *free;      /* [up to NULL] options that may change when the training continues */
    const char *const *same_file; /* [up to NULL] options whose file may be elsewhere then, but is the same;
                                   * those in both lists are not read any more */
    /* [up to NULL] of same_file: where the first is typed with another file, --resume begins a new training, in which
     * the files of all may be others, and all options but those of `kept`; or NULL */
    const char *const *renewed, *const *kept;
} cli_training_options;

/* To be called when the command line has been parsed; given[i]: option i of the table was typed. With --resume, sets
 * the options that were not typed to the stored ones, and marks them as given. Errors: an option that was typed and
 * differs, but may not; a file that has changed; the training is one of another command; it stored no options. Without
 * --resume: the folder has a training already. */
int cli_training_options_read(const cli_training_options *o, bool *given);
/* Does the training begin anew, as a file of o->renewed is another one than it had? *o->resume is false then. */
bool cli_training_options_renewed(void);
/* The same error for an option of `free` that may not change for a reason of the command's; `why` ends the message. */
int cli_training_options_same(const cli_training_options *o, const char *name, const char *why);
/* What the model that the training begins with had learnt from (see cli_learnt), to be stored beside the options; the
 * array becomes theirs. Without a call, what is stored stays. */
void cli_training_options_trained(json_t *learnt);
/* Stores the options as they are; paths in the folder relative to it, "./base", so that it can be moved. finished: the
 * step after which the training has finished; 0: it has not. */
int cli_training_options_write(const cli_training_options *o, int64_t finished);
/* The same, to another folder's training.json. */
int cli_training_options_write_to(const cli_training_options *o, const char *folder, int64_t finished);
/* The options as a line of the log of a training, of step 0, malloc'd. */
int cli_training_options_line(const cli_training_options *o, char **line);
/* The step after which the stored training had finished, or 0. */
int64_t cli_training_finished(void);

/* clang-format off */
#define CLI_TRAINING_JSON(to)                                                                \
    {"json", 0, NULL, .flag = (to),                                                          \
     .help = "print a line of JSON at the end: the step whose model the folder has, its score, and if it is better than " \
             "the model to begin with"}
/* clang-format on */

#endif
