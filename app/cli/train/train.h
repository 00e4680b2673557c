/* The subcommands of attend train, and what they have in common. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/base/cli.h"
#include "log.h"

/* What a validation has found. */
typedef struct cli_validation {
    char log[256];   /* behind the rest of the line: ", \"bleu\": 31.02" */
    char shown[256]; /* the same for who looks: ", BLEU 31.02" */
    double score;    /* greater is better */
} cli_validation;

/* What a training knows of its steps since the last validation, and of all validations. */
typedef struct cli_training_so_far {
    double loss; /* the sum of n steps */
    double norm, rate;
    double best; /* score */
    int64_t n, epoch;
    int64_t worse; /* validations since the best */
} cli_training_so_far;

typedef struct cli_training {
    att_ctx *ctx;
    att_training *training;
    const char *folder;
    int64_t steps, save_every, validate_every;
    int64_t patience; /* validations that may be no better one after the other; 0: any number */
    double minutes;   /* as steps: 0 is no limit */
    bool resume;
    bool both;                                      /* sides are counted, as tokens */
    int (*validate)(void *user, cli_validation *v); /* NULL: there is nothing to validate by */
    void (*begun)(const att_train_report *r);       /* NULL, or called after the first step of all */
    void *user;
    char note[256]; /* for options.note of what opens the training */
    /* private */
    cli_log log;
    cli_training_so_far so_far;
} cli_training;
/* Learns until a limit or a signal; then the newest checkpoint has all of it. Says how it is getting on, on standard
 * error and in FOLDER/log.jsonl, which has the same lines whether or not the training was stopped or killed. */
int cli_learn(cli_training *t);

/* Greedy translations of the lines of a file by the model as it is, and their BLEU against those of another; prints a
 * few of them. */
int cli_train_bleu(const cli_training *t, const char *texts, const char *references, double *bleu);

extern const cli_command train_embed, train_translate;

#endif
