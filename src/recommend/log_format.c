#include "recommend/log_format.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FIELDS = 4 }; /* of a line that is not a history: user, item, rating, time */

static const char *const format_names[] = {[ATT_INTERACTIONS_LINES] = "lines",
                                           [ATT_INTERACTIONS_MOVIELENS] = "MovieLens",
                                           [ATT_INTERACTIONS_INTER] = "RecBole .inter",
                                           [ATT_INTERACTIONS_CSV] = "CSV",
                                           [ATT_INTERACTIONS_HISTORIES] = "histories"};
static const char *const what[] = {[ATT_LOG_USER] = "user", [ATT_LOG_ITEM] = "item", [ATT_LOG_TIME] = "time"};
/* Names of columns, in the order in which they are searched */
static const char *const usual[ATT_LOG_COLUMNS][5] = {
    [ATT_LOG_USER] = {"user_id", "user", "userId", "reviewerID", NULL},
    [ATT_LOG_ITEM] = {"item_id", "item", "itemId", "movieId", "asin"},
    [ATT_LOG_TIME] = {"timestamp", "time", "unixReviewTime", NULL, NULL},
};
enum { USUAL = sizeof usual[0] / sizeof usual[0][0] };

const char *att_log_format_name(att_interactions_format kind) { return format_names[kind]; }

void att_log_format_free(att_log_format *f) { att_bytes_free(&f->unquoted); }

/* ---- fields */

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* Where the field at `at` in quotes ends: after its last quote. NULL: it does not. */
static const char *end_of_quotes(const char *at, const char *end)
{
    for (at++; at < end; at++)
        if (*at == '"' && (at + 1 == end || at[1] != '"'))
            return at + 1;
        else if (*at == '"')
            at++;
    return NULL;
}

static const char *find_separator(const att_fields *f, const char *from)
{
    const size_t n = strlen(f->separator);
    for (const char *p = from; (p = memchr(p, f->separator[0], (size_t)(f->end - p))); p++)
        if ((size_t)(f->end - p) >= n && !memcmp(p, f->separator, n))
            return p;
    return f->end;
}

static bool next_word(att_fields *f, att_byte_view *field)
{
    while (f->at < f->end && is_space(*f->at))
        f->at++;
    const char *start = f->at;
    while (f->at < f->end && !is_space(*f->at))
        f->at++;
    *field = (att_byte_view){start, (size_t)(f->at - start)};
    return f->at > start;
}

bool att_fields_next(att_fields *f, att_byte_view *field)
{
    if (!f->at)
        return false;
    if (*f->separator == ' ')
        return next_word(f, field);
    const bool quoted = f->quoted && f->at < f->end && *f->at == '"';
    const char *start = f->at, *after = quoted ? end_of_quotes(start, f->end) : find_separator(f, start);
    if (!after || find_separator(f, after) != after)
        return false;
    *field = quoted ? (att_byte_view){start + 1, (size_t)(after - start) - 2}
                    : (att_byte_view){start, (size_t)(after - start)};
    f->at = after < f->end ? after + strlen(f->separator) : NULL;
    return true;
}

/* Are there characters left, which are no field? */
static bool is_damaged(const att_fields *f) { return f->at && *f->separator != ' '; }

static att_fields fields_of(const att_log_format *f, att_byte_view line)
{
    return (att_fields){line.data, line.data + line.bytes, f->separator, f->kind == ATT_INTERACTIONS_CSV};
}

static att_status damaged(const att_where *where)
{
    return att_fail_at(where, ATT_ERR_FORMAT,
                       "a field begins with a quote but does not end with one, before the next field or the end of the "
                       "line (RFC 4180; line ends within quotes are not supported)");
}

/* ---- the format */

static bool has(att_byte_view line, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= line.bytes; i++)
        if (!memcmp(line.data + i, text, n))
            return true;
    return false;
}

static bool is_name(att_byte_view field, const char *name)
{
    return name && strlen(name) == field.bytes && !memcmp(field.data, name, field.bytes);
}

/* The index of the header's field with a name; -1: none, -2: two. The types of .inter, ":token", are no part of names.
 */
