/* The command `attend serve`, for the program that runs it. */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include "cli/base/command.h"
#include "cli/model/model.h"

/* The values of its options */
typedef struct serve_settings {
    cli_texts models;  /* names or paths; none: all of the models folder and those that come with attend */
    cli_texts aliases; /* "NAME=MODEL" */
    cli_texts keys, origins, hosts;
    const char *host, *key_file;
    int64_t port, threads;
    int64_t max_connections, max_body, max_memory, max_inputs, max_waiting, max_cache; /* MB of body, memory and
                                                                                          cache */
    int64_t timeout, grace, step_ms, step_tokens;
    bool insecure;
    cli_types types; /* of all models */
} serve_settings;

extern serve_settings cli_serve_settings;
extern const cli_command cli_serve;

#endif
