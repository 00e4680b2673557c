/* The subcommands of attend train. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"

extern const cli_command train_translate;

#endif
