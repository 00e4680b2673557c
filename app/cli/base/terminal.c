#include "terminal.h"
#include "command.h"
#include "utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_CHARACTER = 4, CHUNK = 1024 };

/* A stream with a filter. */
typedef struct terminal {
    FILE *file; /* NULL: no filter */
    int fd;
    char begun[MAX_CHARACTER]; /* [bytes]: of a character whose end is not written yet */
    size_t bytes;
    struct terminal *next; /* the next one that cli_terminal_open has opened */
} terminal;

static terminal out, err, *others;

/* ---- the line of progress; async-signal-safe, and stderr has no buffer */

static volatile sig_atomic_t on_screen;

void cli_progress_clear(void)
{
    static const char clear_line[] = "\r\033[K";
    if (on_screen && write(STDERR_FILENO, clear_line, sizeof clear_line - 1) > 0)
        on_screen = 0;
}

void cli_progress_replace(const char *text, size_t bytes)
{
    on_screen = 1;
    cli_progress_clear();
    on_screen = 1;
    if (write(STDERR_FILENO, text, bytes) < 0)
        on_screen = 0;
}

/* ---- the filter; async-signal-safe */

/* Writes all of it; returns 0, or -1 and sets errno. */
static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(fd, text, bytes);
        if (n < 0 && (errno != EINTR || cli_signal))
            return -1;
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Filtered text on its way to the terminal. */
typedef struct chunk {
    int fd, failed;
    size_t used;
    char text[CHUNK];
} chunk;

static void flush(chunk *c)
{
    if (write_all(c->fd, c->text, c->used))
        c->failed = 1;
    c->used = 0;
}

static void add(chunk *c, const char *text, size_t bytes)
{
    if (c->used + bytes > CHUNK)
        flush(c);
    memcpy(c->text + c->used, text, bytes);
    c->used += bytes;
}

/* Returns whether s [bytes] is the beginning of a character, without its end. */
static bool is_begun(const char *s, size_t bytes)
{
    const unsigned char lead = (unsigned char)*s;
    return bytes < MAX_CHARACTER && lead >= 0xC2 && lead <= 0xF4 && -utf8_length(s, bytes) == (int)bytes;
}

/* Adds the character at s [bytes], of `length` as utf8_length has it. */
static void add_character(chunk *c, const char *s, int length)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    const char *next = s;
    if (length > 0 && (*s == '\n' || *s == '\t' || !utf8_is_control(utf8_next(&next))))
        add(c, s, (size_t)length);
    else
        add(c, replacement, sizeof replacement - 1);
}

/* Adds text [bytes]. The beginning of a character at its end is kept in t. */
static void filter(terminal *t, chunk *c, const char *text, size_t bytes)
{
    char first[MAX_CHARACTER + 1] = {0}; /* the character that an earlier text has begun */
    while (t->bytes > 0 && bytes > 0) {
        memcpy(first, t->begun, t->bytes);
        first[t->bytes] = *text;
        const size_t n = t->bytes + 1;
        const int length = utf8_length(first, n);
        if (is_begun(first, n)) {
            memcpy(t->begun, first, t->bytes = n);
        } else {
            add_character(c, first, length);
            t->bytes = 0;
            if (length < 0) /* the new byte belongs to another character */
                break;
        }
        text++;
        bytes--;
    }
    while (bytes > 0) {
        if (is_begun(text, bytes)) {
            memcpy(t->begun, text, t->bytes = bytes);
            return;
        }
        const int length = utf8_length(text, bytes);
        add_character(c, text, length);
        text += abs(length);
        bytes -= (size_t)abs(length);
    }
}

/* Shows the character that is not whole. */
static void end_character(terminal *t)
{
    chunk c = {.fd = t->fd};
    if (t->bytes > 0)
        add_character(&c, t->begun, -1);
    t->bytes = 0;
    flush(&c);
}

/* Writes text: the write function of a cookie. Returns the bytes written; 0, with errno set, after an error. */
static ssize_t write_text(void *cookie, const char *text, size_t bytes)
{
    terminal *t = cookie;
    chunk c = {.fd = t->fd};
    cli_progress_clear();
    filter(t, &c, text, bytes);
    flush(&c);
    return c.failed ? 0 : (ssize_t)bytes;
}

void cli_terminal_put(const char *text)
{
    terminal *t = &err;
    if (t->file)
        write_text(t, text, strlen(text));
    else
        write_all(STDERR_FILENO, text, strlen(text));
}

/* ---- streams */

static int close_other(void *cookie)
{
    terminal *t = cookie, **link = &others;
    const int fd = t->fd;
    end_character(t);
    while (*link && *link != t)
        link = &(*link)->next;
    if (*link)
        *link = t->next;
    free(t);
    return close(fd);
}

/* mode: of setvbuf. close NULL: the stream stays open */
static FILE *open_filter(terminal *t, int fd, int mode, int (*close)(void *cookie))
{
    *t = (terminal){.fd = fd};
    t->file = fopencookie(t, "w", (cookie_io_functions_t){.write = write_text, .close = close});
    if (t->file)
        setvbuf(t->file, NULL, mode, BUFSIZ);
    return t->file;
}

bool cli_terminal_prepare(void)
{
    if (isatty(STDERR_FILENO)) {
        FILE *f = open_filter(&err, STDERR_FILENO, _IONBF, NULL);
        if (!f)
            return false;
        stderr = f; /* glibc: a variable like any other */
    }
    if (isatty(STDOUT_FILENO)) {
        FILE *f = open_filter(&out, STDOUT_FILENO, _IOLBF, NULL);
        if (!f)
            return false;
        stdout = f;
    }
    return true;
}

FILE *cli_terminal_open(int fd)
{
    terminal *t = malloc(sizeof *t);
    FILE *f = t ? open_filter(t, fd, _IOLBF, close_other) : NULL;
    if (!f) {
        free(t);
        return NULL;
    }
    t->next = others;
    others = t;
    return f;
}

int cli_terminal_end(void)
{
    const int failed = fflush(stdout);
    if (out.file)
        end_character(&out);
    return failed;
}

/* Returns the terminal of a stream, or NULL. */
static terminal *terminal_of(const FILE *f)
{
    terminal *t = others;
    if (f && (f == out.file || f == err.file))
        return f == out.file ? &out : &err;
    while (t && t->file != f)
        t = t->next;
    return t;
}

int cli_descriptor(FILE *f)
{
    const terminal *t = terminal_of(f);
    return t ? t->fd : fileno(f);
}

bool cli_has_controls(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(cli_descriptor(f)) && term && *term && strcmp(term, "dumb") != 0;
}

int terminal_columns(FILE *f)
{
    struct winsize size;
    const int fd = cli_descriptor(f);
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n >= 20 && n <= 10000 ? (int)n : 80;
}

void cli_terminal_control(FILE *f, const char *sequence)
{
    terminal *t = terminal_of(f);
    if (!t) {
        fputs(sequence, f);
        return;
    }
    fflush(f);
    end_character(t);
    write_all(t->fd, sequence, strlen(sequence));
}
