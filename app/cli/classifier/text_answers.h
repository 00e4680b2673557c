/* attend evaluate classify of texts. */
#ifndef CLI_CLASSIFIER_TEXT_ANSWERS_H
#define CLI_CLASSIFIER_TEXT_ANSWERS_H

#include "answers.h"
#include "cli/model/model.h"

typedef struct cli_texts_to_evaluate {
    const char *model, *data; /* data: a table of texts, or of pairs, and their labels */
    int format;               /* as of cli_records_open */
    int64_t skip;             /* malformed rows that may be left out */
    cli_types types;
    int64_t threads;
    const cli_answers_options *answers;
} cli_texts_to_evaluate;
int cli_evaluate_texts(const cli_texts_to_evaluate *o);

#endif
