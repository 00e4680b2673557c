/* The subcommands of attend train, and what they have in common. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/base/command.h"
#include "log.h"
#include "options.h"
#include "training_images.h"

/* The result of a validation. */
typedef struct cli_validation {
    char log[256];   /* the end of its line in the log: ", \"bleu\": 31.02" */
    char shown[256]; /* the same for standard error: ", BLEU 31.02" */
    double score;    /* greater is better */
} cli_validation;

/* Sums over the steps since the last validation, and the best of all validations. */
typedef struct cli_training_state {
    double loss;       /* the sum of n steps */
    double norm, rate; /* of the last step */
    double best;       /* score */
    int64_t n, epoch;
    int64_t worse; /* validations since the best */
} cli_training_state;

typedef struct cli_training {
    att_ctx *ctx;
    att_training *training;
    const char *folder;
    int64_t steps, save_every, validate_every;
    int64_t patience; /* validations in a row that may bring no improvement; 0: any number */
    int64_t keep;     /* checkpoints that stay when it has finished */
    double minutes;   /* of all processes that have continued it; as steps: 0 is no limit */
    bool resume;
    bool options_first;                             /* the log's first line has the options */
    bool sources;                                   /* progress counts sources, not targets: see att_training_report */
    const char *things;                             /* what else it counts: "images"; or NULL */
    int (*validate)(void *user, cli_validation *v); /* or NULL: no validation */
    /* Validates the model that the training begins with, before the first step: a candidate for the best; or NULL */
    int (*validate_first)(void *user, cli_validation *v);
    const char *(*quantity)(const void *user);       /* the loss's name at this step; or NULL: "loss" */
    void (*describe)(const att_training_info *info); /* says what pairs it has, before the first step; or NULL */
    /* Writes the model; stopped: a signal came before a limit, and the training can continue. */
    int (*write)(void *user, bool stopped);
    void *user;
    const cli_training_options *options;
    int (*after_step)(void *user); /* or NULL */
    cli_training_images *images;   /* whose files have been checked, or NULL */
    bool none;                     /* set by `write`: there is no model yet, for the reason that it has said */
    bool stays;                    /* set by `write`: the folder's model is the one that it had */
    char note[320];                /* where options.note of the training points to */
    /* private */
    cli_log log;
    cli_training_state state;
    double seconds, begin; /* spent by earlier processes; the start of this one */
} cli_training;
/* Trains until a limit or a signal, saves a checkpoint of the last step and writes the model. Reports to standard error
 * and to FOLDER/log.jsonl, which has the same lines whether or not the training was stopped or killed in between, but
 * for the seconds. To be called after cli_end_later. */
int cli_training_run(cli_training *t);

/* The share of --minutes that has passed; 0: there is no such limit. */
double cli_training_time(const cli_training *t);
/* What the training reports begins anew after this step, as it learns something else. */
void cli_training_forget(cli_training *t);

/* Says that no step was better than the model to begin with, by a measure that it prints with `digits`; `stays` is set.
 * more: items that it has not had. */
void cli_training_report_kept(const cli_training *t, const char *measure, int digits, int64_t more);
/* --json: prints what model the folder has now. name: of its score. Returns code, or that of an error. */
int cli_training_print_result(const cli_training *t, const char *name, int code);

/* As cli_status, of a library's function that opens a training: what it says of its options has their names here, as
 * --label-smoothing, and is a misuse. */
int cli_training_status(const att_ctx *ctx, att_status s);

/* *bleu: of greedy translations of the file `texts` by the model in training, against the file `references`, line by
 * line; the first few translations are printed to standard error. */
int cli_training_bleu(const cli_training *t, const char *texts, const char *references, double *bleu);

#endif
