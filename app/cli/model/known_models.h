/* The models that `attend fetch` downloads: the only list of names, versions, sizes and hashes in the project. */
#ifndef CLI_MODEL_KNOWN_MODELS_H
#define CLI_MODEL_KNOWN_MODELS_H

#include <attend_model.h>

typedef struct cli_known_file {
    const char *name;
    int64_t bytes;
    const char *sha256; /* in hexadecimal */
} cli_known_file;

typedef struct cli_known_model {
    const char *name;
    att_subject subject;
    const char *license;
    const char *package, *version; /* of the Python wheel that contains it */
    cli_known_file wheel;
    const char *folder;      /* the model's folder in the wheel */
    cli_known_file files[4]; /* the files of that folder that are checked, up to name NULL */
} cli_known_model;

extern const cli_known_model cli_known_models[]; /* up to name NULL */
/* Their names for completion, as cli_command.words */
#define CLI_KNOWN_MODEL_NAMES "all-MiniLM-L6-v2|SmolLM2-135M-Instruct"

/* Returns the model of this name, or NULL. */
const cli_known_model *cli_known_model_find(const char *name);

#endif
