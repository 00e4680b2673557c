/* The subcommands of attend evaluate. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include "cli/base/cli.h"

extern const cli_command evaluate_caption, evaluate_classify, evaluate_language, evaluate_recommend;

#endif