static int64_t find_name(const att_log_format *f, att_byte_view line, const char *name)
{
    att_fields fields = fields_of(f, line);
    att_byte_view field;
    int64_t found = -1;
    for (int64_t i = 0; att_fields_next(&fields, &field); i++) {
        const char *type = f->kind == ATT_INTERACTIONS_INTER ? memchr(field.data, ':', field.bytes) : NULL;
        field.bytes = type ? (size_t)(type - field.data) : field.bytes;
        if (is_name(field, name))
            found = found == -1 ? i : -2;
    }
    return found;
}

/* The index of the column with the name *name, or if that is NULL with a usual one, which *name becomes. */
static int64_t find_column(const att_log_format *f, att_byte_view line, int c, const char **name)
{
    if (*name)
        return find_name(f, line, *name);
    for (int i = 0; i < USUAL && usual[c][i]; i++) {
        const int64_t found = find_name(f, line, usual[c][i]);
        *name = found != -1 ? usual[c][i] : NULL;
        if (*name)
            return found;
    }
    *name = usual[c][0];
    return -1;
}

static const char *separator_of(att_byte_view line)
{
    return has(line, ",") && !has(line, "\t") ? "," : has(line, "\t") ? "\t" : " ";
}

static int64_t count_fields(const att_log_format *f, att_byte_view line)
{
    att_fields fields = fields_of(f, line);
    att_byte_view field;
    int64_t n = 0;
    while (att_fields_next(&fields, &field))
        n++;
    return is_damaged(&fields) ? -1 : n;
}

/* The kind that the first line shows. */
static att_interactions_format kind_of(att_byte_view line, const att_interactions_options *o)
{
    att_log_format names = {.kind = ATT_INTERACTIONS_CSV, .separator = separator_of(line)};
    if (has(line, "\t") && has(line, ":token"))
        return ATT_INTERACTIONS_INTER;
    if (has(line, "::") && !has(line, " ") && !has(line, "\t"))
        return ATT_INTERACTIONS_MOVIELENS;
    const char *user = o->user, *item = o->item;
    if (*names.separator == ',' ||
        (find_column(&names, line, ATT_LOG_USER, &user) != -1 && find_column(&names, line, ATT_LOG_ITEM, &item) != -1))
        return ATT_INTERACTIONS_CSV;
    names.kind = ATT_INTERACTIONS_LINES;
    return count_fields(&names, line) > MAX_FIELDS ? ATT_INTERACTIONS_HISTORIES : ATT_INTERACTIONS_LINES;
}

static att_status find_columns(att_log_format *f, const att_where *where, att_byte_view line,
                               const att_interactions_options *o)
{
    const char *const given[] = {[ATT_LOG_USER] = o->user, [ATT_LOG_ITEM] = o->item, [ATT_LOG_TIME] = o->time};
    for (int c = 0; c < ATT_LOG_COLUMNS; c++) {
        const bool none = c == ATT_LOG_TIME && o->time && !*o->time;
        const char *name = given[c];
        f->column[c] = none ? -1 : find_column(f, line, c, &name);
        if (f->column[c] == -2)
            return att_fail_at(where, ATT_ERR_FORMAT, "the header has the column \"%.80s\" twice", name);
        if (f->column[c] == -1 && !none && (c != ATT_LOG_TIME || given[c]))
            return att_fail_at(
                where, ATT_ERR_FORMAT,
                "the header has no column \"%.80s\", of the %s; it is: %.*s%s. Name the column if it has "
                "another name",
                name, what[c], (int)(line.bytes < 120 ? line.bytes : 120), line.data, line.bytes < 120 ? "" : "...");
    }
    return ATT_OK;
}

