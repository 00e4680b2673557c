/* Terminals. Text of files, names, options and models cannot control one: where standard output or error is a terminal,
 * all that is written to the stream passes a filter, which shows each control character but newline and tab, and each
 * byte that is not UTF-8, as U+FFFD. Only cli_terminal_control passes it. Pipes and files get all bytes unchanged. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Puts filters before stdout and stderr if they are terminals. To be called first. Returns false if out of memory. */
bool cli_terminal_prepare(void);
/* A stream to the terminal that is open as `fd`, which it owns, with such a filter; NULL: out of memory. */
FILE *cli_terminal_open(int fd);
/* Flushes standard output. An incomplete character is shown as U+FFFD. Returns the same as fflush. */
int cli_terminal_end(void);

/* Returns the descriptor of a stream, with or without a filter; fileno does not know that of a filter. */
int cli_descriptor(FILE *f);
/* Returns whether the stream f leads to a terminal that knows control sequences: $TERM is neither unset nor "dumb". */
bool cli_has_controls(FILE *f);
/* Returns the columns of the terminal f; otherwise $COLUMNS, otherwise 80. */
int terminal_columns(FILE *f);
/* Writes a control sequence to f. */
void cli_terminal_control(FILE *f, const char *sequence);

/* Replaces the line of progress on standard error, a terminal, by text [bytes] without control characters; and clears
 * it if it is shown, as all other text does. Async-signal-safe. */
void cli_progress_replace(const char *text, size_t bytes);
void cli_progress_clear(void);

/* Writes a message to standard error, with the filter; async-signal-safe. */
void cli_terminal_put(const char *text);

#endif
