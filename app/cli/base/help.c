/* Help for the terminal, from the tables. */
#include "command.h"
#include "terminal.h"
#include "utf8.h"

#include <string.h>
#include <unistd.h>

enum { OPTION_COLUMN = 26, COMMAND_COLUMN = 15, NARROW = 60, NARROW_INDENT = 6 };
static int line_width = CLI_HELP_COLUMNS;

/* A narrow terminal has shorter lines, and descriptions below the names. */
static void fit(FILE *f)
{
    const int room = isatty(cli_descriptor(f)) ? terminal_columns(f) - 1 : CLI_HELP_COLUMNS;
    line_width = room < CLI_HELP_COLUMNS ? room : CLI_HELP_COLUMNS;
}

/* Moves from a column to the column of descriptions, and returns that. */
static int describe(FILE *f, int column, int description)
{
    const bool narrow = line_width < NARROW;
    description = narrow ? NARROW_INDENT : description;
    if (narrow || column + 2 > description)
        fprintf(f, "\n%*s", description, "");
    else
        fprintf(f, "%*s", description - column, "");
    return description;
}

/* Writes " -m, --model MODEL". */
static void write_synopsis(const cli_option *o, char *text, size_t size)
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

/* Returns the columns of the first n bytes of a text without wide characters. */
static int columns(const char *text, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80; /* continuation bytes of UTF-8 have none */
    return count;
}

/* Prints the words of a text, from the column `at` on; further lines start in the column `indent`, and end before
 * line_width. */
static void print_wrapped(FILE *f, const char *text, int n, int at, int indent)
{
    bool first = true;
    for (const char *end = text + n; text < end; first = false) {
        const int length = (int)strcspn(text, " \n") < end - text ? (int)strcspn(text, " \n") : (int)(end - text);
        const int word = columns(text, length);
        if (!first && at + 1 + word > line_width) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', f);
            at++;
        }
        fprintf(f, "%.*s", length, text);
        at += word;
        text += length + 1;
    }
    fputc('\n', f);
}

static void print_option(FILE *f, const cli_option *o)
{
    char synopsis[128], fallback[64], help[512];
    write_synopsis(o, synopsis, sizeof synopsis);
    cli_option_default(o, fallback, sizeof fallback);
    int n = snprintf(help, sizeof help, "%s", o->help);
    if (*fallback)
        n += snprintf(help + n, sizeof help - (size_t)n, " (%s)", fallback);
    if (o->env)
        snprintf(help + n, sizeof help - (size_t)n, " [$%s]", o->env);
    const int column = describe(f, fprintf(f, "  %s", synopsis), OPTION_COLUMN);
    print_wrapped(f, help, (int)strlen(help), column, column);
}

static void print_commands(FILE *f, const cli_command *const *commands)
{
    for (; *commands; commands++) {
        const int column = describe(f, fprintf(f, "  %s", (*commands)->name), COMMAND_COLUMN);
        print_wrapped(f, (*commands)->summary, (int)strlen((*commands)->summary), column, column);
    }
}

/* Prints paragraphs, separated by an empty line. Each is filled, except tables, which begin with a space and are
 * printed unchanged. */
static void print_paragraphs(FILE *f, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        const int n = end ? (int)(end - text) : (int)strlen(text);
        fputc('\n', f);
        if (*text == ' ')
            fprintf(f, "%.*s\n", n, text);
        else
            print_wrapped(f, text, n, 0, 0);
        text += n + (end ? 2 : 0);
    }
}

int cli_shell_break(const char *line, int n, int width)
{
    if (columns(line, n) <= width)
        return n;
    char quote = '\0';
    int last = n;
    for (int i = 0; i < n && columns(line, i) <= width - 2; i++) { /* 2: for the backslash */
        if (quote ? line[i] == quote : line[i] == '"' || line[i] == '\'')
            quote = quote ? '\0' : line[i];
        if (line[i] == ' ' && !quote && (last == n || strchr("-<>|\"'", line[i + 1])))
            last = i;
    }
    return last;
}

static void print_examples(FILE *f, const char *text)
{
    while (*text) {
        const int n = (int)strcspn(text, "\n");
        for (int done = 0; done < n;) {
            const int indent = done ? 6 : 2;
            const int part = cli_shell_break(text + done, n - done, line_width - indent);
            fprintf(f, "%*s%.*s%s\n", indent, "", part, text + done, done + part < n ? " \\" : "");
            done += part + 1;
        }
        text += n + (text[n] == '\n');
    }
}

static void print_usage(FILE *f, const cli_command *c, const char *path)
{
    char usage[512];
    int n = snprintf(usage, sizeof usage, "%s", path);
    for (const cli_option *o = c->options; o && o->name; o++)
        if (o->required)
            n += o->letter ? snprintf(usage + n, sizeof usage - (size_t)n, " -%c %s", o->letter, o->value)
                           : snprintf(usage + n, sizeof usage - (size_t)n, " --%s %s", o->name, o->value);
    n += snprintf(usage + n, sizeof usage - (size_t)n, "%s%s%s", c->options ? " [OPTION...]" : "",
                  c->arguments ? " " : "", c->arguments ? c->arguments : "");
    const int indent = fprintf(f, "\nusage: ");
    print_wrapped(f, usage, n, indent - 1, indent + 3);
}

void cli_print_help(FILE *f, const cli_command *c, const char *path)
{
    fit(f);
    print_wrapped(f, c->summary, (int)strlen(c->summary), fprintf(f, "%s: ", path), 4);
    print_usage(f, c, path);
    if (c->details)
        print_paragraphs(f, c->details);
    if (c->commands) {
        fputs("\ncommands:\n", f);
        print_commands(f, c->commands);
    }
    if (c->options) {
        fputs("\noptions:\n", f);
        for (const cli_option *o = c->options; o->name; o++)
            print_option(f, o);
        print_option(f, &cli_quiet_option);
    }
    if (c->examples) {
        fputs("\nexamples:\n", f);
        print_examples(f, c->examples);
    }
}

void cli_print_overview(FILE *f)
{
    fit(f);
    fputs("attend: " CLI_SUMMARY "\n\nusage: attend COMMAND [OPTION...] [ARGUMENT...]\n\n", f);
    print_commands(f, cli_commands);
    print_paragraphs(f, "\"attend help COMMAND\" describes a command. Exit codes: 0 done, 1 failed on data or files, 2 "
                        "wrong usage; ended by a signal: 128 + its number in a shell.");
}
