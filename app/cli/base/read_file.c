#include "read_file.h"
#include "command.h"
#include "grow.h"

#include <attend_text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

static int read_all(int file, const char *path, cli_whole_text *out)
{
    size_t room = 0;
    for (;;) {
        if (!cli_reserve(&room, out->bytes + BLOCK + 1, &(cli_array){&out->text, 1}, 1))
            return cli_fail_memory();
        const ssize_t n = read(file, out->text + out->bytes, BLOCK);
        if (n < 0 && errno == EINTR && !cli_signal)
            continue;
        if (n < 0)
            return errno == EINTR ? CLI_INTERRUPTED : cli_fail_errno(path);
        out->bytes += (size_t)n;
        out->text[out->bytes] = 0;
        if (n == 0)
            return CLI_DONE;
    }
}

/* Reads a pipe or device, whose size was not checked when it was opened. */
static int read_stream(int file, const char *path, cli_whole_text *out)
{
    att_text_start start = {.size = sizeof start};
    int code = read_all(file, path, out);
    if (!code)
        code = cli_status(NULL, att_text_begin(path, out->text, out->bytes, &start));
    if (code)
        return code;
    out->bytes -= start.mark;
    memmove(out->text, out->text + start.mark, out->bytes + 1);
    for (size_t i = 0; start.returns && i < out->bytes; i++)
        out->text[i] = out->text[i] == '\r' ? '\n' : out->text[i];
    return CLI_DONE;
}

int cli_whole_text_read(const char *path, cli_whole_text *out)
{
    *out = (cli_whole_text){0};
    if (!strcmp(path, "-"))
        return read_stream(STDIN_FILENO, "standard input", out);
    int file;
    struct stat is;
    int code = cli_status(NULL, att_open_text(path, &file));
    if (code)
        return code;
    code = fstat(file, &is) || S_ISREG(is.st_mode) ? read_all(file, path, out) : read_stream(file, path, out);
    close(file);
    return code;
}

void cli_whole_text_end_line(cli_whole_text *t)
{
    if (t->bytes == 0 || t->text[t->bytes - 1] != '\n')
        return;
    t->bytes--;
    t->bytes -= t->bytes && t->text[t->bytes - 1] == '\r';
    t->text[t->bytes] = '\0';
}

void cli_whole_text_free(cli_whole_text *t)
{
    free(t->text);
    *t = (cli_whole_text){0};
}
