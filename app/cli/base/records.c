#include "records.h"
#include "array.h"
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

/* A pipe is read once, as it comes. */
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
    *r = (cli_records){0};
}

/* ---- records */

/* Appends the record to data. */
static int add(cli_records *r, const att_table_record *record)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < record->n; i++)
        bytes += record->fields[i].bytes + 1;
    const cli_array arrays[] = {{&r->begin, sizeof *r->begin}, {&r->bytes, sizeof *r->bytes}};
    if (!cli_reserve(&r->room, (size_t)record->n, arrays, 2) ||
        !cli_reserve(&r->capacity, r->used + bytes, &(cli_array){&r->data, 1}, 1))
        return cli_fail_memory();
    for (int64_t i = 0; i < record->n; i++) {
        const att_byte_view field = record->fields[i];
        r->begin[i] = r->used;
        r->bytes[i] = field.bytes;
        memcpy(r->data + r->used, field.data, field.bytes);
        r->data[r->used + field.bytes] = '\0';
        r->used += field.bytes + 1;
    }
    return CLI_DONE;
}

int cli_records_next(cli_records *r)
{
    att_table_record record = {.size = sizeof record};
    const int code = cli_status(r->ctx, att_table_next(r->table, &record));
    r->fields = code ? 0 : record.n;
    r->line = record.line;
    r->read = (double)record.offset;
    return code || !record.n ? code : add(r, &record);
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

bool cli_records_named(const cli_records *r)
{
    static const char *const names[] = {
        "text",    "sentence", "sent",       "question", "query",      "answer",   "anchor", "positive", "negative",
        "premise", "passage",  "hypothesis", "source",   "target",     "src",      "tgt",    "score",    "label",
        "gold",    "title",    "similarity", "document", "paraphrase", "response", "split",  "index"};
    bool all = r->fields > 0;
    for (int64_t i = 0; all && i < r->fields; i++) {
        const char *field = r->data + r->begin[i] + strspn(r->data + r->begin[i], " ");
        size_t n = strlen(field);
        n -= n > 2 && strchr(" _-", field[n - 2]) && strchr("abAB", field[n - 1]) ? 2 : 0; /* "text_a" */
        while (n > 0 && strchr(" _-0123456789", field[n - 1]))                             /* "sentence1" */
            n--;
        all = false;
        for (size_t k = 0; !all && k < sizeof names / sizeof *names; k++)
            all = strlen(names[k]) == n && !strncasecmp(field, names[k], n);
    }
    return all;
}

void cli_records_heading(cli_records *r)
{
    cli_note("%s: line %lld was read as a heading: %.40s%s%.40s", r->path, (long long)r->line, r->data + r->begin[0],
             r->fields > 1 ? ", " : "", r->fields > 1 ? r->data + r->begin[1] : "");
    drop(r);
}
