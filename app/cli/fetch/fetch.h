/* The command `attend fetch`, for the programs that have it. */
#ifndef CLI_FETCH_FETCH_H
#define CLI_FETCH_FETCH_H

#include "cli/base/command.h"

extern const cli_command cli_fetch;
extern bool cli_fetch_json; /* --json */

/* Downloads a model of known_models.h by pip; name NULL: lists them. */
int cli_fetch_known(const char *name);
/* Returns whether an argument names a model of the Hugging Face Hub. */
bool cli_fetch_is_of_hub(const char *name);

#endif
