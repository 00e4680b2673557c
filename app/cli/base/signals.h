/* Early ends of the process: by a signal, by truncation of a mapped file, by lack of memory. Output files in progress
 * are removed. */
#ifndef CLI_BASE_SIGNALS_H
#define CLI_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Opens descriptors 0 to 2 if closed, and sets signal handlers and jansson's allocator. To be called first. */
void cli_end_prepare(void);

/* Makes the first SIGINT, SIGTERM or SIGHUP only set cli_signal. Before this call, and from the second signal on, a
 * signal ends the process immediately. */
void cli_end_later(void);

/* Forgets a SIGINT, after cli_end_later, so that the next one again only sets cli_signal. Returns false if there is no
 * signal, or another one. */
bool cli_end_forget(void);

/* Forgets any signal, after cli_end_later, which the program has done what it asks for: it ends by itself. */
void cli_end_answered(void);

/* A closed pipe as standard output ends the process by SIGPIPE: between these calls not, but at the second one. The
 * output in between is lost. */
void cli_end_hold_pipe(void);
void cli_end_release_pipe(void);

/* Reads standard input like read(). After a signal it returns -1 and sets errno to EINTR, whenever the signal arrived.
 * `wake`, or NULL, is called ten times a second while there is nothing to read. */
ssize_t cli_read_unless_signaled(char *to, size_t bytes, void (*wake)(void *user), void *user);

/* Ends the process by this signal, so that a waiting parent sees it. */
void cli_end_by_signal(int number);

/* Blocks the signals that end the process, and stores the previous mask in *before. They are delivered when that mask
 * is restored. */
void cli_end_block(sigset_t *before);

/* Sets the process group that an early end also ends, by SIGTERM: that of a program which this process has started; 0:
 * none.
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
