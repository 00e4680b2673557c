/* The files that a command reads. No output may replace one of them, however the paths are spelled. An output is an
 * option with `writes`. Inputs are all other options whose value is a path, files among the arguments, standard input,
 * and the models that cli_model_find finds. */
#ifndef CLI_IN_USE_H
#define CLI_IN_USE_H

#include "command.h"

/* Returns whether `value` is one of the names of inputs in cli_option.value and cli_command.arguments. */
bool cli_is_path(const char *value);
/* Returns whether a file of this name belongs to a model or a training. Others, such as pictures and vectors that
 * earlier commands have written there, may be replaced. */
bool cli_is_model_file(const char *name);

/* Checks all outputs. The parser calls it when all options have their values. Returns 0, or a code after a message that
 * names an output and the input that it would replace, or its missing folder. */
int cli_in_use_begin(const cli_command *c, int n, char *const *arguments);
/* Checks all outputs against a model that was found: `name` for messages, `path` of its folder or .gguf file. Returns
 * as above. */
int cli_in_use_model(const char *name, const char *path);
/* Checks a file that no option names, before it is written. Returns as above. */
int cli_in_use_check(const char *path);

#endif
