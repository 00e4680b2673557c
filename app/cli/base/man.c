/* The manual pages attend(1), attend-embed(1), attend-train-translate(1) and so on, from the tables. */
#include "command.h"
#include "output.h"

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

/* Writes paragraphs. An empty line begins the next one. A paragraph that begins with a space is a table, and is not
 * changed. */
static void put_paragraphs(FILE *f, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        char paragraph[2048];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)(end ? end - text : (long)strlen(text)), text);
        fputs(*paragraph == ' ' ? ".nf\n" : "", f);
        put(f, paragraph);
        fputs(*paragraph == ' ' ? "\n.fi" : "", f);
        fputs(end ? "\n.PP\n" : "\n", f);
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
    if (o->value) {
        fputs(" \\fI", f);
        put(f, o->value);
        fputs("\\fR", f);
    }
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
    fputs(".SH EXAMPLES\n.nf\n", f);
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

/* "attend train embed" as the name of its page, attend-train-embed, with this text for the hyphen. */
static void put_page(FILE *f, const char *path, const char *hyphen)
{
    for (; *path; path++)
        if (*path == ' ')
            fputs(hyphen, f);
        else
            fputc(*path, f);
}

static void put_reference(FILE *f, const char *path, bool last)
{
    fputs(".BR ", f);
    put_page(f, path, "\\-");
    fprintf(f, " (1)%s\n", last ? "" : ",");
}

static void put_commands(FILE *f, const cli_command *const *commands, const char *path)
{
    fputs(".SH COMMANDS\n", f);
    for (; *commands; commands++) {
        char deeper[64];
        snprintf(deeper, sizeof deeper, "%s %s", path, (*commands)->name);
        fputs(".TP\n", f);
        put_reference(f, deeper, true);
        put(f, (*commands)->summary);
        fputs(".\n", f);
    }
}

/* Lists the pages of attend, of the command above, and of `see`. */
static void put_references(FILE *f, const cli_command *c, const char *path)
{
    char parent[64], words[256], *rest = words;
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, ' ') - path), path);
    fputs(".SH SEE ALSO\n", f);
    put_reference(f, "attend", !c->see && !strchr(parent, ' '));
    if (strchr(parent, ' '))
        put_reference(f, parent, !c->see);
    snprintf(words, sizeof words, "%s", c->see ? c->see : "");
    for (const char *word; c->see && (word = strsep(&rest, "|"));) {
        char other[64];
        snprintf(other, sizeof other, "attend %s", word);
        put_reference(f, other, !rest);
    }
}

static void put_head(FILE *f, const char *path, const char *summary)
{
    fputs(".TH ", f);
    put_page(f, path, "-");
    fprintf(f, " 1 \"\" \"attend %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n", att_version());
    put_page(f, path, "\\-");
    fputs(" \\- ", f);
    put(f, summary);
    fprintf(f, "\n.SH SYNOPSIS\n\\fB%s\\fR", path);
}

static void put_synopsis(FILE *f, const cli_command *c)
{
    for (const cli_option *o = c->options; o && o->name; o++) {
        if (o->required && o->letter)
            fprintf(f, " \\fB\\-%c\\fR \\fI%s\\fR", o->letter, o->value);
        else if (o->required)
            fprintf(f, " \\fB\\-\\-%s\\fR \\fI%s\\fR", o->name, o->value);
    }
    fputs(c->options ? " [\\fIOPTION\\fR...]" : "", f);
    if (c->arguments)
        fprintf(f, " \\fI%s\\fR", c->arguments);
    fputc('\n', f);
}

static void put_command(FILE *f, const cli_command *c, const char *path)
{
    put_head(f, path, c->summary);
    put_synopsis(f, c);
    fputs(".SH DESCRIPTION\n", f);
    if (c->details) {
        put_paragraphs(f, c->details);
    } else {
        put(f, c->summary);
        fputs(".\n", f);
    }
    if (c->commands)
        put_commands(f, c->commands, path);
    if (c->options)
        fputs(".SH OPTIONS\n", f);
    for (const cli_option *o = c->options; o && o->name; o++)
        put_option(f, o);
    if (c->options)
        put_option(f, &cli_quiet_option);
    if (c->examples)
        put_examples(f, c->examples);
    put_references(f, c, path);
}

static const char around[] =
    ".SH FILES\n"
    "Models are folders as they are published, in \\fB$ATTEND_MODELS\\fR, else in "
    "\\fB$XDG_DATA_HOME/attend/models\\fR,\nelse in \\fB~/.local/share/attend/models\\fR.\n"
    "\\fBattend fetch\\fR downloads them there.\n"
    "OWNER/NAME is the snapshot of a model in the cache of the Hugging Face Hub.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBATTEND_MODELS\\fR\nThe folder with the models.\n"
    ".TP\n\\fBATTEND_MODEL\\fR\nStands in for \\fB\\-\\-model\\fR.\n"
    ".TP\n\\fBHF_HUB_CACHE\\fR, \\fBHF_HOME\\fR\nThe cache of the Hugging Face Hub, and the folder in which it is "
    "\\fBhub\\fR; default: \\fB~/.cache/huggingface\\fR.\n"
    ".TP\n\\fBATTEND_THREADS\\fR\nStands in for \\fB\\-\\-threads\\fR.\n"
    ".TP\n\\fBATT_ISA\\fR\nForces an instruction set: one of those that \\fBattend info\\fR lists.\n"
    ".SH EXIT STATUS\n"
    ".TP\n\\fB0\\fR\nDone.\n"
    ".TP\n\\fB1\\fR\nFailed on data or files; one sentence on standard error states why.\n"
    ".TP\n\\fB2\\fR\nWrong usage.\n"
    ".TP\n\\fB128\\fR + N\nIn a shell: ended by signal N, as 130 by Ctrl\\-C (SIGINT), 143 by SIGTERM, 129 by SIGHUP.\n"
    "The first one ends\nit; output files are whole or not there, and a training saves first.\n"
    ".PP\nWhere the reader of standard output goes away (\\fB| head\\fR), attend ends quietly by SIGPIPE, as other "
    "tools do.\n";

void cli_print_man(FILE *f, const cli_command *c, const char *path)
{
    if (c) {
        put_command(f, c, path);
        return;
    }
    put_head(f, path, CLI_SUMMARY);
    fputs(" \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
          ".SH DESCRIPTION\nEach command has a page of its own; \\fBattend help\\fR \\fICOMMAND\\fR prints its help.\n",
          f);
    put_commands(f, cli_commands, path);
    fputs(around, f);
}

/* Writes the page of a command and of those below it. */
static int write_pages(const char *folder, const cli_command *c, const char *path)
{
    char file[4096], page[64];
    snprintf(page, sizeof page, "%s", path);
    for (char *p = page; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    const int n = snprintf(file, sizeof file, "%s/%s.1", folder, page);
    cli_output out;
    int code = (size_t)n < sizeof file ? cli_output_open(&out, file) : cli_fail("%s: the path is too long", folder);
    if (code)
        return code;
    cli_print_man(out.file, c, path);
    code = cli_output_close(&out, CLI_DONE);
    for (const cli_command *const *sub = c ? c->commands : cli_commands; !code && sub && *sub; sub++) {
        char deeper[64];
        snprintf(deeper, sizeof deeper, "%s %s", path, (*sub)->name);
        code = write_pages(folder, *sub, deeper);
    }
    return code;
}

int cli_write_man(const char *folder) { return write_pages(folder, NULL, "attend"); }
