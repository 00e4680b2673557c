/* attend train: models learn from the user's own texts, images and logs. */
#include "cli/train/train.h"

static const cli_command *const commands[] = {&train_caption,   &train_classify,  &train_embed,
                                              &train_recommend, &train_translate, NULL};

const cli_command cli_train = {
    .name = "train",
    .summary = "train a model on your own texts, images or logs",
    .arguments = "COMMAND",
    .details = "A training writes to a folder, which becomes that of the model: vocabulary,\n"
               "configuration, checkpoints, log (for attend plot) and the final weights.",
    .commands = commands,
};
