#include "line_input.h"
#include "command.h"
#include "grow.h"
#include "signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 4096,
    TERMINAL_LINE = 4095, /* bytes of a line of a terminal that the kernel edits (N_TTY_BUF_SIZE - 1): it drops more */
};

int cli_line_input_open(cli_line_input *in)
{
    *in = (cli_line_input){.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    return in->terminal ? cli_line_editor_open(&in->editor) : CLI_DONE;
}

void cli_line_input_close(cli_line_input *in)
{
    cli_line_editor_close(in->editor);
    free(in->data);
    *in = (cli_line_input){0};
}

/* Reads more; *end: there is no more. */
static int read_more(cli_line_input *in, bool *end)
{
    if (!cli_reserve(&in->room, in->used + BLOCK, &(cli_array){&in->data, 1}, 1))
        return cli_fail_memory();
    if (in->at > 0)
        memmove(in->data, in->data + in->at, in->used - in->at);
    in->used -= in->at;
    in->at = 0;
    ssize_t n;
    while ((n = cli_read_unless_signaled(in->data + in->used, BLOCK, NULL, NULL)) < 0 && errno == EINTR && !cli_signal)
        continue;
    if (n < 0)
        return errno == EINTR ? CLI_INTERRUPTED : cli_fail_errno("standard input");
    in->used += (size_t)n;
    *end = n == 0;
    return CLI_DONE;
}

static int read_line(cli_line_input *in, const char **line, size_t *bytes)
{
    size_t from = in->at;
    bool end = false;
    for (;;) {
        const char *found = in->used > from ? memchr(in->data + from, '\n', in->used - from) : NULL;
        if (found || (end && in->used > in->at)) {
            const size_t stop = found ? (size_t)(found - in->data) : in->used;
            *line = in->data + in->at;
            *bytes = stop - in->at - (stop > in->at && in->data[stop - 1] == '\r');
            in->at = stop + (found != NULL);
            return CLI_DONE;
        }
        if (end)
            return CLI_DONE;
        from = in->used - in->at;
        const int code = read_more(in, &end);
        if (code)
            return code;
    }
}

static void show(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

int cli_line_input_next(cli_line_input *in, const char *prompt, const char *interrupted, const char **line,
                        size_t *bytes)
{
    for (;;) {
        *line = NULL;
        *bytes = 0;
        if (in->terminal && !in->editor)
            show(prompt);
        int code = in->editor ? cli_line_editor_next(in->editor, prompt, line, bytes) : read_line(in, line, bytes);
        if (!code && in->terminal && !in->editor && *bytes >= TERMINAL_LINE) {
            cli_note(
                "the terminal cuts lines after %d bytes, so this one is not used; a file or pipe as standard input "
                "has no such limit",
                TERMINAL_LINE);
            continue;
        }
        if (code != CLI_INTERRUPTED || !in->terminal || !cli_end_forget())
            return code;
        in->at = in->used; /* the terminal has discarded the line */
        show(interrupted);
    }
}
