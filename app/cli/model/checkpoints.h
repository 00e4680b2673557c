/* The folder of a training, as commands see it that do not train. */
#ifndef CLI_MODEL_CHECKPOINTS_H
#define CLI_MODEL_CHECKPOINTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_checkpoints {
    int64_t n, bytes; /* of all */
    char newest[64];  /* its name; "": there is none */
    bool paused;      /* the newest one is of an interruption (see att_training_pause) */
} cli_checkpoints;
/* Finds the checkpoints in the folder, which need not exist. */
void cli_checkpoints_find(const char *folder, cli_checkpoints *c);
/* Removes them, or moves them to another folder of the same file system. */
int cli_checkpoints_remove(const char *folder);
int cli_checkpoints_move(const char *folder, const char *to);

/* Reads FOLDER/training.json, which has the options of the training, into *out: an object that the caller releases, or
 * NULL if the file does not exist. Returns a code. Errors: a symbolic link, not a regular file, not a JSON object. */
int cli_training_file_read(const char *folder, json_t **out);
/* The path of the file: to [CLI_TRAINING_PATH]. */
enum { CLI_TRAINING_PATH = 4300 };
int cli_training_file_path(const char *folder, char path[CLI_TRAINING_PATH]);

/* Returns FNV-1a (Fowler, Noll, Vo) of further bytes [n]. sum: the result for the bytes before them, 0 if there are
 * none. */
uint64_t cli_training_checksum(uint64_t sum, const void *bytes, size_t n);
/* Computes the checksum of a file, as 16 hexadecimal digits. Returns a code. */
enum { CLI_CHECKSUM = 17 };
int cli_file_checksum(const char *path, char text[CLI_CHECKSUM]);

#endif
