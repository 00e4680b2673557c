/* Help for the terminal, from the tables. */
#include "cli.h"

#include <string.h>

enum { COLUMN = 26, WIDTH = 80 };

void cli_option_synopsis(const cli_option *o, char *text, size_t size)
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(text, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
}

void cli_option_default(const cli_option *o, char *text, size_t size)
{
    *text = '\0';
    if (o->quiet || o->required)
        return;
    if (o->text && *o->text)
        snprintf(text, size, "%s", *o->text);
    else if (o->integer)
        snprintf(text, size, "%lld", (long long)*o->integer);
    else if (o->number)
        snprintf(text, size, "%.6g", *o->number);
    else if (o->choice && *o->choice >= 0) {
        const char *word = o->value;
        for (int i = 0; i < *o->choice; i++)
            word = strchr(word, '|') + 1;
        snprintf(text, size, "%.*s", (int)strcspn(word, "|"), word);
    }
}

/* Words of `text` from the column `indent` on, broken before WIDTH. */
static void print_wrapped(FILE *f, const char *text, int indent)
{
    int column = indent;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column > indent && column + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(f, "%s%.*s", column > indent ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', f);
}

static void print_option(FILE *f, const cli_option *o)
{
    char synopsis[128], fallback[64], help[512];
    cli_option_synopsis(o, synopsis, sizeof synopsis);
    cli_option_default(o, fallback, sizeof fallback);
    int n = snprintf(help, sizeof help, "%s", o->help);
    if (*fallback)
        n += snprintf(help + n, sizeof help - (size_t)n, " (%s)", fallback);
    if (o->env)
        snprintf(help + n, sizeof help - (size_t)n, " [$%s]", o->env);
    int column = fprintf(f, "  %s", synopsis);
    if (column + 2 > COLUMN)
        fprintf(f, "\n%*s", COLUMN, "");
    else
        fprintf(f, "%*s", COLUMN - column, "");
    print_wrapped(f, help, COLUMN);
}

static void print_commands(FILE *f, const cli_command *const *commands)
{
    for (; *commands; commands++)
        fprintf(f, "  %-12s %s\n", (*commands)->name, (*commands)->summary);
}

/* Each line of `text` with two spaces before it. */
static void print_indented(FILE *f, const char *text)
{
    while (*text) {
        int n = (int)strcspn(text, "\n");
        fprintf(f, "  %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

void cli_print_help(FILE *f, const cli_command *c, const char *path)
{
    fprintf(f, "%s: %s\n\nusage: %s", path, c->summary, path);
    for (const cli_option *o = c->options; o && o->name; o++)
        if (o->required && o->letter)
            fprintf(f, " -%c %s", o->letter, o->value);
        else if (o->required)
            fprintf(f, " --%s %s", o->name, o->value);
    fprintf(f, "%s%s%s\n", c->options ? " [OPTION...]" : "", c->arguments ? " " : "", c->arguments ? c->arguments : "");
    if (c->details)
        fprintf(f, "\n%s\n", c->details);
    if (c->commands) {
        fputs("\ncommands:\n", f);
        print_commands(f, c->commands);
    }
    if (c->options) {
        fputs("\noptions:\n", f);
        for (const cli_option *o = c->options; o->name; o++)
            print_option(f, o);
    }
    if (c->examples) {
        fputs("\nexamples:\n", f);
        print_indented(f, c->examples);
    }
}

void cli_print_overview(FILE *f)
{
    fputs("attend: attention and Transformers\n\nusage: attend COMMAND [OPTION...] [ARGUMENT...]\n\n", f);
    print_commands(f, cli_commands);
    fputs("\n\"attend help COMMAND\" says more. Exit codes: 0 done, 1 failed on data or files,\n"
          "2 wrong usage. A signal ends it as other programs: 128 + its number in a shell.\n",
          f);
}
