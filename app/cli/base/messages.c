/* Messages on standard error. */
#include "command.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static FILE *errors; /* NULL: stderr */

int cli_only_errors(void)
{
    const int fd = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    errors = fd < 0 ? NULL : fdopen(fd, "w");
    if (!errors || null < 0 || setvbuf(errors, NULL, _IOLBF, BUFSIZ) || dup2(null, STDERR_FILENO) < 0)
        return cli_fail("--quiet: %s", strerror(errno));
    close(null);
    return CLI_DONE;
}

/* Writes the text of a message, which is one line. Texts that it quotes cannot change its display on a terminal. */
static void put_visible(FILE *f, const char *text)
{
    const char *plain = text; /* text from here on is not written yet */
    while (*text) {
        const char *next = text;
        const bool control = utf8_is_control(utf8_next(&next));
        if (control) {
            fprintf(f, "%.*s", (int)(text - plain), plain);
            utf8_put(f, 0xFFFD);
            plain = next;
        }
        text = next;
    }
    fputs(plain, f);
}

static void print_message(FILE *f, const char *format, va_list list)
{
    char *text = NULL, part[256]; /* the latter where memory is lacking */
    va_list copy;
    va_copy(copy, list);
    if (vasprintf(&text, format, list) < 0) {
        text = NULL;
        vsnprintf(part, sizeof part, format, copy);
    }
    va_end(copy);
    fflush(stdout); /* earlier output comes first */
    fputs("attend: ", f);
    put_visible(f, text ? text : part);
    fputc('\n', f);
    free(text);
}

int cli_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(errors ? errors : stderr, format, list);
    va_end(list);
    return CLI_FAILED;
}

int cli_misuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(errors ? errors : stderr, format, list);
    va_end(list);
    return CLI_MISUSE;
}

void cli_note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(stderr, format, list);
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

bool cli_has_extension(const char *path, const char *extension)
{
    const size_t n = strlen(path), k = strlen(extension);
    return n > k && path[n - k - 1] != '/' && !strcasecmp(path + n - k, extension);
}
