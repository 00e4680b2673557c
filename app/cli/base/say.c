/* Messages on standard error. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void say(const char *format, va_list list)
{
    fflush(stdout); /* earlier output comes first */
    fputs("attend: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    return CLI_FAILED;
}

int cli_misuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    return CLI_MISUSE;
}

void cli_note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
}

int cli_fail_errno(const char *path) { return cli_fail("%s: %s", path, strerror(errno)); }

int cli_fail_memory(void) { return cli_fail("out of memory"); }

int cli_status(const att_ctx *ctx, att_status s)
{
    if (s == ATT_OK)
        return CLI_DONE;
    if (s == ATT_ERR_CANCELLED)
        return CLI_INTERRUPTED;
    return cli_fail("%s", att_error(ctx));
}

cli_shell_word cli_quoted(const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
    cli_shell_word word = {"FOLDER"}, quoted = {"'"};
    const size_t size = sizeof word.text;
    if (*path && !path[strspn(path, plain)]) {
        if (strlen(path) < size)
            strcpy(word.text, path);
        return word;
    }
    size_t n = 1;
    for (; *path && n + sizeof "'\\'''" <= size; path++) {
        const char *piece = *path == '\'' ? "'\\''" : (const char[]){*path, 0};
        strcpy(quoted.text + n, piece);
        n += strlen(piece);
    }
    quoted.text[n] = '\'';
    return *path ? word : quoted;
}

bool cli_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}
