/* What the environment says about the hub, in the variables of huggingface_hub. */
#ifndef FETCH_ENVIRONMENT_H
#define FETCH_ENVIRONMENT_H

#include <stdbool.h>

typedef struct hub_environment {
    const char *endpoint;  /* $HF_ENDPOINT */
    bool offline;          /* $HF_HUB_OFFLINE: nothing may be requested */
    char token[512];       /* $HF_TOKEN, else what the file has that `hf auth login` writes; "": none */
    char token_from[4200]; /* which of them, for messages */
} hub_environment;

/* Returns 0, or a code after a message: what should be a token is not one. */
int hub_environment_read(hub_environment *e);

#endif
