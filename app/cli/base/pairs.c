#include "pairs.h"
#include "array.h"
#include "cli.h"
#include "lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int cli_pairs_open(cli_pairs *p, const char *path, int format, bool want_gold, int64_t max_count)
{
    const size_t n = strlen(path);
    const bool named = n > 4 && strcasecmp(path + n - 4, ".csv") == 0;
    const bool csv = format == CLI_PAIRS_BY_NAME ? named : format == CLI_PAIRS_CSV;
    *p = (cli_pairs){.path = path, .csv = csv, .want_gold = want_gold, .max_count = max_count, .next_line = 1};
    int code = cli_file_check(path, &p->total);
    if (code)
        return code;
    p->file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    p->text = malloc(2 * (size_t)max_count * sizeof *p->text);
    p->bytes = malloc(2 * (size_t)max_count * sizeof *p->bytes);
    p->begin = malloc(2 * (size_t)max_count * sizeof *p->begin);
    p->gold = malloc((size_t)max_count * sizeof *p->gold);
    if (!p->file)
        code = cli_fail_errno(path);
    else if (!p->text || !p->bytes || !p->begin || !p->gold)
        code = cli_fail_memory();
    if (code)
        cli_pairs_close(p);
    return code;
}

void cli_pairs_close(cli_pairs *p)
{
    if (p->file && p->file != stdin)
        fclose(p->file);
    free(p->text);
    free(p->bytes);
    free(p->begin);
    free(p->gold);
    free(p->data);
    *p = (cli_pairs){0};
}

static int wrong(const cli_pairs *p, const char *what)
{
    return cli_fail("%s: line %lld: %s", p->path, (long long)p->line, what);
}

static int put(cli_pairs *p, int c)
{
    static const size_t max = (size_t)1 << 31;
    if (p->used == p->capacity &&
        (p->used >= max || !cli_reserve(&p->capacity, p->used + 1, &(cli_array){&p->data, 1}, 1)))
        return cli_fail_memory();
    p->data[p->used++] = (char)c;
    return CLI_DONE;
}

static int get(cli_pairs *p)
{
    int c = getc_unlocked(p->file);
    p->read += c != EOF;
    p->next_line += c == '\n';
    return c;
}

/* Reads a quoted field after its opening quote. */
static int read_quoted(cli_pairs *p)
{
    for (int code = CLI_DONE; !code;) {
        int c = get(p);
        if (c == EOF)
            return wrong(p, "a quoted field does not end");
        if (c == '"') {
            c = getc_unlocked(p->file);
            if (c != '"') {
                ungetc(c, p->file);
                return CLI_DONE;
            }
            p->read++;
        }
        code = put(p, c);
    }
    return CLI_FAILED;
}

/* Appends one field to data, zero-terminated; *last: the character after it, '\n' at the end of the file. */
static int read_field(cli_pairs *p, int *last)
{
    const int between = p->csv ? ',' : '\t';
    size_t begin = p->used;
    int c = get(p), code = CLI_DONE;
    bool quoted = p->csv && c == '"';
    if (quoted) {
        code = read_quoted(p);
        c = get(p);
        if (!code && c == '\r')
            c = get(p);
        if (!code && c != between && c != '\n' && c != EOF)
            code = wrong(p, "text stands behind a closing quote");
    }
    for (; !code && c != between && c != '\n' && c != EOF; c = get(p))
        code = put(p, c);
    if (!code && !quoted && c != between && p->used > begin && p->data[p->used - 1] == '\r')
        p->used--;
    *last = c == EOF ? '\n' : c;
    return code ? code : put(p, '\0');
}

static int parse_gold(cli_pairs *p, const char *field)
{
    char *end;
    double v = strtod(field, &end);
    if (end == field || *end || !isfinite(v))
        return cli_fail("%s: line %lld: the third column is \"%.40s\", but must be a number", p->path,
                        (long long)p->line, field);
    p->gold[p->count] = v;
    return CLI_DONE;
}

/* Appends one pair to the block. */
static int read_record(cli_pairs *p)
{
    int fields = 0, last = 0, code = CLI_DONE;
    p->line = p->next_line;
    p->gold[p->count] = 0;
    for (; !code && last != '\n'; fields++) {
        size_t begin = p->used;
        code = read_field(p, &last);
        if (code)
            return code;
        if (fields < 2) {
            p->begin[2 * p->count + fields] = begin;
            p->bytes[2 * p->count + fields] = p->used - 1 - begin;
            continue;
        }
        if (fields == 2 && p->want_gold)
            code = parse_gold(p, p->data + begin);
        p->used = begin; /* further columns are discarded */
    }
    if (!code && fields < 2)
        code = wrong(p, p->csv ? "one column, but a pair has two with a comma between them"
                               : "one column, but a pair has two with a tab between them");
    if (!code && fields < 3 && p->want_gold)
        code = wrong(p, "two columns, but the expected score must stand in a third");
    if (!code)
        p->count++;
    return code;
}

int cli_pairs_next(cli_pairs *p)
{
    int code = CLI_DONE;
    p->count = 0;
    p->used = 0;
    while (!code && p->count < p->max_count) {
        errno = 0;
        int c = getc_unlocked(p->file);
        if (c == EOF)
            break;
        ungetc(c, p->file);
        code = read_record(p);
    }
    if (!code && ferror(p->file))
        code = cli_fail_errno(p->path);
    for (int64_t i = 0; i < 2 * p->count; i++)
        p->text[i] = p->data + p->begin[i];
    return code;
}
