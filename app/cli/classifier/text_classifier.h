/* Text classifiers, opened by name. */
#ifndef CLI_CLASSIFIER_TEXT_CLASSIFIER_H
#define CLI_CLASSIFIER_TEXT_CLASSIFIER_H

#include "cli/model/model.h"

#include <attend_text_classifier.h>

typedef struct cli_text_classifier {
    cli_model base;
    const att_text_classifier *model;
    att_text_classifier_info info;
} cli_text_classifier;
extern const cli_model_kind cli_text_classifier_kind;

/* Fails unless the model has one label, a score: with more it classifies. */
int cli_text_classifier_need_score(const cli_text_classifier *m);
/* Fails if --max-tokens is more than the model takes. */
int cli_text_classifier_check_tokens(const cli_text_classifier *m, int64_t max_tokens);
/* Reports how many of n texts or pairs, `items`, were truncated to max_tokens, if any. */
void cli_text_classifier_note(const cli_text_classifier *m, int64_t truncated, int64_t n, const char *items,
                              int64_t max_tokens);

/* clang-format off */
#define CLI_TEXT_CLASSIFIER_OPTION(to)                                                       \
    {"model", 'm', "MODEL", .text = (to),                                                    \
     .help = "folder of a text classifier, OWNER/NAME in the cache of the Hugging Face Hub, or " \
             "its name in the models folder; default: the only one there"}
/* In the order of att_text_activation */
#define CLI_ACTIVATION_OPTION(to)                                                            \
    {"activation", 0, "model|identity|sigmoid", .choice = (to), .quiet = true,                            \
     .help = "what scores are made of logits by; default: what the model's folder names, without that sigmoid"}
#define CLI_MAX_TOKENS_OPTION(to)                                                            \
    {"max-tokens", 0, "N", .integer = (to), .max = INT32_MAX, .quiet = true,                 \
     .help = "truncate a pair to N tokens, the longer text first; default: what the model takes"}
/* clang-format on */

#endif
