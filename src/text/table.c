#include "text/table.h"
#include "io/text_start.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

typedef enum parsed { RECORD, MORE, UNENDED, TEXT_AFTER_QUOTE, TOO_LONG, NO_MEMORY } parsed; /* MORE: the block ends */

static bool is_space(char c) { return c == ' ' || c == '\t'; }

bool att_is_blank(att_byte_view text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] != ' ')
            return false;
    return true;
}

/* ---- a field */

/* The rest of the record in the block, from `at` on. */
typedef struct part {
    const char *at;   /* of the next field; NULL: none */
    const char *stop; /* end of the line, without line end characters */
    const char *next; /* line: the first character after its end */
} part;

/* Finds the end of the line in which `from` is; false: the block has none. */
static bool find_line(const att_table *t, const char *from, part *p)
{
    const att_text_lines *l = &t->lines;
    const char *end = l->block + l->used, *feed = from < end ? memchr(from, '\n', (size_t)(end - from)) : NULL;
    p->stop = feed ? feed : end;
    p->next = feed ? feed + 1 : end;
    while (p->stop > from && p->stop[-1] == '\r') /* there may be two: Windows programs turn "\r\n" into "\r\r\n" */
        p->stop--;
    return feed || l->end;
}

static const char *find_separator(const att_table *t, const char *from, const char *stop)
{
    const size_t n = strlen(t->separator);
    for (const char *p = from; (p = memchr(p, t->separator[0], (size_t)(stop - p))); p++)
        if ((size_t)(stop - p) >= n && !memcmp(p, t->separator, n))
            return p;
    return stop;
}

static parsed add_field(att_table *t, const char *from, const char *stop)
{
    if (att_grow(t->ctx, &t->field, sizeof *t->field, (size_t)t->n, 1, &t->room))
        return NO_MEMORY;
    t->field[t->n++] = (att_byte_view){from, (size_t)(stop - from)};
    return RECORD;
}

/* Moves on after a field that ends at `after`, a separator or the end of the line. */
static void move_on(const att_table *t, part *p, const char *after)
{
    p->at = after < p->stop ? after + strlen(t->separator) : NULL;
}

static parsed read_plain(att_table *t, part *p)
{
    const char *start = p->at, *after = find_separator(t, start, p->stop);
    move_on(t, p, after);
    return add_field(t, start, after);
}

static parsed read_word(att_table *t, part *p)
{
    const char *start = p->at;
    while (start < p->stop && is_space(*start))
        start++;
    p->at = start;
    while (p->at < p->stop && !is_space(*p->at))
        p->at++;
    const char *after = p->at;
    p->at = start < p->stop ? after : NULL;
    return start < p->stop ? add_field(t, start, after) : RECORD;
}

/* Adds a field of quotes, with each "" replaced by ". */
static parsed add_unquoted(att_table *t, const char *from, const char *stop)
{
    const size_t start = t->unquoted.count;
    if (!memchr(from, '"', (size_t)(stop - from)))
        return add_field(t, from, stop);
    /* A record adds at most the block to `unquoted`, so its fields do not move. */
    if (!t->unquoted.data && !att_bytes_reserve(&t->unquoted, ATT_TEXT_BLOCK))
        return NO_MEMORY;
    for (const char *quote; from < stop; from = quote + 2) {
        quote = memchr(from, '"', (size_t)(stop - from));
        att_bytes_add(&t->unquoted, from, (size_t)((quote ? quote + 1 : stop) - from));
        if (!quote)
            break;
    }
    const char *text = t->unquoted.data + start;
    return add_field(t, text, t->unquoted.data + t->unquoted.count);
}

/* Returns whether a quoted field has tabs of its line and the line's end. If tabs separate fields, the quotes then
 * belong to two texts, as in titles of songs, with fields between them. */
static bool has_fields(const att_table *t, const char *from, const char *quote)
{
    const size_t n = (size_t)(quote - from);
    return *t->separator == '\t' && memchr(from, '\n', n) && memchr(from, '\t', n);
}

/* Reads a field that begins with a quote and may continue in further lines. */
static parsed read_quoted(att_table *t, part *p)
{
    const char *start = p->at + 1, *end = t->lines.block + t->lines.used, *quote = start;
    for (;; quote += 2) {
        quote = quote < end ? memchr(quote, '"', (size_t)(end - quote)) : NULL;
        if (!quote || (quote + 1 == end && !t->lines.end))
            return t->lines.end ? UNENDED : MORE;
        if (quote + 1 == end || quote[1] != '"')
            break;
    }
    if (has_fields(t, start, quote))
        return UNENDED;
    if (!find_line(t, quote + 1, p))
        return MORE;
    const char *after = quote + 1;
    while (after < p->stop && *after == ' ')
        after++;
    if (find_separator(t, after, p->stop) != after)
        return TEXT_AFTER_QUOTE;
    move_on(t, p, after);
    return add_unquoted(t, start, quote);
}

