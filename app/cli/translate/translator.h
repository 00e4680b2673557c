/* Translators, opened by name. */
#ifndef CLI_TRANSLATE_TRANSLATOR_H
#define CLI_TRANSLATE_TRANSLATOR_H

#include "cli/model/model.h"

#include <attend_translate.h>

typedef struct cli_translator {
    cli_model base;
    const att_translator *translator;
    att_encoder_decoder_info info;
} cli_translator;
extern const cli_model_kind cli_translator_kind;

/* clang-format off */
/* An option for the model. `to` is initialized with CLI_TRANSLATOR_SHIPPED. */
#define CLI_TRANSLATOR_OPTION(to)                                                            \
    {"model", 'm', "MODEL", .text = (to),                                                    \
     .help = "model folder, OWNER/NAME in the cache of the Hugging Face Hub, or "            \
             "name of a model in the models folder or of one that comes with attend"}
/* clang-format on */

#endif
