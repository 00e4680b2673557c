#include "progress.h"

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

void cli_progress_show(cli_progress *p, int64_t count, const char *things, double share)
{
    enum { BAR = 20 };
    double now = cli_seconds(), spent = now - p->begin;
    if (!p->on || now - p->shown < 0.2)
        return;
    p->shown = now;
    on_screen = 1;
    fprintf(stderr, "\r\033[K%lld %s, %.0f/s", (long long)count, things, (double)count / spent);
    if (share > 0) {
        int filled = (int)(share * BAR), left = (int)(spent / share * (1 - share));
        fprintf(stderr, "  [%.*s%*s] %3.0f %%, %d:%02d:%02d left", filled, "####################", BAR - filled, "",
                100 * share, left / 3600, left / 60 % 60, left % 60);
    }
    fflush(stderr);
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
