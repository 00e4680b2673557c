/* The log of a training in JSON Lines, FOLDER/log.jsonl. */
#ifndef CLI_TRAIN_LOG_H
#define CLI_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_log {
    int fd;
    bool made;     /* it did not exist before */
    int64_t bytes; /* of complete lines */
    char path[4200];
} cli_log;

/* Opens or creates it. Removes lines of steps after `step`, from which the training continues, and an incomplete last
 * line. Refuses symbolic links and anything but a regular file. */
int cli_log_open(cli_log *l, const char *folder, int64_t step);
/* Appends a line, which ends with '\n', completely or, on error, not at all. */
int cli_log_add(cli_log *l, const char *line);
/* Returns when all lines are on the disk. */
int cli_log_flush(const cli_log *l);
int cli_log_close(cli_log *l, int code); /* returns code, or CLI_FAILED */
/* Closes it after a start that has failed: removes it if it is new. */
void cli_log_discard(cli_log *l);

#endif
