#include "progress.h"
#include "command.h"
#include "terminal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_begin(cli_progress *p)
{
    const bool plain = !cli_has_controls(stderr);
    *p = (cli_progress){.on = true, .plain = plain, .begin = cli_seconds()};
    p->every = !plain ? 0.2 : isatty(STDERR_FILENO) ? 30 : 600;
    p->shown = p->begin;
}

/* Returns whether it is time to show the line again. */
static bool is_due(cli_progress *p, double now)
{
    if (!p->on || now - p->shown < p->every)
        return false;
    p->shown = now;
    return true;
}

enum { LINE = 128 };
typedef struct line {
    char text[LINE]; /* [used] of ASCII, zero-terminated */
    int used;
} line;

ATT_PRINTF(2, 3) static void add(line *l, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(l->text + l->used, (size_t)(LINE - l->used), format, list);
    va_end(list);
    l->used = n < 0 ? l->used : n < LINE - l->used ? l->used + n : LINE - 1;
}

/* Shows the part that fits in a line, because a line that wraps could not be cleared. */
static void show(const cli_progress *p, line *l)
{
    const int room = terminal_columns(stderr) - 1;
    l->used = l->used < room ? l->used : room;
    if (l->used == 0)
        return;
    if (p->plain) {
        fprintf(stderr, "%.*s\n", l->used, l->text);
        return;
    }
    cli_progress_replace(l->text, (size_t)l->used);
}

/* Adds a bar of `width` characters, and the time that is left at the speed so far. */
static void add_bar(line *l, const cli_progress *p, double spent, double share, int width)
{
    if (share > 0) {
        const int filled = (int)(share * width);
        add(l, "  [%.*s%*s] %3.0f %%", filled, "####################", width - filled, "", 100 * share);
    }
    if (share > p->first) {
        const int left = (int)fmin(spent / (share - p->first) * (1 - share), 1e9);
        add(l, ", %d:%02d:%02d left", left / 3600, left / 60 % 60, left % 60);
    }
}

void cli_progress_show(cli_progress *p, int64_t count, const char *unit, double share)
{
    const double now = cli_seconds(), spent = now - p->begin;
    if (!is_due(p, now))
        return;
    line l = {.used = 0};
    add(&l, "%lld %s, %.0f/s", (long long)count, unit, (double)count / spent);
    add_bar(&l, p, spent, share, 20);
    show(p, &l);
}

void cli_share_begin(cli_share *s, const char *unit)
{
    *s = (cli_share){.unit = unit};
    cli_progress_begin(&s->line);
}

void cli_share_next(cli_share *s, int64_t all, double to)
{
    s->done += s->all;
    s->all = all;
    s->from = s->to;
    s->to = to;
}

cli_share cli_share_of_call(const char *unit, int64_t all)
{
    cli_share s;
    cli_share_begin(&s, unit);
    cli_share_next(&s, all, 1);
    return s;
}

bool cli_share_report(void *share_of, double share)
{
    cli_share *s = share_of;
    cli_progress_show(&s->line, s->done + (int64_t)(share * (double)s->all), s->unit,
                      s->to > 0 ? s->from + share * (s->to - s->from) : 0);
    return true;
}

void cli_share_end(cli_share *s) { cli_progress_end(&s->line); }

void cli_progress_step(cli_progress *p, int64_t step, double loss, int64_t count, double share)
{
    const double now = cli_seconds(), spent = now - p->begin;
    if (isnan(loss)) {
        p->first = share;
        p->shown = isatty(STDERR_FILENO) ? 0 : p->shown;
    }
    if (!is_due(p, now))
        return;
    line l = {.used = 0};
    add(&l, "step %lld", (long long)step);
    if (!isnan(loss))
        add(&l, ", loss %.4f, %.0f %s/s", loss, (double)count / spent, p->unit ? p->unit : "tokens");
    add_bar(&l, p, spent, share, 10);
    show(p, &l);
}

void cli_progress_end(cli_progress *p)
{
    cli_progress_clear();
    p->on = false;
}
