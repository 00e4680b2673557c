/* attend classify, if the model is a text classifier. */
#ifndef CLI_CLASSIFIER_CLASSIFY_TEXTS_H
#define CLI_CLASSIFIER_CLASSIFY_TEXTS_H

#include "cli/base/records.h"
#include "cli/model/model.h"

/* The values of the options */
typedef struct cli_texts_to_classify {
    const char *model, *file, *pairs_path, *output;
    cli_texts texts, pairs;
    int format; /* as of cli_records_open */
    cli_types types;
    int64_t top, threads, skip;
    bool json;
} cli_texts_to_classify;

/* Prints the labels of texts: those of the options, or the lines of files, the arguments [n]. */
int cli_classify_texts(const cli_texts_to_classify *o, int n, char **arguments);

#endif