static parsed read_field(att_table *t, part *p)
{
    if (*t->separator == ' ')
        return read_word(t, p);
    while (t->skip_spaces && p->at < p->stop && *p->at == ' ')
        p->at++;
    return t->quoted && p->at < p->stop && *p->at == '"' ? read_quoted(t, p) : read_plain(t, p);
}

/* ---- a record */

/* Splits the next record of the block. A byte order mark before it comes from a file that was appended to another. */
static parsed parse(att_table *t)
{
    const char *start = t->lines.block + t->lines.at;
    part p = {0};
    parsed result = find_line(t, start, &p) ? RECORD : MORE;
    p.at = start + att_mark_bytes(start, (size_t)(p.stop - start));
    t->line = t->last_line = t->lines.lines + 1;
    t->bytes = (size_t)(p.next - start);
    t->n = 0;
    t->unquoted.count = 0;
    while (!result && p.at)
        result = read_field(t, &p);
    t->out_of_memory |= result == NO_MEMORY;
    if (!result && p.stop - start > ATT_MAX_LINE)
        result = TOO_LONG;
    if (result || t->bytes == (size_t)(p.next - start))
        return result;
    t->bytes = (size_t)(p.next - start); /* of several lines */
    for (const char *feed = start; (feed = memchr(feed, '\n', (size_t)(p.stop - feed))); feed++)
        t->last_line++;
    return RECORD;
}

static bool has_ended(const att_table *t) { return t->lines.end && t->lines.at == t->lines.used; }

/* Splits the next record, without reading it. */
static att_status split(att_table *t, parsed *result)
{
    att_status e = ATT_OK;
    *result = MORE;
    while (!e && *result == MORE) {
        const char *start = t->lines.block + t->lines.at;
        const size_t rest = t->lines.used - t->lines.at;
        *result = rest || t->lines.end ? parse(t) : MORE;
        if (*result == MORE && rest > ATT_MAX_LINE && memchr(start, '\n', rest))
            *result = UNENDED; /* a record may not be longer than a line */
        if (*result == MORE)
            e = att_text_lines_fill(&t->lines);
    }
    return t->out_of_memory ? att_fail(t->ctx, ATT_ERR_MEMORY, "%s: out of memory", t->lines.path) : e;
}

static att_status refuse(const att_table *t, parsed result)
{
    const att_where where = att_table_where(t);
    if (result == TOO_LONG)
        return att_text_lines_too_long(&t->lines);
    if (result == UNENDED)
        return att_fail_at(&where, ATT_ERR_FORMAT, "a field begins with a quote but does not end with one (RFC 4180)");
    return att_fail_at(
        &where, ATT_ERR_FORMAT,
        "a field begins with a quote, and text follows its end; quotes in a field are doubled (RFC 4180)");
}

/* Moves past the record, or if it is damaged past its first line. */
static void discard(att_table *t)
{
    t->lines.at += t->bytes;
    t->lines.lines = t->last_line;
}

static bool is_blank_record(const att_table *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!att_is_blank(t->field[i]))
            return false;
    return true;
}

att_status att_table_peek(att_table *t)
{
    parsed result;
    for (;;) {
        const att_status e = split(t, &result);
        t->damaged = !e && result;
        if (e || has_ended(t)) {
            t->n = 0;
            return e;
        }
        if (result)
            return refuse(t, result);
        if (!is_blank_record(t))
            return ATT_OK;
        discard(t);
    }
}

att_status att_table_read(att_table *t)
{
    for (;;) {
        att_status e = att_table_peek(t);
        if (!e && t->n > 0)
            discard(t);
        if (!e)
            return ATT_OK;
        e = t->damaged ? att_table_skip(t, e) : e;
        if (e)
            return e;
        discard(t);
    }
}

att_status att_table_first_line(att_table *t, att_byte_view *line)
{
    part p = {.at = NULL};
    *line = (att_byte_view){"", 0};
    for (;;) {
        const char *start = t->lines.block + t->lines.at;
        if (!has_ended(t) && t->lines.used > t->lines.at && find_line(t, start, &p)) {
            *line = (att_byte_view){start, (size_t)(p.stop - start)};
            if (!att_is_blank(*line))
                return ATT_OK;
            t->lines.at += (size_t)(p.next - start);
            t->lines.lines++;
            continue;
        }
        *line = (att_byte_view){"", 0};
        if (has_ended(t))
            return ATT_OK;
        const att_status e = att_text_lines_fill(&t->lines);
        if (e)
            return e;
    }
}

att_where att_table_where(const att_table *t)
{
    return (att_where){.ctx = t->ctx, .path = t->lines.path, .number = t->line};
}

