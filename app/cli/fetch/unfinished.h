/* A temporary folder next to its target, for one process at a time. The lock ends with the process, so the next process
 * removes the files of a killed one. */
#ifndef CLI_FETCH_UNFINISHED_H
#define CLI_FETCH_UNFINISHED_H

#include "cli/base/command.h"

#include <attend_model.h>

typedef struct cli_unfinished {
    att_model_path path; /* PARENT/.NAME.unfinished */
    int fd;              /* which has the lock */
} cli_unfinished;

/* Makes an empty folder; the parent is created if necessary. Waits while another process has it. */
int cli_unfinished_open(cli_unfinished *u, const char *parent, const char *name);
/* Moves the folder `part` in it to PARENT/NAME, durably. */
int cli_unfinished_move(const cli_unfinished *u, const char *part, const char *target);
/* Removes the folder with all that is in it. */
void cli_unfinished_close(cli_unfinished *u);

#endif
