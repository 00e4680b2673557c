#include "records.h"
#include "grow.h"
#include "lines.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- opening */

/* "pairs.csv", "pairs.csv.gz" */
static bool is_csv(const char *path)
{
    size_t n = strlen(path);
    n -= n > 3 && strcasecmp(path + n - 3, ".gz") == 0 ? 3 : 0;
    return n > 4 && strncasecmp(path + n - 4, ".csv", 4) == 0;
}

/* Opens a pipe, which is read only once. */
static int open_stream(cli_records *r, const att_table_options *o)
{
    const bool standard = !strcmp(r->path, "-");
    r->path = standard ? "standard input" : r->path;
    r->stream = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(r->path, O_RDONLY | O_CLOEXEC);
    r->has_stream = r->stream >= 0;
    return r->has_stream ? cli_status(r->ctx, att_table_open_stream(r->ctx, r->stream, r->path, o, &r->table))
                         : cli_fail_errno(r->path);
}

static int open_table(cli_records *r)
{
    const att_table_options *o =
        ATT_OPTIONS(att_table_options, .format = r->csv ? ATT_TABLE_CSV : ATT_TABLE_TSV, .skip_bad_lines = r->skip);
    double bytes = -1; /* of a pipe */
    int code = strcmp(r->path, "-") != 0 ? cli_file_check(r->path, &bytes) : CLI_DONE;
    if (!code)
        code = cli_open(&r->ctx, 1);
    if (code)
        return code;
    return bytes < 0 ? open_stream(r, o) : cli_status(r->ctx, att_table_open(r->ctx, r->path, o, &r->table));
}

int cli_records_open(cli_records *r, const char *path, int format, int64_t skip)
{
    const bool csv = format == CLI_PAIRS_BY_NAME ? is_csv(path) : format == CLI_PAIRS_CSV;
    att_table_info info = {.size = sizeof info};
    *r = (cli_records){.path = path, .csv = csv, .skip = skip};
    int code = open_table(r);
    if (!code)
        code = cli_status(r->ctx, att_table_describe(r->table, &info));
    r->total = (double)info.bytes;
    r->between = info.separator == ',' ? "comma" : info.separator == ';' ? "semicolon" : "tab";
    return code;
}

void cli_records_close(cli_records *r)
{
    att_table_free(r->table);
    if (r->has_stream)
        close(r->stream);
    att_close(r->ctx);
    free(r->begin);
    free(r->bytes);
    free(r->data);
    free(r->heading);
    free(r->column);
    *r = (cli_records){0};
}

/* ---- records */

/* Appends the record to data: its chosen fields, if some were chosen. */
static int add(cli_records *r, const att_table_record *record)
{
    size_t bytes = 0;
    const int64_t n = r->chosen ? r->chosen : record->n;
    for (int64_t i = 0; i < record->n; i++)
        bytes += record->fields[i].bytes + 1;
    const cli_array arrays[] = {{&r->begin, sizeof *r->begin}, {&r->bytes, sizeof *r->bytes}};
    if (!cli_reserve(&r->room, (size_t)n, arrays, 2) ||
        !cli_reserve(&r->capacity, r->used + bytes, &(cli_array){&r->data, 1}, 1))
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++) {
        const att_byte_view field = record->fields[r->chosen ? r->column[i] : i];
        r->begin[i] = r->used;
        r->bytes[i] = field.bytes;
        memcpy(r->data + r->used, field.data, field.bytes);
        r->data[r->used + field.bytes] = '\0';
        r->used += field.bytes + 1;
    }
    r->fields = n;
    return CLI_DONE;
}

/* Returns whether the record repeats the heading, as in files that were joined. */
static bool is_heading(const cli_records *r, const att_table_record *record)
{
    const char *at = r->heading, *end = at ? at + r->heading_bytes : NULL;
    for (int64_t i = 0; at && i < record->n; i++) {
        const att_byte_view field = record->fields[i];
        const bool same = field.bytes < (size_t)(end - at) && !memcmp(field.data, at, field.bytes) && !at[field.bytes];
        at = same ? at + field.bytes + 1 : NULL;
    }
    return at && at == end;
}

int cli_records_next(cli_records *r)
{
    for (;;) {
        att_table_record record = {.size = sizeof record};
        int code = cli_status(r->ctx, att_table_next(r->table, &record));
        r->fields = 0;
        r->line = record.line;
        r->read = (double)record.offset;
        if (code || !record.n)
            return code;
        if (is_heading(r, &record))
            continue;
        if (!r->chosen || record.n == r->columns)
            return add(r, &record);
        code =
            cli_records_refuse(r, "%lld columns, but the heading has %lld", (long long)record.n, (long long)r->columns);
        if (code)
            return code;
    }
}

static void drop(cli_records *r) { r->used = r->fields ? r->begin[0] : r->used; }

int cli_records_refuse(cli_records *r, const char *format, ...)
{
    char why[400];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    drop(r);
    return cli_status(r->ctx, att_table_refuse(r->table, why));
}

int cli_records_refuse_one(cli_records *r)
{
    const char first = r->data[r->begin[0]];
    return cli_records_refuse(r, "one column, but a pair has two with a %s between them%s", r->between,
                              first == '{' || first == '[' ? "; JSON is not read: write its texts as CSV" : "");
}

void cli_records_skipped(const cli_records *r, cli_skipped *out)
{
    att_table_info info = {.size = sizeof info};
    *out = (cli_skipped){.max = r->skip};
    if (!r->table || att_table_describe(r->table, &info))
        return;
    out->n = info.skipped;
    snprintf(out->first, sizeof out->first, "%s", info.bad ? info.bad : "");
}

/* ---- headings */

