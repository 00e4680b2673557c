/* The manual page attend(1), from the tables. */
#include "cli.h"

#include <string.h>

enum { MAN_COLUMNS = CLI_HELP_COLUMNS - 8 }; /* the text of a page is indented by 7 */

/* Escapes text for roff: hyphens can be copied, no line is a request. */
static void put(FILE *f, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", f);
        if (*text == '-')
            fputs("\\-", f);
        else if (*text == '\\')
            fputs("\\e", f);
        else
            fputc(*text, f);
        start = *text == '\n';
    }
}

/* Paragraphs: an empty line starts the next one. */
static void put_paragraphs(FILE *f, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        char paragraph[2048];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)(end ? end - text : (long)strlen(text)), text);
        fputs(".PP\n", f);
        put(f, paragraph);
        fputc('\n', f);
        text = end ? end + 2 : "";
    }
}

static void put_option(FILE *f, const cli_option *o)
{
    char fallback[64];
    fputs(".TP\n", f);
    if (o->letter)
        fprintf(f, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", f);
    put(f, o->name);
    fputs("\\fR", f);
    if (o->value)
        fprintf(f, " \\fI%s\\fR", o->value);
    fputc('\n', f);
    put(f, o->help);
    cli_option_default(o, fallback, sizeof fallback);
    if (*fallback) {
        fputs("; default: ", f);
        put(f, fallback);
    }
    if (o->env)
        fprintf(f, " (environment: \\fB%s\\fR)", o->env);
    fputs(".\n", f);
}

static void put_examples(FILE *f, const char *text)
{
    fputs(".PP\n.nf\n", f);
    while (*text) {
        const int n = (int)strcspn(text, "\n");
        for (int done = 0; done < n;) {
            char part[256];
            const int indent = done ? 4 : 0, length = cli_shell_break(text + done, n - done, MAN_COLUMNS - indent);
            snprintf(part, sizeof part, "%*s%.*s%s\n", indent, "", length, text + done, done + length < n ? " \\" : "");
            put(f, part);
            done += length + 1;
        }
        text += n + (text[n] == '\n');
    }
    fputs(".fi\n", f);
}

static void put_command(FILE *f, const cli_command *c, const char *path)
{
    fprintf(f, ".SS %s", path);
    if (c->arguments) {
        fputc(' ', f);
        put(f, c->arguments);
    }
    fputc('\n', f);
    put(f, c->summary);
    fputs(".\n", f);
    if (c->details)
        put_paragraphs(f, c->details);
    for (const cli_option *o = c->options; o && o->name; o++)
        put_option(f, o);
    if (c->examples)
        put_examples(f, c->examples);
    for (const cli_command *const *sub = c->commands; sub && *sub; sub++) {
        char deeper[64];
        snprintf(deeper, sizeof deeper, "%s %s", path, (*sub)->name);
        put_command(f, *sub, deeper);
    }
}

static const char around[] =
    ".SH FILES\n"
    "Models are folders as they are published, in \\fB$ATTEND_MODELS\\fR, else in "
    "\\fB$XDG_DATA_HOME/attend/models\\fR,\nelse in \\fB~/.local/share/attend/models\\fR.\n"
    "\\fBattend fetch\\fR downloads them there.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBATTEND_MODELS\\fR\nThe folder with the models.\n"
    ".TP\n\\fBATTEND_MODEL\\fR\nStands in for \\fB\\-\\-model\\fR.\n"
    ".TP\n\\fBATTEND_THREADS\\fR\nStands in for \\fB\\-\\-threads\\fR.\n"
    ".TP\n\\fBATT_ISA\\fR\nForces an instruction set: one of those that \\fBattend info\\fR lists.\n"
    ".SH EXIT STATUS\n"
    ".TP\n\\fB0\\fR\nDone.\n"
    ".TP\n\\fB1\\fR\nFailed on data or files; one sentence on standard error says why.\n"
    ".TP\n\\fB2\\fR\nWrong usage.\n"
    ".TP\n\\fB128\\fR + N\nIn a shell: ended by signal N, as 130 by Ctrl\\-C (SIGINT), 143 by SIGTERM, 129 by SIGHUP. "
    "The "
    "first one ends\nit; output files are whole or not there, and a training saves first.\n"
    ".PP\nWhere the reader of standard output goes away (\\fB| head\\fR), attend ends quietly by SIGPIPE, as other "
    "tools do.\n";

void cli_print_man(FILE *f)
{
    fprintf(f,
            ".TH ATTEND 1 \"\" \"attend %s\" \"User Commands\"\n.SH NAME\nattend \\- attention and Transformers\n"
            ".SH SYNOPSIS\n\\fBattend\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH COMMANDS\n",
            att_version());
    for (const cli_command *const *c = cli_commands; *c; c++) {
        char path[64];
        snprintf(path, sizeof path, "attend %s", (*c)->name);
        put_command(f, *c, path);
    }
    fputs(around, f);
}
