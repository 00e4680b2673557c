/* The log of a training: an object of JSON a line, FOLDER/log.jsonl. */
#ifndef CLI_TRAIN_LOG_H
#define CLI_TRAIN_LOG_H

#include <stdint.h>

typedef struct cli_log {
    int fd;
    int64_t bytes; /* of whole lines */
    char path[4200];
} cli_log;

/* Opens or creates it. Lines of steps after `step`, from which the training continues, are cut off, as it writes them
 * again; so is a last line without an end. Refuses a symbolic link and whatever is not a regular file. */
int cli_log_open(cli_log *l, const char *folder, int64_t step);
/* Appends a line, which ends with '\n': all of it, or nothing where that fails. */
int cli_log_add(cli_log *l, const char *line);
/* Returns when all lines are on the disk. */
int cli_log_flush(const cli_log *l);
int cli_log_close(cli_log *l, int code); /* returns code, or CLI_FAILED */

#endif
