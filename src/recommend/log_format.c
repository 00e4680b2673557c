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

static att_fields fields_of(const att_log_format *f, att_byte_view line)
{
    return (att_fields){line.data, line.data + line.bytes, f->separator, f->kind == ATT_INTERACTIONS_CSV};
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
    return att_fields_damaged(&fields) ? -1 : n;
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
        return att_fields_refuse(where);
    return f->has_header ? find_columns(f, where, line, options) : set_columns(f, where, options);
}

/* ---- a line */

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
                field[c] = fields.quoted ? att_fields_unquote(&f->unquoted, x) : x;
    if (att_fields_damaged(&fields))
        return att_fields_refuse(where);
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