/* The groups of known names of columns. The texts of the first group that two or more columns have are read. */
enum { SENTENCES, TEXTS, PARTS, SIDES, TITLES, GROUPS, VALUE = GROUPS, NO_TEXT, UNKNOWN };

static const struct {
    const char *name; /* without a number or letter at its end, as in "sentence1" and "text_a" */
    int kind;
} names[] = {
    {"sentence", SENTENCES},
    {"sent", SENTENCES},
    {"text", TEXTS},
    {"question", PARTS},
    {"query", PARTS},
    {"answer", PARTS},
    {"anchor", PARTS},
    {"positive", PARTS},
    {"negative", PARTS},
    {"premise", PARTS},
    {"passage", PARTS},
    {"hypothesis", PARTS},
    {"document", PARTS},
    {"paraphrase", PARTS},
    {"response", PARTS},
    {"source", SIDES},
    {"target", SIDES},
    {"src", SIDES},
    {"tgt", SIDES},
    {"title", TITLES},
    {"score", VALUE},
    {"label", VALUE},
    {"gold", VALUE},
    {"gold_label", VALUE},
    {"similarity", VALUE},
    {"similarity_score", VALUE},
    {"relatedness_score", VALUE},
    {"is_duplicate", VALUE},
    {"split", NO_TEXT},
    {"index", NO_TEXT},
};

static int kind_of(const char *field)
{
    field += strspn(field, " ");
    size_t n = strlen(field);
    n -= n > 2 && strchr(" _-", field[n - 2]) && strchr("abAB", field[n - 1]) ? 2 : 0;
    while (n > 0 && strchr(" _-0123456789", field[n - 1]))
        n--;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strlen(names[k].name) == n && !strncasecmp(field, names[k].name, n))
            return names[k].kind;
    return UNKNOWN;
}

/* Counts the fields of each kind in the current record. */
static void count_kinds(const cli_records *r, int64_t of[UNKNOWN + 1])
{
    for (int k = 0; k <= UNKNOWN; k++)
        of[k] = 0;
    for (int64_t i = 0; i < r->fields; i++)
        of[kind_of(r->data + r->begin[i])]++;
}

static int64_t count_texts(const int64_t of[UNKNOWN + 1])
{
    int64_t n = 0;
    for (int k = 0; k < GROUPS; k++)
        n += of[k];
    return n;
}

/* Returns whether the heading names a text and its label, and records may be these. */
static bool is_single(const cli_records *r, const int64_t of[UNKNOWN + 1])
{
    return r->single && count_texts(of) == 1 && of[VALUE];
}

bool cli_records_named(const cli_records *r)
{
    int64_t of[UNKNOWN + 1];
    count_kinds(r, of);
    return r->fields > 0 && (!of[UNKNOWN] || count_texts(of) > 1 || is_single(r, of));
}

/* Returns the group of texts that is read; GROUPS: all of them. */
static int find_group(const int64_t of[UNKNOWN + 1])
{
    int group = 0;
    while (group < GROUPS && of[group] < 2)
        group++;
    return group;
}

/* Chooses the columns of a heading that names texts: these, and the first score or label; without one all that follow
 * the texts. */
static int choose_columns(cli_records *r)
{
    int64_t of[UNKNOWN + 1], value = -1, last = -1;
    count_kinds(r, of);
    const int group = find_group(of);
    if (count_texts(of) == 1 && of[VALUE] && !r->single)
        return cli_fail("%s: line %lld: the heading names one column of texts, but a pair has two", r->path,
                        (long long)r->line);
    if (count_texts(of) < 2 && !is_single(r, of))
        return CLI_DONE;
    r->column = malloc((size_t)r->fields * sizeof *r->column);
    if (!r->column)
        return cli_fail_memory();
    for (int64_t i = 0; i < r->fields; i++) {
        const int kind = kind_of(r->data + r->begin[i]);
        if (group < GROUPS ? kind == group : kind < GROUPS)
            r->column[r->chosen++] = last = i;
        else if (kind == VALUE && value < 0)
            value = i;
    }
    r->valued = value >= 0;
    if (r->valued)
        r->column[r->chosen++] = value;
    for (int64_t i = last + 1; !r->valued && i < r->fields; i++)
        r->column[r->chosen++] = i;
    r->columns = r->fields;
    return CLI_DONE;
}

/* Returns the name of a column that is read; "": there is none. */
static const char *name_of(const cli_records *r, int64_t i)
{
    const int64_t n = r->chosen ? r->chosen : r->fields;
    return i < n ? r->data + r->begin[r->chosen ? r->column[i] : i] : "";
}

int cli_records_heading(cli_records *r)
{
    r->heading_bytes = r->used - r->begin[0];
    r->heading = malloc(r->heading_bytes);
    if (!r->heading)
        return cli_fail_memory();
    memcpy(r->heading, r->data + r->begin[0], r->heading_bytes);
    if (choose_columns(r))
        return CLI_FAILED;
    const char *first = name_of(r, 0), *second = name_of(r, 1);
    cli_note("%s: line %lld was read as a heading: %.40s%s%.40s%s", r->path, (long long)r->line, first,
             *second ? ", " : "", second, r->chosen && r->chosen < r->fields ? " ..." : "");
    drop(r);
    return CLI_DONE;
}

/* ---- numbers */

bool cli_records_number(const char *text, double *value)
{
    char point[64], *end;
    const size_t comma = strcspn(text, ",");
    if (text[comma] && strlen(text) < sizeof point && !strpbrk(text + comma + 1, ".,") &&
        strspn(text, " +-0123456789") == comma) {
        strcpy(point, text);
        point[comma] = '.';
        text = point;
    }
    *value = strtod(text, &end);
    return end > text && !end[strspn(end, " ")];
}
