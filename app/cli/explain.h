/* The command `attend explain`, for the program that runs it. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli/base/command.h"

enum { EXPLAIN_MAX_VECTORS = 256 }; /* more is no longer explained by reading it */

/* The values of its options */
typedef struct explain_request {
    const char *input;
    int64_t query;
    int language;                               /* 0 English, 1 Japanese */
    const char *model, *sentence, *image, *svg; /* model, image NULL: those that come with attend */
} explain_request;

extern explain_request explain_asked;
extern const cli_command cli_explain;

/* Runs a chapter, or lists them, as the options state (app/explain/explain.c). Returns the exit code. */
int explain_run(int n, char **arguments);

#endif
