/* Early ends of the process: by a signal, by truncation of a mapped file, by lack of memory. Output files in progress
 * are removed. */
#ifndef CLI_BASE_SIGNALS_H
#define CLI_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* To be called first: opens descriptors 0 to 2 if closed, sets signal handlers and jansson's allocator. */
void cli_end_prepare(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP only sets cli_signal; before this call, and from the second signal
 * on, it ends the process immediately. */
void cli_end_later(void);

/* After cli_end_later: forgets a SIGINT, so that the next one only sets cli_signal, again; false: there is none, or the
 * signal is another one. */
bool cli_end_forget(void);

/* A closed pipe as standard output ends the process by SIGPIPE: between these calls not, but at the second one. The
 * output in between is lost. */
void cli_end_hold_pipe(void);
void cli_end_release_pipe(void);

/* Ends the process by this signal, so that a waiting parent sees it. */
void cli_end_by_signal(int number);

/* Signals that end the process wait until *before is the signal mask again. */
void cli_end_block(sigset_t *before);

/* A process group that an early end ends, too, by SIGTERM: that of a program which this process has started; 0: none.
 */
void cli_signals_forward(pid_t group);

/* Ends the process where memory is lacking and the caller cannot report it. */
_Noreturn void cli_end_without_memory(void);

/* Creates a file that is removed if the process ends early; `path` must be valid until cli_end_keeps. Returns its
 * descriptor, or -1 and sets errno. */
int cli_end_create(char *path, mode_t mode);
/* Stops removing it; path may be NULL. */
void cli_end_keeps(const char *path);

#endif
