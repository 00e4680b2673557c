/* attend evaluate: how good a model is, measured on a text, on images or on a log. */
#include "cli/evaluate/evaluate.h"

static const cli_command *const commands[] = {&evaluate_caption, &evaluate_classify, &evaluate_language,
                                              &evaluate_recommend, NULL};

const cli_command cli_evaluate = {
    .name = "evaluate",
    .summary = "measure how good a model is on held-out data",
    .arguments = "COMMAND",
    .commands = commands,
};
