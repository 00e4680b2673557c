/* Lines that a person types, or that a pipe or file has as standard input. On a terminal there is a prompt; with
 * libedit lines can be edited, earlier ones called back, and what is pasted is one message, even if it has several
 * lines. */
#ifndef CLI_BASE_LINE_INPUT_H
#define CLI_BASE_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_line_editor cli_line_editor; /* line_editor.c */

typedef struct cli_line_input {
    bool terminal; /* standard input and output are one */
    /* private: */
    cli_line_editor *editor; /* or NULL */
    char *data;              /* [used]; the next line begins at `at` */
    size_t used, at, room;
} cli_line_input;

int cli_line_input_open(cli_line_input *in);
void cli_line_input_close(cli_line_input *in);
/* Reads the next line, without its end; on a terminal after `prompt`. The line is valid until the next call. *line
 * NULL: the input has ended. Call cli_end_later before. On a terminal Ctrl-C discards the line and prints
 * `interrupted`. */
int cli_line_input_next(cli_line_input *in, const char *prompt, const char *interrupted, const char **line,
                        size_t *bytes);

/* The editor; NULL without libedit, or if $TERM does not allow it. *out NULL also after CLI_FAILED. */
int cli_line_editor_open(cli_line_editor **out);
void cli_line_editor_close(cli_line_editor *e);
/* Reads a line as cli_line_input_next does, which may have line ends inside. CLI_INTERRUPTED: a signal arrived. */
int cli_line_editor_next(cli_line_editor *e, const char *prompt, const char **line, size_t *bytes);

#endif
