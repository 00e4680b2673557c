/* --resume: the record beside a finished output, .NAME.finished, a JSON object that states what the output was made of:
 * the version, the command, its options, digests of its input, its model and the output. */
#ifndef CLI_BASE_FINISHED_H
#define CLI_BASE_FINISHED_H

#include "command.h"

/* Begins the record of a command with these arguments [n] if --resume is given. The parser calls it when all options
 * have their values. Returns a code. */
int cli_finished_begin(const cli_command *c, int n, char *const *arguments);
/* Adds standard input to what the output is made of, if it is going to be read: before cli_finished_check. Fails if it
 * is a pipe. */
int cli_finished_add_input(void);
/* Adds the model that was found, whose folder or .gguf file is at `path`. Returns CLI_FINISHED if the output exists and
 * its record states the same; another code after a message, which names what differs. cli_model_find calls it. */
int cli_finished_check(const char *path);
/* Writes the record of an output that is complete. Returns a code. */
int cli_finished_write(void);

#endif
