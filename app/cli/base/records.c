#include "records.h"
#include "array.h"
#include "cli.h"
#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* "pairs.csv", "pairs.csv.gz" */
static bool is_csv(const char *path)
{
    size_t n = strlen(path);
    n -= n > 3 && strcasecmp(path + n - 3, ".gz") == 0 ? 3 : 0;
    return n > 4 && strncasecmp(path + n - 4, ".csv", 4) == 0;
}

static int open_file(cli_records *r)
{
    struct stat s;
    if (strcmp(r->path, "-") == 0) {
        r->file = stdin;
        return CLI_DONE;
    }
    int file;
    const int code = cli_status(NULL, att_open_text(r->path, &file));
    if (code)
        return code;
    r->file = fdopen(file, "rb");
    if (!r->file) {
        close(file);
        return cli_fail_memory();
    }
    r->total = fstat(file, &s) || !S_ISREG(s.st_mode) ? 0 : (double)s.st_size;
    return CLI_DONE;
}

int cli_records_open(cli_records *r, const char *path, int format)
{
    const bool csv = format == CLI_PAIRS_BY_NAME ? is_csv(path) : format == CLI_PAIRS_CSV;
    *r = (cli_records){.path = path, .csv = csv, .next_line = 1};
    const int code = cli_file_check(path, &r->total);
    return code ? code : open_file(r);
}

void cli_records_close(cli_records *r)
{
    if (r->file && r->file != stdin)
        fclose(r->file);
    free(r->begin);
    free(r->bytes);
    free(r->data);
    *r = (cli_records){0};
}

static int wrong(const cli_records *r, const char *what)
{
    return cli_fail("%s: line %lld: %s", r->path, (long long)r->line, what);
}

static int put(cli_records *r, int c)
{
    static const size_t max = (size_t)1 << 31;
    if (r->used == r->capacity &&
        (r->used >= max || !cli_reserve(&r->capacity, r->used + 1, &(cli_array){&r->data, 1}, 1)))
        return cli_fail_memory();
    r->data[r->used++] = (char)c;
    return CLI_DONE;
}

static int get(cli_records *r)
{
    int c = getc_unlocked(r->file);
    r->read += c != EOF;
    r->next_line += c == '\n';
    return c;
}

/* Reads a quoted field after its opening quote. */
static int read_quoted(cli_records *r)
{
    for (int code = CLI_DONE; !code;) {
        int c = get(r);
        if (c == EOF)
            return wrong(r, "a quoted field does not end");
        if (c == '"') {
            c = getc_unlocked(r->file);
            if (c != '"') {
                ungetc(c, r->file);
                return CLI_DONE;
            }
            r->read++;
        }
        code = put(r, c);
    }
    return CLI_FAILED;
}

/* Appends one field to data, zero-terminated; *last: the character after it, '\n' at the end of the file. */
static int read_field(cli_records *r, int *last)
{
    const int between = r->csv ? ',' : '\t';
    size_t begin = r->used;
    int c = get(r), code = CLI_DONE;
    bool quoted = r->csv && c == '"';
    if (quoted) {
        code = read_quoted(r);
        c = get(r);
        if (!code && c == '\r')
            c = get(r);
        if (!code && c != between && c != '\n' && c != EOF)
            code = wrong(r, "text stands behind a closing quote");
    }
    for (; !code && c != between && c != '\n' && c != EOF; c = get(r))
        code = put(r, c);
    if (!code && !quoted && c != between && r->used > begin && r->data[r->used - 1] == '\r')
        r->used--;
    *last = c == EOF ? '\n' : c;
    return code ? code : put(r, '\0');
}

static int read_record(cli_records *r)
{
    int code = CLI_DONE;
    r->line = r->next_line;
    for (int last = 0; !code && last != '\n';) {
        const size_t begin = r->used;
        const cli_array arrays[] = {{&r->begin, sizeof *r->begin}, {&r->bytes, sizeof *r->bytes}};
        if (!cli_reserve(&r->room, (size_t)r->fields + 1, arrays, 2))
            return cli_fail_memory();
        code = read_field(r, &last);
        r->begin[r->fields] = begin;
        r->bytes[r->fields++] = code ? 0 : r->used - 1 - begin;
    }
    return code;
}

int cli_records_next(cli_records *r)
{
    r->fields = 0;
    errno = 0;
    const int c = getc_unlocked(r->file);
    int code = CLI_DONE;
    if (c != EOF) {
        ungetc(c, r->file);
        code = read_record(r);
    }
    return !code && ferror(r->file) ? cli_fail_errno(r->path) : code;
}
