/* attend train: models learn from the user's own texts. */
#include "cli/train/train.h"

static const cli_command *const commands[] = {&train_embed, &train_translate, NULL};

const cli_command cli_train = {
    .name = "train",
    .summary = "a model learns from your own texts",
    .arguments = "COMMAND",
    .details = "A training has a folder of its own, which becomes the model's: its vocabulary,\n"
               "settings, checkpoints, a log (attend plot draws it) and at the end its weights.",
    .commands = commands,
};
