/* The files that a command reads: no output may replace one of them, however the paths are spelled. An output is an
 * option with `writes`; what is read are all others whose value is a path, files among the arguments, standard input,
 * and the models that cli_model_find finds. */
#ifndef CLI_IN_USE_H
#define CLI_IN_USE_H

#include "command.h"

/* The names of what an input may be, in cli_option.value and cli_command.arguments. */
bool cli_is_path(const char *value);

/* Called by the parser when all options have their values. Returns 0, or a code after a message that names an output
 * and what it would replace, or the folder that it lacks. */
int cli_in_use_begin(const cli_command *c, int n, char *const *arguments);
/* Called when a model has been found: `name` for messages, its folder or .gguf file. Returns as above. */
int cli_in_use_model(const char *name, const char *path);
/* Called before a file is written that no option names. Returns as above. */
int cli_in_use_check(const char *path);

#endif
