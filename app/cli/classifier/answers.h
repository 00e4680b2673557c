/* What a classifier answered, beside what is right: accuracy, calibration, confusions. */
#ifndef CLI_CLASSIFIER_ANSWERS_H
#define CLI_CLASSIFIER_ANSWERS_H

#include "cli/base/command.h"

#include <attend_metric.h>

/* Counts of a class: its examples, the examples that were classified as it, and those classified rightly */
typedef struct cli_class_count {
    int64_t examples, answers, right;
} cli_class_count;

/* An example that was classified wrongly. */
typedef struct cli_wrong_answer {
    int64_t example, class, answer;
    float probability; /* of the answer */
} cli_wrong_answer;

typedef struct cli_answers {
    att_ctx *ctx;
    const char *unit;    /* "images" */
    const char *compute; /* what the model's products compute */
    int64_t classes, n;  /* n: examples; finally only those that were counted */
    const char **label;  /* [classes]: names of the classes */
    int64_t broken;      /* examples that could not be read; for the report */
    double seconds;      /* that it took */
    /* private */
    bool json;
    cli_class_count *of; /* [classes] */
    int64_t *confusion;  /* [classes, classes]: class, answer; NULL: it is not shown */
    int64_t counted, right, right_top;
    float *confidence;       /* [n]: the probability of the answer, of those that are counted */
    bool *is_right;          /* [n] */
    cli_wrong_answer *wrong; /* [n]: the first `counted - right` ones; or NULL */
    att_interval accuracy, balanced;
    double calibration_error;
} cli_answers;

typedef struct cli_answers_options {
    const char *confusion, *wrong; /* paths of --confusion and --wrong, or NULL */
    bool json;
} cli_answers_options;
/* Refuses --confusion of too many classes. */
int cli_answers_check(const cli_answers *a, const cli_answers_options *o);
/* Prepares counts of a->n examples. ctx, unit, classes, n and label have been set. */
int cli_answers_open(cli_answers *a, const cli_answers_options *o);
/* Counts example number `example` of a class, whose probabilities are p [classes]. */
void cli_answers_add(cli_answers *a, int64_t example, int64_t class, const float *p);
/* Computes the figures, draws and writes what the options name, and prints. name: of an example, for --wrong; NULL: its
 * number. Errors: no example was counted. */
int cli_answers_finish(cli_answers *a, const cli_answers_options *o, const char *(*name)(const void *user, int64_t i),
                       const void *user);
void cli_answers_close(cli_answers *a);

#endif
