/* Editing of lines by libedit: keys as in Emacs or, by ~/.editrc, vi; history; and bracketed paste, by which a terminal
 * marks the beginning and end of what is pasted. Without libedit there is no editor. */
#include "line_input.h"
#include "command.h"

#ifndef ATT_LIBEDIT

int cli_line_editor_open(cli_line_editor **out)
{
    *out = NULL;
    return CLI_DONE;
}

void cli_line_editor_close(cli_line_editor *e) { (void)e; }

int cli_line_editor_next(cli_line_editor *e, const char *prompt, const char **line, size_t *bytes)
{
    (void)e, (void)prompt, (void)line, (void)bytes;
    return CLI_FAILED; /* is not called without an editor */
}

#else

#include "grow.h"
#include "signals.h"
#include "terminal.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

enum { BYTES = 4096, REMEMBERED = 1000, REPLACEMENT = 0xFFFD };
#define PASTE_BEGINS "\033[200~"
static const wchar_t paste_ends[] = L"\033[201~";
enum { PASTE_END = sizeof paste_ends / sizeof *paste_ends - 1 };

struct cli_line_editor {
    EditLine *edit;
    History *history;
    FILE *out; /* the terminal without a filter: libedit escapes control characters itself */
    const char *prompt;
    mbstate_t state;
    char data[BYTES]; /* [used]; read to `at` */
    size_t used, at;
    bool ended, failed; /* the input has ended; out of memory */
    int error;          /* errno of reading */
};

/* ---- characters */

/* Sets the terminal up again if a shell has reset it while this process was stopped. */
static void wake(void *user)
{
    cli_line_editor *e = user;
    struct termios now;
    if (tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & ICANON)) {
        el_set(e->edit, EL_PREP_TERM, 0); /* libedit's view of it, which is that it has set it up */
        el_set(e->edit, EL_PREP_TERM, 1);
        el_set(e->edit, EL_REFRESH);
    }
}

/* Reads a byte; returns false at the end, after a signal and after an error. */
static bool next_byte(cli_line_editor *e, char *byte)
{
    while (e->at == e->used) {
        const ssize_t n = cli_read_unless_signaled(e->data, BYTES, wake, e);
        if (n < 0 && errno == EINTR && !cli_signal)
            continue;
        e->ended = n == 0;
        e->error = n < 0 ? errno : 0;
        if (n <= 0)
            return false;
        e->at = 0;
        e->used = (size_t)n;
    }
    *byte = e->data[e->at++];
    return true;
}

/* Reads a character; invalid UTF-8 becomes U+FFFD. */
static bool next_character(cli_line_editor *e, wchar_t *c)
{
    char byte;
    while (next_byte(e, &byte)) {
        const bool inside = !mbsinit(&e->state);
        const size_t n = mbrtowc(c, &byte, 1, &e->state);
        if (n == (size_t)-2)
            continue;
        if (n == (size_t)-1) {
            memset(&e->state, 0, sizeof e->state);
            e->at -= inside; /* the byte may begin another character */
            *c = REPLACEMENT;
        }
        return true;
    }
    return false;
}

static int get_character(EditLine *edit, wchar_t *c)
{
    cli_line_editor *e;
    el_get(edit, EL_CLIENTDATA, &e);
    return next_character(e, c) ? 1 : e->ended ? 0 : -1;
}

/* ---- pasting */

/* Adds a character; terminals send the line ends of what is pasted as "\r". */
static bool add(wchar_t **text, size_t *n, size_t *room, wchar_t c)
{
    if (!cli_reserve(room, *n + 2, &(cli_array){text, sizeof **text}, 1))
        return false;
    (*text)[(*n)++] = c == L'\r' ? L'\n' : c;
    (*text)[*n] = L'\0';
    return true;
}

/* Inserts what is pasted. Line ends stay in the line. */
static unsigned char paste(EditLine *edit, int key)
{
    (void)key;
    cli_line_editor *e;
    el_get(edit, EL_CLIENTDATA, &e);
    wchar_t *text = NULL, c;
    size_t n = 0, room = 0;
    bool ended = false;
    while (!ended && !e->failed && next_character(e, &c)) {
        if (c == L'\0')
            continue;
        e->failed = !add(&text, &n, &room, c);
        ended = n >= PASTE_END && wmemcmp(text + n - PASTE_END, paste_ends, PASTE_END) == 0;
    }
    if (ended)
        text[n -= PASTE_END] = L'\0';
    if (n > 0 && !e->failed)
        e->failed = el_winsertstr(edit, text) != 0;
    free(text);
    return e->failed ? CC_EOF : CC_REFRESH;
}

/* ---- lines */

static char *show_prompt(EditLine *edit)
{
    cli_line_editor *e;
    el_get(edit, EL_CLIENTDATA, &e);
    return (char *)(uintptr_t)e->prompt; /* not modified */
}

static bool set_up(cli_line_editor *e)
{
    HistEvent event;
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the wide characters of libedit */
    e->out = fdopen(dup(STDOUT_FILENO), "w");
    e->history = history_init();
    e->edit = e->out ? el_init("attend", stdin, e->out, e->out) : NULL;
    if (!e->edit || !e->history || history(e->history, &event, H_SETSIZE, REMEMBERED) < 0)
        return false;
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_EDITOR, "emacs");
    el_set(e->edit, EL_PROMPT, show_prompt);
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_GETCFN, get_character);
    el_wset(e->edit, EL_ADDFN, L"attend-paste", L"insert pasted text", paste); /* el_set would leak the names */
    el_set(e->edit, EL_BIND, PASTE_BEGINS, "attend-paste", NULL);
    el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(e->edit, NULL);
    return true;
}

int cli_line_editor_open(cli_line_editor **out)
{
    *out = NULL;
    if (!cli_has_controls(stdout))
        return CLI_DONE;
    cli_line_editor *e = calloc(1, sizeof *e);
    if (!e || !set_up(e)) {
        cli_line_editor_close(e);
        return cli_fail_memory();
    }
    *out = e;
    return CLI_DONE;
}

void cli_line_editor_close(cli_line_editor *e)
{
    if (!e)
        return;
    if (e->edit)
        el_end(e->edit);
    if (e->history)
        history_end(e->history);
    if (e->out)
        fclose(e->out);
    free(e);
}

int cli_line_editor_next(cli_line_editor *e, const char *prompt, const char **line, size_t *bytes)
{
    HistEvent event;
    int n = 0;
    e->prompt = prompt;
    e->error = 0;
    fflush(stdout);
    el_resize(e->edit);
    el_set(e->edit, EL_PREP_TERM, 1); /* el_gets does so only after the prompt: keys between them would be lost */
    cli_terminal_control(stdout, "\033[?2004h");
    const char *text = el_gets(e->edit, &n);
    cli_terminal_control(stdout, "\033[?2004l");
    if (e->failed)
        return cli_fail_memory();
    if (!text && e->error == EINTR)
        return CLI_INTERRUPTED;
    if (!text && e->error)
        return errno = e->error, cli_fail_errno("standard input");
    if (!text)
        return CLI_DONE;
    size_t length = (size_t)n;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    *line = text;
    *bytes = length;
    if (length > 0 && history(e->history, &event, H_ENTER, text) < 0)
        return cli_fail_memory();
    return CLI_DONE;
}

#endif
