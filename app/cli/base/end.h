/* How the process ends before its work is done: by a signal, by a mapped file that is cut short, by memory that runs
 * out. Output files that were begun are removed then. */
#ifndef CLI_END_H
#define CLI_END_H

#include <sys/types.h>

/* Once, before all else: sees to it that descriptors 0 to 2 are open, takes signals, gives jansson its memory. */
void cli_end_prepare(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP only sets cli_signal; until then, and from the second one on, such a
 * signal ends the process where it stands. */
void cli_end_later(void);

/* Ends the process as this signal does by default; whoever waits for it sees which one it was. */
void cli_end_by_signal(int number);

/* Makes a new file, which is removed if the process ends early; `path` lives until cli_end_keeps. Returns its
 * descriptor, or -1 and errno. */
int cli_end_create(char *path, mode_t mode);
/* It is not removed any more; NULL is allowed. */
void cli_end_keeps(const char *path);

#endif
