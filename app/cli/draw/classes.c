#include "classes.h"

#include "cli/base/terminal.h"
#include "cli/base/utf8.h"

#include <string.h>

void cli_classes_choose(const cli_classes *c, const float *probability, int64_t *best)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t at = count;
        for (; at > 0 && probability[i] > probability[best[at - 1]]; at--)
            if (at < c->top)
                best[at] = best[at - 1];
        if (at < c->top)
            best[at] = i;
        count += count < c->top;
    }
}

void cli_classes_json(const cli_classes *c, cli_json *j, const float *probability, const int64_t *best)
{
    cli_json_array(j, "classes");
    for (int64_t i = 0; i < c->top; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "label", c->label(c->model, best[i]));
        cli_json_integer(j, "class", best[i]);
        cli_json_float(j, "probability", probability[best[i]]);
        cli_json_end(j);
    }
    cli_json_end(j);
}

void cli_classes_field(FILE *f, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        putc(text[i] == '\t' || text[i] == '\n' || text[i] == '\r' ? ' ' : text[i], f);
}

void cli_classes_line(const cli_classes *c, FILE *f, const float *probability, const int64_t *best)
{
    for (int64_t i = 0; i < c->top; i++) {
        const char *label = c->label(c->model, best[i]);
        putc('\t', f);
        cli_classes_field(f, label, strlen(label));
        fprintf(f, "\t%.4f", (double)probability[best[i]]);
    }
    putc('\n', f);
}

void cli_classes_bars(const cli_classes *c, const char *title, const float *probability, const int64_t *best)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    enum { BAR = 24 };
    static bool again;
    int widest = 0;
    for (int64_t i = 0; i < c->top; i++) {
        const int width = utf8_width(c->label(c->model, best[i]));
        widest = width > widest ? width : widest;
    }
    int room = terminal_columns(stdout) - 14;
    room = room < 4 ? 4 : room;
    const int bar = room / 2 < BAR ? room / 2 : BAR;
    widest = widest < room - bar ? widest : room - bar;
    fputs(again ? "\n" : "", stdout);
    again = true;
    utf8_field(stdout, title, utf8_width(title), 0);
    putchar('\n');
    for (int64_t i = 0; i < c->top; i++) {
        const double p = (double)probability[best[i]];
        const int length = (int)(p * 8 * bar + 0.5);
        printf("  %6.2f %%  ", 100 * p);
        utf8_field(stdout, c->label(c->model, best[i]), widest, 0);
        fputs("  ", stdout);
        for (int k = 0; k < length / 8; k++)
            fputs("█", stdout);
        puts(eighths[length % 8]);
    }
}
