#include "recommend/log_format.h"
#include "recommend/log_heading.h"

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

/* ---- the format */

static bool has(att_byte_view line, const char *text) { return memmem(line.data, line.bytes, text, strlen(text)); }

static bool is_name(att_byte_view field, const char *name)
{
    return name && strlen(name) == field.bytes && !memcmp(field.data, name, field.bytes);
}

/* The index of the header's field with a name; -1: none, -2: two. The types of .inter, ":token", are no part of names.
 */
static int64_t find_name(att_interactions_format kind, const att_table *t, const char *name)
{
    int64_t found = -1;
    for (int64_t i = 0; i < t->n; i++) {
        att_byte_view field = t->field[i];
        const char *type = kind == ATT_INTERACTIONS_INTER ? memchr(field.data, ':', field.bytes) : NULL;
        field.bytes = type ? (size_t)(type - field.data) : field.bytes;
        if (is_name(field, name))
            found = found == -1 ? i : -2;
    }
    return found;
}

/* The index of the column with the name *name, or if that is NULL with a usual one, which *name becomes. */
static int64_t find_column(att_interactions_format kind, const att_table *t, int c, const char **name)
{
    if (*name)
        return find_name(kind, t, *name);
    for (int i = 0; i < USUAL && usual[c][i]; i++) {
        const int64_t found = find_name(kind, t, usual[c][i]);
        *name = found != -1 ? usual[c][i] : NULL;
        if (*name)
            return found;
    }
    *name = usual[c][0];
    return -1;
}

/* Has the first record, split, the columns of a header? */
static bool has_columns(const att_table *t, const att_interactions_options *o)
{
    const char *user = o->user, *item = o->item;
    return find_column(ATT_INTERACTIONS_CSV, t, ATT_LOG_USER, &user) != -1 &&
           find_column(ATT_INTERACTIONS_CSV, t, ATT_LOG_ITEM, &item) != -1;
}

/* The kind that the first line shows, and the separator of the table. Semicolons, commas and quotes are of CSV. */
static att_status find_kind(att_table *t, att_byte_view line, const att_interactions_options *o,
                            att_interactions_format *kind)
{
    const bool tabs = has(line, "\t");
    *kind = tabs && has(line, ":token")                   ? ATT_INTERACTIONS_INTER
            : has(line, "::") && !has(line, " ") && !tabs ? ATT_INTERACTIONS_MOVIELENS
            : !tabs && (has(line, ",") || has(line, ";")) ? ATT_INTERACTIONS_CSV
                                                          : ATT_INTERACTIONS_ANY;
    if (*kind)
        return ATT_OK;
    att_table_separate(t, tabs ? "\t" : " ", tabs);
    const att_status e = att_table_peek(t);
    if (e)
        return e;
    const bool columns = has_columns(t, o), many = t->n > MAX_FIELDS;
    if (columns || (many && att_log_has_heading(t, true)))
        *kind = ATT_INTERACTIONS_CSV;
    else
        *kind = many && !has(line, "\"") ? ATT_INTERACTIONS_HISTORIES : ATT_INTERACTIONS_LINES;
    return ATT_OK;
}

/* Sets the separator of the table, whose kind is known. Lines may have commas or semicolons between their fields, too,
 * if all of them have. */
static att_status separate(att_table *t, att_byte_view line, att_interactions_format kind)
{
    const bool tabs = has(line, "\t"), csv = has(line, ",") || has(line, ";");
    att_status e = ATT_OK;
    if (kind == ATT_INTERACTIONS_MOVIELENS)
        att_table_separate(t, "::", false);
    else if (kind == ATT_INTERACTIONS_CSV ? tabs || csv : kind == ATT_INTERACTIONS_LINES && csv && !tabs)
        e = att_table_find_separator(t);
    else
        att_table_separate(t, tabs || kind == ATT_INTERACTIONS_INTER ? "\t" : " ", false);
    if (!e && kind == ATT_INTERACTIONS_LINES && t->quoted && !att_log_has_fields(t, 2, MAX_FIELDS))
        att_table_separate(t, " ", false);
    return e;
}

