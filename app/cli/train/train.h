/* The commands of attend train: their common options, the contents of FOLDER/training.json, and the loop. A command
 * adds its own options and functions, a cli_trainer. */
#ifndef CLI_TRAIN_TRAIN_H
#define CLI_TRAIN_TRAIN_H

#include "cli/base/command.h"
#include "log.h"
#include "training_images.h"
#include "cli/model/model.h"

#include <attend_train.h>

#include <jansson.h>

/* ---- Options that all trainings have ------------------------------------------- */

/* Their values; a command begins with its defaults. Without another word 0 means: no limit, off. */
typedef struct cli_training_options {
    const char *folder, *freeze;
    bool resume, json, refit;
    double epochs, minutes;
    int64_t steps, patience, batch, accumulate, shards;
    double rate, warmup, beta2, decay, clip;
    int schedule; /* an att_schedule_kind */
    int dtype;    /* 1: f16 */
    int compute;  /* an att_compute */
    int64_t validate_every, save_every, average, keep, seed, threads;
} cli_training_options;

/* Defaults that all commands share. */
#define CLI_TRAINING_DEFAULTS .accumulate = 1, .keep = 1, .seed = 1

/* clang-format off */
/* o: a cli_training_options */
#define CLI_TRAINING_FOLDER(o)                                                                                        \
    {"output", 'o', "FOLDER", .text = &(o).folder, .writes = true, .required = true,                                  \
     .help = "output folder: checkpoints and log, in the end the model"},                                             \
    {"resume", 0, NULL, .flag = &(o).resume,                                                                          \
     .help = "resume from the newest checkpoint; the result has the same bits as without interruption"}
#define CLI_TRAINING_REFIT(o)                                                                                         \
    {"refit", 0, NULL, .flag = &(o).refit,                                                                            \
     .help = "train twice: with validation, in FOLDER/validated, then from the start in FOLDER on all data, also "    \
             "what was held out, for as many epochs as were best"}
/* The options of the training itself. */
#define CLI_TRAINING_OPTIONS(o)                                                                                       \
    {"steps", 0, "N", .integer = &(o).steps, .max = 1 << 30, .quiet = true,                                           \
     .help = "stop after N steps; 0, the default: no such limit"},                                                    \
    {"minutes", 0, "N", .number = &(o).minutes, .max = 1e6, .quiet = true,                                            \
     .help = "stop after N minutes, including those of interrupted runs, at whatever learning rate, and validate "      \
             "then; 0, the default: no such limit"},                                                                 \
    {"patience", 0, "N", .integer = &(o).patience, .max = 1 << 30,                                                    \
     .help = "stop after N validations in a row without improvement (early stopping); 0: off"},                       \
    {"rate", 0, "RATE", .number = &(o).rate, .max = 10, .above_min = true, .help = "learning rate: the maximum"},     \
    {"schedule", 0, "constant|inverse-sqrt|cosine|linear", .choice = &(o).schedule,                                   \
     .help = "learning rate schedule after the warm-up; cosine and linear fall to 0 at the last step"},               \
    {"warmup", 0, "N", .number = &(o).warmup, .max = 1 << 30,                                                         \
     .help = "warm up the learning rate over N steps; less than 1: over this share of all steps"},                    \
    {"beta2", 0, "X", .number = &(o).beta2, .max = 0.999999, .above_min = true, .help = "beta2 of AdamW"},            \
    {"decay", 0, "X", .number = &(o).decay, .max = 1, .help = "weight decay"},                                        \
    {"clip", 0, "NORM", .number = &(o).clip, .max = 1e9, .help = "clip gradients to this norm; 0: off"},              \
    {"freeze", 0, "PATTERN,...", .text = &(o).freeze,                                                                 \
     .help = "leave parts of the model unchanged, such as embedding,layer.0: these, or all whose names match; '*' stands " \
             "for any characters"},                                                                                   \
    {"accumulate", 0, "N", .integer = &(o).accumulate, .min = 1, .max = 1 << 16,                                      \
     .help = "accumulate gradients over N batches"},                                                                  \
    {"shards", 0, "N", .integer = &(o).shards, .max = 1 << 16,                                                        \
     .help = "split each batch into N shards and add their gradients by a fixed tree: programs of "                    \
             "att_training_gradients on several machines get the same bits; 0: off"},                                 \
    {"validate-every", 0, "N", .integer = &(o).validate_every, .max = 1 << 30,                                        \
     .help = "validate every N steps; 0: after each epoch"},                                                          \
    {"save-every", 0, "N", .integer = &(o).save_every, .max = 1 << 30,                                                \
     .help = "save a checkpoint every N steps; 0: after each epoch"},                                                 \
    {"average", 0, "N", .integer = &(o).average, .max = 64,                                                           \
     .help = "average the last N checkpoints; 0: off"},                                        \
    {"keep", 0, "N", .integer = &(o).keep, .max = 64,                                                                 \
     .help = "checkpoints to keep when the training has finished; --resume needs one"},                               \
    {"dtype", 0, "f32|f16", .choice = &(o).dtype, .help = "type of the weights in the model"},                        \
    CLI_COMPUTE(&(o).compute,                                                                                         \
                "type of the numbers that products multiply, forward and backward; bf16 (mixed precision) is faster "  \
                "on processors with bf16 instructions, while weights, gradients and sums stay f32; auto: bf16 where "  \
                "they are faster"),                                                                                    \
    {"seed", 0, "N", .integer = &(o).seed, .max = 1e18, .help = "random seed"},                                       \
    {"json", 0, NULL, .flag = &(o).json,                                                                              \
     .help = "print a line of JSON at the end: the step whose model the folder has, its score, and if that is better " \
             "than the initial model's"},                                                                             \
    CLI_THREADS(&(o).threads)
