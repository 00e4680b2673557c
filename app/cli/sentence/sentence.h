/* Sentence models, opened by name. */
#ifndef CLI_SENTENCE_SENTENCE_H
#define CLI_SENTENCE_SENTENCE_H

#include "cli/model/model.h"

#include <attend_sentence.h>

typedef struct cli_sentence {
    cli_model base;
    const att_sentence *sentence;
    att_sentence_info info;
} cli_sentence;
extern const cli_model_kind cli_sentence_kind;

/* clang-format off */
#define CLI_SENTENCE_MODEL_OPTION(to)                                                        \
    {"model", 'm', "MODEL", .text = (to), .env = "ATTEND_MODEL",                             \
     .help = "model folder, or name of a model in the models folder; default: the only sentence model there"}
/* clang-format on */

#endif
