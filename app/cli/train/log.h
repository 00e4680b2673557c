/* The log of a training: an object of JSON a line, FOLDER/log.jsonl. */
#ifndef CLI_TRAIN_LOG_H
#define CLI_TRAIN_LOG_H

#include <stdint.h>

typedef struct cli_log {
    int fd;
    int64_t bytes; /* of whole lines */
    char path[4200];
} cli_log;

/* Opens it, or makes it. What a training that goes on from `step` writes once more is cut off: lines of later steps,
 * and a last one that has no end. A link, or what is no file, is refused. */
int cli_log_open(cli_log *l, const char *folder, int64_t step);
/* Adds a line, which ends with '\n'; all of it, or else nothing and a sentence. */
int cli_log_add(cli_log *l, const char *line);
/* All lines are on the disk. */
int cli_log_flush(const cli_log *l);
int cli_log_close(cli_log *l, int code); /* code, or what goes wrong now */

#endif
