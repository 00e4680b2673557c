/* --shard and --resume: a part of a command's input that a process of its own computes, and parts that are finished. */
#ifndef CLI_BASE_SHARD_H
#define CLI_BASE_SHARD_H

#include "command.h"

/* The values of the options */
typedef struct cli_shard_options {
    const char *text; /* "I/N", or NULL */
    bool resume;
} cli_shard_options;
extern cli_shard_options cli_shard;

/* clang-format off */
#define CLI_SHARD                                                                            \
    {"shard", 0, "I/N", .text = &cli_shard.text, .quiet = true,                              \
     .help = "compute only part I of N of the input, from 1/N to N/N: contiguous parts, so that cat joins their outputs; " \
             "in the name of an output, {shard} stands for I-of-N"},                         \
    {"resume", 0, NULL, .flag = &cli_shard.resume,                                           \
     .help = "do nothing if the output is finished, and was made of the same input by the same model and options"}
/* clang-format on */

/* Checks --shard, and replaces "{shard}" in the outputs of the command by I-of-N, with zeros so that names sort: the
 * parser calls it when all options have their values. Returns a code. */
int cli_shard_begin(const cli_command *c);

/* Returns whether --shard is given. */
bool cli_shard_given(void);

/* Rows first .. end - 1 of an input */
typedef struct cli_range {
    int64_t first, end;
} cli_range;
/* Returns those of n >= 0 rows that are of this process: without --shard all. The first n % N parts have one more. */
cli_range cli_shard_of(int64_t n);

#endif
