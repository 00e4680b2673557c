/* The subcommands of attend train, and what they have in common. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"

/* What a validation has found. */
typedef struct cli_validation {
    char log[256];   /* behind the rest of the line: ", \"bleu\": 31.02" */
    char shown[256]; /* the same for who looks: ", BLEU 31.02" */
    double score;    /* greater is better */
} cli_validation;

typedef struct cli_training {
    att_ctx *ctx;
    att_training *training;
    const char *folder;
    int64_t steps, save_every, validate_every;
    int64_t patience; /* validations that may be no better one after the other; 0: any number */
    double minutes;   /* as steps: 0 is no limit */
    bool resume;
    bool both;                                      /* sides are counted, as tokens */
    bool judged;                                    /* validate calls att_training_judge */
    int (*validate)(void *user, cli_validation *v); /* NULL: there is nothing to validate by */
    void (*begun)(const att_train_report *r);       /* NULL, or called after the first step of all */
    void *user;
    /* private */
    FILE *log;
    double best;
    int64_t worse; /* validations since the best */
} cli_training;
/* Learns until a limit or a signal; then the newest checkpoint has all of it. Says how it is getting on, on standard
 * error and in FOLDER/log.jsonl. */
int cli_learn(cli_training *t);

extern const cli_command train_embed, train_translate;

#endif