/* Options for data whose epochs have a fixed number of steps. unit: "images"; more: the end of --epochs' help, or "" */
#define CLI_TRAINING_EPOCHS(o, unit, more)                                                                            \
    {"epochs", 0, "N", .number = &(o).epochs, .min = 1e-6, .max = 1e6, .quiet = sizeof(more) > 1,                         \
     .help = "number of epochs, unless --steps is given" more},                                            \
    {"batch", 0, "N", .integer = &(o).batch, .min = 1, .max = 1 << 20, .help = "batch size in " unit}
/* clang-format on */

/* The end of the details of every command */
#define CLI_TRAINING_DETAILS                                                                                           \
    "Reports progress to standard error and to FOLDER/log.jsonl. Ctrl-C saves a\n"                                     \
    "checkpoint and writes the model so far; if the process is killed, the steps\n"                                    \
    "since the last checkpoint are lost. To continue, --resume -o FOLDER is enough:\n"                                 \
    "the folder has all options (training.json)."

/* ---- A command ------------------------------------------------------------------- */

typedef struct cli_training cli_training;

/* The result of a validation. */
typedef struct cli_validation {
    char log[256];    /* the end of its line in the log: ", \"bleu\": 31.02" */
    char shown[256];  /* the same for standard error: ", BLEU 31.02" */
    double score;     /* greater is better; NAN: it cannot be computed */
    bool unscored;    /* it has no score, and counts neither as better nor as worse */
    double low, high; /* the 95 % interval of the score; equal: there is none */
} cli_validation;

/* The differences between the commands. Functions get the training, which is the first member of the command's struct.
 * Those that return an int return a code. NULL: there is nothing to do. */
typedef struct cli_trainer {
    const char *command;         /* "translate" */
    const char *unit;            /* the unit of progress, such as "images"; NULL: tokens */
    const char *validation;      /* the option that a validation needs: "--valid FILE" */
    const char *score, *measure; /* of a validation, as in --json and for people: "spearman", "Spearman" */
    int digits;                  /* of the measure after the point */
    bool negative;               /* the score is minus the measure, a loss */
    bool keeps_best;             /* the model is the one with the best validation, without --average */
    bool logs_options;           /* in the first line of the log */
    bool sources;                /* progress counts sources, not targets: see att_training_report */
    const cli_option *options;   /* with CLI_TRAINING_OPTIONS */
    const char *const
        *may_change; /* [up to NULL] further options that may change when the training continues; or NULL */
    const char *const *same_files; /* [up to NULL] options whose file may be elsewhere then, but is the same; those in
                                    * both lists are not read any more */
    /* [up to NULL] some of same_files, or NULL. If --resume names another file for renewed[0], a new training begins
     * with the folder's model; then these files and all options except `kept` may change. */
    const char *const *renewed, *const *kept;
    int (*check)(void *t); /* options that need others, or contradict them; sets defaults that depend on others */
    int (*read)(void *t);  /* data; sets `batches` and `validates` */
    int (*open)(void *t, const att_training_options *o); /* the training; where this fails it leaves no files */
    void (*use_all)(void *t); /* for --refit: makes options hold out nothing, and closed data unread; or NULL */
    void (*report)(const void *t, const att_training_info *info); /* reports the data */
    int (*validate)(void *t, cli_validation *v);
    const char *(*quantity)(const void *t); /* the loss's name at this step; or NULL: "loss" */
    int (*after_step)(void *t);
    bool (*has_no_model)(void *t, bool stopped); /* after these steps, and states why */
    int (*fail_unscored)(const void *t); /* the error that no validation has a score; NULL: that is not an error */
    void (*close)(void *t);
} cli_trainer;

/* Sums over the steps since the last validation, and the best of all validations. */
typedef struct cli_training_state {
    double loss;       /* the sum of n steps */
    double norm, rate; /* of the last step */
    double best;       /* score */
    double low, high;  /* its interval */
    int64_t n, epoch;
    int64_t worse; /* validations since the best */
} cli_training_state;

/* The contents of FOLDER/training.json: at the start of the process, and to be written. */
typedef struct cli_training_file {
    json_t *stored;              /* or NULL. Values of options point into it, */
    json_t *paths;               /* and into this one */
    json_t *bytes, *checksums;   /* of the files, once they have been stored; or NULL */
    json_t *trained_on;          /* the data on which the initial model was trained (cli_training_data_of); NULL: as
                                  * stored */
    bool may_renew;              /* the first option of kind->renewed was typed */
    bool typed[CLI_MAX_OPTIONS]; /* of kind->options */
    int path_error; /* the first error, an errno, of checking a path; 0: none. Without this, a failing disk would change
                     * the stored options. */
} cli_training_file;

