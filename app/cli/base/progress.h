/* Shows progress on standard error: one line that is replaced, or, if the terminal cannot do that, a new line
 * sometimes. No line is wider than the terminal. A file or a pipe gets a line every ten minutes, so that the log of a
 * job shows where it is, and that of a shorter one has no such lines. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "terminal.h"

#include <stdint.h>

typedef struct cli_progress {
    bool on;
    bool plain;          /* lines are not replaced */
    double begin, shown; /* seconds */
    double every;        /* seconds between two lines */
    double first;        /* share that was done at the beginning */
    const char *unit;    /* unit that a training counts, such as "images"; NULL: tokens */
} cli_progress;

double cli_seconds(void); /* the time of a monotonic clock */
void cli_progress_begin(cli_progress *p);
/* `count` items are done; `share` of all in [0, 1], 0: unknown. */
void cli_progress_show(cli_progress *p, int64_t count, const char *unit, double share);
/* Progress of work that is one call of the library or several; each reports its share. */
typedef struct cli_share {
    cli_progress line;
    const char *unit;
    int64_t done, all; /* units: before this call, of this call */
    double from, to;   /* shares of the work: before this call, after it; 0: unknown */
} cli_share;
void cli_share_begin(cli_share *s, const char *unit);
/* Begins work that is one call of `all` units. */
cli_share cli_share_of_call(const char *unit, int64_t all);
/* Announces that the next call has `all` units. After it the share `to` of the work is done; 0: unknown. */
void cli_share_next(cli_share *s, int64_t all, double to);
/* An att_progress_fn, with the cli_share as its user */
bool cli_share_report(void *share_of, double share);
void cli_share_end(cli_share *s);
/* Shows the progress of a training: `step` steps are done, the mean loss is `loss` (NAN: unknown yet), `count` units
 * were done in this process.
 */
void cli_progress_step(cli_progress *p, int64_t step, double loss, int64_t count, double share);
void cli_progress_end(cli_progress *p);

#endif
