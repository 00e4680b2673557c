/* attend train: models learn from the user's own texts, images and logs. */
#include "cli/base/command.h"
#include "cli_list.h" /* written by the build: CLI_TRAIN_LIST */

#define DECLARE(name) extern const cli_command cli_##name;
CLI_TRAIN_LIST(DECLARE)
#define ROW(name) &cli_##name,
static const cli_command *const commands[] = {CLI_TRAIN_LIST(ROW) NULL};

const cli_command cli_train = {
    .name = "train",
    .summary = "train a model on your own texts, images or logs",
    .arguments = "COMMAND",
    .details = "A training writes to a folder, which becomes that of the model: vocabulary,\n"
               "configuration, checkpoints, log (for attend plot) and the final weights.",
    .commands = commands,
};