att_status att_table_skip(att_table *t, att_status e)
{
    if ((e != ATT_ERR_FORMAT && e != ATT_ERR_UNSUPPORTED) || t->skipped >= t->max_skipped)
        return e;
    if (t->skipped++)
        return ATT_OK;
    t->skipped_line = t->line;
    return att_names_add(&t->reason, att_error(t->ctx));
}

/* ---- the separator */

void att_table_separate(att_table *t, const char *separator, bool quoted)
{
    t->separator = separator;
    t->quoted = quoted;
    t->skip_spaces = false;
}

void att_table_sample(att_table *t, att_table_see *see, void *arg)
{
    enum { RECORDS = 100 };
    const size_t at = t->lines.at;
    const int64_t lines = t->lines.lines;
    bool more = true;
    for (int i = 0; i < RECORDS && more && !has_ended(t) && t->lines.used > t->lines.at; i++) {
        const parsed result = parse(t);
        if (result == MORE)
            break;
        t->n = result ? 0 : t->n;
        if (result || !is_blank_record(t))
            more = see(t, arg) && !result;
        discard(t);
    }
    t->lines.at = at;
    t->lines.lines = lines;
}

typedef struct counted {
    int64_t first; /* fields of the first record */
    bool same;     /* all records have as many */
} counted;

static bool count_fields(const att_table *t, void *arg)
{
    counted *c = arg;
    c->first = c->first ? c->first : t->n;
    c->same = t->n == c->first && t->n > 1;
    return c->same;
}

/* Returns whether each comma of the line is between two digits, as in 2,5. */
static bool has_decimal_commas(att_byte_view line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (line.data[i] == ',' && (i == 0 || i + 1 == line.bytes || line.data[i - 1] < '0' || line.data[i - 1] > '9' ||
                                    line.data[i + 1] < '0' || line.data[i + 1] > '9'))
            return false;
    return true;
}

/* Returns the separator of a line such as "sep=;", which Excel writes before the table; NULL: it is not such a line. */
static const char *named_separator(att_byte_view line, const char *const separators[3])
{
    const char *const named[] = {"sep=\t", "sep=;", "sep=,"};
    for (size_t i = 0; i < 3; i++)
        if (line.bytes == strlen(named[i]) && !memcmp(line.data, named[i], line.bytes))
            return separators[i];
    return NULL;
}

/* Finds out whether spaces after separators belong to fields: they do not if all fields of the first record except the
 * first begin with a space. */
static att_status find_spaces(att_table *t)
{
    const att_status e = att_table_peek(t);
    bool all = !e && t->n > 1;
    for (int64_t i = 1; all && i < t->n; i++)
        all = t->field[i].bytes > 0 && *t->field[i].data == ' ';
    t->skip_spaces = all;
    return t->damaged ? ATT_OK : e; /* reading it reports the damage */
}

/* Returns the separator that makes the same number of fields in all records. A tab takes precedence; between comma and
 * semicolon it is the comma, unless its commas are those of numbers. Otherwise returns the one that makes the most
 * fields of the first record. */
static const char *choose_separator(att_table *t, att_byte_view line, const char *const separators[3])
{
    enum { TAB, SEMICOLON, COMMA };
    counted by[3] = {{0, false}, {0, false}, {0, false}};
    for (int i = 0; i < 3; i++) {
        att_table_separate(t, separators[i], true);
        att_table_sample(t, count_fields, &by[i]);
    }
    if (by[TAB].same)
        return separators[TAB];
    if (by[SEMICOLON].same && (!by[COMMA].same || has_decimal_commas(line)))
        return separators[SEMICOLON];
    if (by[COMMA].same)
        return separators[COMMA];
    const int more = by[SEMICOLON].first > by[COMMA].first ? SEMICOLON : COMMA;
    return separators[by[TAB].first > by[more].first ? TAB : more];
}

att_status att_table_find_separator(att_table *t)
{
    static const char *const separators[] = {"\t", ";", ","};
    att_byte_view line;
    att_status e = att_table_first_line(t, &line);
    const char *found = e ? NULL : named_separator(line, separators);
    if (found) { /* reads that line */
        att_table_separate(t, "\t", false);
        e = att_table_read(t);
    } else if (!e)
        found = choose_separator(t, line, separators);
    if (e)
        return e;
    att_table_separate(t, found, true);
    return find_spaces(t);
}

/* ---- opening */

void att_table_init(att_table *t, att_ctx *ctx)
{
    *t = (att_table){.ctx = ctx, .separator = "\t", .unquoted.ctx = ctx, .reason.text.ctx = ctx};
}

att_status att_table_begin(att_table *t, const char *path)
{
    const att_status e = att_text_lines_open(&t->lines, t->ctx, path);
    t->lines.advice = "";
    return e;
}

void att_table_close(att_table *t)
{
    if (!t->ctx)
        return;
    att_text_lines_close(&t->lines);
    att_free(t->ctx, t->field);
    att_bytes_free(&t->unquoted);
    att_names_free(&t->reason);
    *t = (att_table){0};
}
