/* attend evaluate: how good a model is, measured on a text, on images or on a log. */
#include "cli/base/command.h"
#include "cli_list.h" /* written by the build: CLI_EVALUATE_LIST */

#define DECLARE(name) extern const cli_command cli_##name;
CLI_EVALUATE_LIST(DECLARE)
#define ROW(name) &cli_##name,
static const cli_command *const commands[] = {CLI_EVALUATE_LIST(ROW) NULL};

const cli_command cli_evaluate = {
    .name = "evaluate",
    .summary = "measure how good a model is on held-out data",
    .arguments = "COMMAND",
    .commands = commands,
};
