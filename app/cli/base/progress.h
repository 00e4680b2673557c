/* A progress line on standard error, if that is a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool on;
    double begin, shown; /* seconds */
} cli_progress;

double cli_seconds(void); /* of a monotonic clock */
void cli_progress_begin(cli_progress *p);
/* `count` items are done; `share` of all in [0, 1], 0: unknown. */
void cli_progress_show(cli_progress *p, int64_t count, const char *things, double share);
void cli_progress_end(cli_progress *p);
/* Clears the line if it is shown; async-signal-safe. */
void cli_progress_clear(void);

#endif
