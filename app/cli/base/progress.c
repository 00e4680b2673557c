#include "progress.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t on_screen;
static const char clear_line[] = "\r\033[K";

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_begin(cli_progress *p)
{
    *p = (cli_progress){.on = isatty(STDERR_FILENO), .begin = cli_seconds()};
    p->shown = p->begin;
}

/* Is it time to show the line again? */
static bool is_due(cli_progress *p, double now)
{
    if (!p->on || now - p->shown < 0.2)
        return false;
    p->shown = now;
    on_screen = 1;
    return true;
}

/* A bar of `width` characters, and the time that is left at the speed so far. */
static void put_bar(const cli_progress *p, double spent, double share, int width)
{
    if (share > 0) {
        const int filled = (int)(share * width);
        fprintf(stderr, "  [%.*s%*s] %3.0f %%", filled, "####################", width - filled, "", 100 * share);
    }
    if (share > p->first) {
        const int left = (int)fmin(spent / (share - p->first) * (1 - share), 1e9);
        fprintf(stderr, ", %d:%02d:%02d left", left / 3600, left / 60 % 60, left % 60);
    }
    fflush(stderr);
}

void cli_progress_show(cli_progress *p, int64_t count, const char *things, double share)
{
    const double now = cli_seconds(), spent = now - p->begin;
    if (!is_due(p, now))
        return;
    fprintf(stderr, "\r\033[K%lld %s, %.0f/s", (long long)count, things, (double)count / spent);
    put_bar(p, spent, share, 20);
}

void cli_progress_report(void *of, double share)
{
    cli_share *s = of;
    cli_progress_show(&s->line, (int64_t)(share * (double)s->all), s->things, share);
}

/* Fits 78 columns: the line would not be cleared if it wrapped. */
void cli_progress_step(cli_progress *p, int64_t step, double loss, int64_t count, double share)
{
    const double now = cli_seconds(), spent = now - p->begin;
    if (isnan(loss)) {
        p->first = share;
        p->shown = 0;
    }
    if (!is_due(p, now))
        return;
    fprintf(stderr, "\r\033[Kstep %lld", (long long)step);
    if (!isnan(loss))
        fprintf(stderr, ", loss %.4f, %.0f %s/s", loss, (double)count / spent, p->things ? p->things : "tokens");
    put_bar(p, spent, share, 10);
}

void cli_progress_end(cli_progress *p)
{
    cli_progress_clear();
    p->on = false;
}

void cli_progress_clear(void)
{
    if (on_screen && write(STDERR_FILENO, clear_line, sizeof clear_line - 1) > 0) /* stderr has no buffer */
        on_screen = 0;
}