static att_status find_columns(att_log_format *f, const att_table *t, const att_where *where, att_byte_view line,
                               const att_interactions_options *o)
{
    const char *const given[] = {[ATT_LOG_USER] = o->user, [ATT_LOG_ITEM] = o->item, [ATT_LOG_TIME] = o->time};
    for (int c = 0; c < ATT_LOG_COLUMNS; c++) {
        const bool none = c == ATT_LOG_TIME && o->time && !*o->time;
        const char *name = given[c];
        f->column[c] = none ? -1 : find_column(f->kind, t, c, &name);
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

static att_status set_columns(att_log_format *f, const att_table *t, const att_where *where,
                              const att_interactions_options *o)
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
                           *t->separator == ':' ? "\"::\"" : "tabs, commas, semicolons or spaces");
    f->column[ATT_LOG_USER] = 0;
    f->column[ATT_LOG_ITEM] = 1;
    f->column[ATT_LOG_TIME] = f->fields > 2 && !o->time ? f->fields - 1 : -1;
    return ATT_OK;
}

/* Reads a heading of a format that has no header. */
static att_status read_heading(att_log_format *f, att_table *t, att_byte_view line)
{
    const bool names = att_log_has_names(t), heading = f->fields > 2 && att_log_has_heading(t, false);
    att_status e = att_table_peek(t);
    if (e || !(names || heading))
        return e;
    f->heading = line;
    return att_table_read(t);
}

att_status att_log_format_find(att_log_format *f, att_table *t, const att_interactions_options *options)
{
    att_byte_view line;
    *f = (att_log_format){.kind = options->format};
    att_status e = att_table_first_line(t, &line);
    if (e || !line.bytes)
        return e;
    if (f->kind == ATT_INTERACTIONS_ANY)
        e = find_kind(t, line, options, &f->kind);
    e = e ? e : separate(t, line, f->kind);
    e = e ? e : att_table_peek(t);
    const bool named = options->user || options->item || (options->time && *options->time);
    if (!e && f->kind == ATT_INTERACTIONS_CSV && !options->format && !named && !has_columns(t, options)) {
        f->kind = att_log_is_lines(t) ? ATT_INTERACTIONS_LINES : f->kind;
        e = att_table_peek(t);
    }
    e = e ? e : att_table_first_line(t, &line); /* again, as the block may have moved */
    if (e)
        return e;
    const att_where where = att_table_where(t);
    f->has_header = f->kind == ATT_INTERACTIONS_INTER || f->kind == ATT_INTERACTIONS_CSV;
    f->fields = t->n;
    e = f->has_header ? find_columns(f, t, &where, line, options) : set_columns(f, t, &where, options);
    if (e || f->kind == ATT_INTERACTIONS_HISTORIES)
        return e;
    return f->has_header ? att_table_read(t) : read_heading(f, t, line);
}

/* ---- a record */

/* The first column that a record with n fields has not, for messages. */
static const char *missing(const att_log_format *f, int64_t n)
{
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        if (f->column[c] >= n)
            return what[c];
    return NULL;
}

att_status att_log_format_split(const att_log_format *f, const att_table *t, att_byte_view field[ATT_LOG_COLUMNS])
{
    const att_where where = att_table_where(t);
    const int64_t n = t->n;
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        field[c] = f->column[c] >= 0 && f->column[c] < n ? t->field[f->column[c]] : (att_byte_view){"", 0};
    if (n == f->fields)
        return ATT_OK;
    const char *name = missing(f, n), *plural = n == 1 ? "" : "s";
    if (name)
        return att_fail_at(&where, ATT_ERR_FORMAT, "%lld field%s, but the first line has %lld: %s is missing",
                           (long long)n, plural, (long long)f->fields, name);
    return att_fail_at(&where, ATT_ERR_FORMAT, "%lld field%s, but the first line has %lld%s", (long long)n, plural,
                       (long long)f->fields,
                       f->kind == ATT_INTERACTIONS_LINES ? "; if each line is a user and items, the format is histories"
                                                         : "");
}