static att_status set_columns(att_log_format *f, const att_where *where, const att_interactions_options *o)
{
    if (o->user || o->item || (o->time && *o->time))
        return att_fail_at(where, ATT_ERR_ARGUMENT,
                           "the format is %s, whose columns have no names; \"%.80s\" was given as one",
                           format_names[f->kind],
                           o->user   ? o->user
                           : o->item ? o->item
                                     : o->time);
    if (f->kind == ATT_INTERACTIONS_HISTORIES)
        return ATT_OK;
    if (f->fields < 2 || f->fields > MAX_FIELDS)
        return att_fail_at(where, ATT_ERR_FORMAT,
                           "%lld field%s in the format %s, expected \"user item\", \"user item time\" or \"user item "
                           "rating time\", separated by %s",
                           (long long)f->fields, f->fields == 1 ? "" : "s", format_names[f->kind],
                           *f->separator == ':' ? "\"::\"" : "tabs or spaces");
    f->column[ATT_LOG_USER] = 0;
    f->column[ATT_LOG_ITEM] = 1;
    f->column[ATT_LOG_TIME] = f->fields > 2 && !o->time ? f->fields - 1 : -1;
    return ATT_OK;
}

att_status att_log_format_find(att_log_format *f, att_ctx *ctx, const att_where *where, att_byte_view line,
                               const att_interactions_options *options)
{
    *f = (att_log_format){.kind = options->format, .separator = separator_of(line), .unquoted.ctx = ctx};
    if (f->kind == ATT_INTERACTIONS_ANY)
        f->kind = kind_of(line, options);
    if (f->kind == ATT_INTERACTIONS_MOVIELENS)
        f->separator = "::";
    else if (f->kind == ATT_INTERACTIONS_INTER)
        f->separator = "\t";
    else if (f->kind != ATT_INTERACTIONS_CSV)
        f->separator = has(line, "\t") ? "\t" : " ";
    f->has_header = f->kind == ATT_INTERACTIONS_INTER || f->kind == ATT_INTERACTIONS_CSV;
    f->fields = count_fields(f, line);
    if (f->fields < 0)
        return damaged(where);
    return f->has_header ? find_columns(f, where, line, options) : set_columns(f, where, options);
}

/* ---- a line */

/* Replaces each "" by ". Room has been reserved. */
static att_byte_view unquote(att_bytes *to, att_byte_view field)
{
    const size_t start = to->count;
    if (!memchr(field.data, '"', field.bytes))
        return field;
    for (size_t i = 0; i < field.bytes; i++) {
        att_bytes_add(to, field.data + i, 1);
        i += field.data[i] == '"';
    }
    return (att_byte_view){to->data + start, to->count - start};
}

/* The first column that a line with n fields has not, for messages. */
static const char *missing(const att_log_format *f, int64_t n)
{
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        if (f->column[c] >= n)
            return what[c];
    return NULL;
}

att_status att_log_format_split(att_log_format *f, const att_where *where, att_byte_view line,
                                att_byte_view field[ATT_LOG_COLUMNS])
{
    att_fields fields = fields_of(f, line);
    att_byte_view x;
    int64_t n = 0;
    f->unquoted.count = 0;
    if (fields.quoted && !att_bytes_reserve(&f->unquoted, line.bytes))
        return ATT_ERR_MEMORY;
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        field[c] = (att_byte_view){"", 0};
    for (; att_fields_next(&fields, &x); n++)
        for (int c = 0; c < ATT_LOG_COLUMNS; c++)
            if (f->column[c] == n)
                field[c] = fields.quoted ? unquote(&f->unquoted, x) : x;
    if (is_damaged(&fields))
        return damaged(where);
    if (n == f->fields)
        return ATT_OK;
    const char *name = missing(f, n), *plural = n == 1 ? "" : "s";
    if (name)
        return att_fail_at(where, ATT_ERR_FORMAT, "%lld field%s, but the first line has %lld: %s is missing",
                           (long long)n, plural, (long long)f->fields, name);
    return att_fail_at(where, ATT_ERR_FORMAT, "%lld field%s, but the first line has %lld%s", (long long)n, plural,
                       (long long)f->fields,
                       f->kind == ATT_INTERACTIONS_LINES ? "; if each line is a user and items, the format is histories"
                                                         : "");
}

att_fields att_log_format_history(const att_log_format *f, att_byte_view line) { return fields_of(f, line); }
