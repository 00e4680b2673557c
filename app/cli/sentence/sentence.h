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

/* Finds the text before each text of a model: `given` is the value of --`option`, the name of one of the model's
 * prompts or the text itself, where a name is letters, digits, - and _ alone. NULL: the prompt of the name `usual`; if
 * that is NULL, too, the default prompt. *prompt is valid as long as the model and `given`. Error: no such prompt. */
int cli_sentence_prompt(const cli_sentence *m, const char *option, const char *given, const char *usual,
                        const char **prompt);

/* clang-format off */
#define CLI_PROMPT(to, name, what, usual)                                                    \
    {name, 0, "PROMPT", .text = (to), .quiet = true,                                         \
     .help = "text before each " what ", or the name of one of the model's prompts; \"\": none; default: " usual}
#define CLI_SENTENCE_MODEL_OPTION(to)                                                        \
    {"model", 'm', "MODEL", .text = (to), .env = "ATTEND_MODEL",                             \
     .help = "model folder, OWNER/NAME in the cache of the Hugging Face Hub, or "            \
             "name of a model in the models folder; default: the only sentence model there"}
/* clang-format on */

#endif