struct cli_training {
    const cli_trainer *kind;
    cli_training_options options;
    bool continues; /* --resume, and not with another file of kind->renewed */
    bool renewed;   /* it begins again, because of such a file */
    cli_training_file file;
    att_ctx *ctx;
    att_training *training;
    cli_training_images images; /* whose files have been checked, if there are some */
    /* Set by the command */
    int64_t batches;       /* of an epoch; 0: not known */
    int64_t evaluation_id; /* see att_training_options */
    bool validates;        /* there is data for it */
    const char *used_by;   /* the command that takes the model; NULL: that of the trainer */
    bool has_base;         /* it begins with a model, which is a candidate for the best */
    bool in_folder;        /* the output folder has that, too, and keeps it until there is a better one */
    int64_t new_items;     /* new items, which the old log does not have */
    double (*seconds_waiting)(const att_training *t); /* of all steps, for images; or NULL */
    att_model_path model;                             /* a path for the command */
    char note[400];                                   /* memory of options.note of the training */
    const char *refit_folder; /* of the second training of --refit, if this is the first; or NULL */
    att_model_path first_folder;
    int64_t best_step; /* whose model is the best validated one, at the end */
    /* private */
    int64_t steps, validate_every, save_every; /* as options state; steps 0: no limit */
    bool stays;                                /* the folder's model is the one that it had */
    double score;                              /* of the model that has been written; NAN: unknown */
    double low, high;                          /* the interval of that score; equal: there is none */
    double waited, validated;                  /* at the last validation: waits for images, the time of it */
    cli_log log;
    cli_training_state state;
    double seconds, begin; /* spent by earlier processes; the start of this one */
};

/* Completes the options when the command line has been parsed: cli_command.complete. With --resume, sets the options
 * that were not given to the stored ones, and marks them in `given`. Errors: a given option differs, but must not; a
 * file has changed; the training is one of another command; it stored no options. Without --resume: the folder has a
 * training already. */
int cli_training_complete(cli_training *t, const cli_trainer *kind, bool *given);
/* Trains until a limit or a signal, saves a checkpoint of the last step and writes the model. Reports to standard error
 * and to FOLDER/log.jsonl, which has the same lines, except the seconds, whether or not the training was interrupted.
 * Returns an exit code. */
int cli_training_run(cli_training *t);

/* ---- For a command's functions --------------------------------------------------- */

/* Returns the share of --minutes that has passed; 0: there is no such limit. */
double cli_training_time(const cli_training *t);
/* Makes reports begin again after this step, because the training then minimizes another loss. */
void cli_training_forget(cli_training *t);
/* Returns whether the learning rate of this att_schedule_kind falls to 0 at the last step. */
bool cli_schedule_falls(int kind);
/* Reports like cli_status an error of a library function that opens a training. An error about the function's options
 * is a misuse, and the message has their names on the command line, such as --label-smoothing. */
int cli_training_status(const att_ctx *ctx, att_status s);
/* Returns the number of epochs of n steps. */
double cli_training_epochs(const cli_training *t, double n);
/* Finds the initial model. *name: its name, which becomes its folder, t->model, as the training stores it. */
int cli_training_find_model(cli_training *t, att_subject subject, const char **name);

/* *bleu: of greedy translations of the file `texts` by the model in training, against the file `references`, line by
 * line; the first few translations are printed to standard error. */
int cli_training_bleu(const cli_training *t, const char *texts, const char *references, double *bleu);

/* ---- For this room --------------------------------------------------------------- */

/* Runs the training in a folder that cli_training_run has opened. */
int cli_training_loop(cli_training *t);
/* Runs a validation, which ends a run of steps, and keeps the model if it is the best and keeping is wanted. */
int cli_training_validate(cli_training *t, cli_validation *v);
/* Writes the model after the last step. stopped: a signal came before a limit. *none: there is no model yet. */
int cli_training_write(cli_training *t, bool stopped, bool *none);
/* Prints the line of --json about the model that the folder has now. Returns code, or that of an error. */
int cli_training_print_result(const cli_training *t, int code);

/* Reads FOLDER/training.json for cli_training_complete. */
int cli_training_options_read(cli_training *t, bool *given);
/* Returns whether the option was given. */
bool cli_training_typed(const cli_training *t, const char *name);
/* Stores the current options in the folder's training.json. Paths in --output are relative to it, such as "./base", so
 * that it can be moved. finished: the step after which the training has finished; 0: it has not. */
int cli_training_options_write(cli_training *t, const char *folder, int64_t finished);
/* Returns what the training's products compute, "f32" or "bf16", also where --compute is auto. NULL: nothing yet. */
const char *cli_training_compute(const cli_training *t);
/* Writes the options as a line of the log of a training, of step 0, malloc'd. */
int cli_training_options_line(cli_training *t, char **line);
/* Returns the step after which the stored training had finished, or 0. */
int64_t cli_training_finished(const cli_training *t);

#endif
