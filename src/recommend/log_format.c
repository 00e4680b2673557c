#include "recommend/log_format.h"
#include "recommend/log_content.h"
#include "recommend/log_date.h"
#include "recommend/log_heading.h"
#include "recommend/log_time.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FIELDS = 4 }; /* of a line that is not a history: user, item, rating, time */

static const char *const format_names[] = {[ATT_INTERACTIONS_LINES] = "lines",
                                           [ATT_INTERACTIONS_MOVIELENS] = "MovieLens",
                                           [ATT_INTERACTIONS_INTER] = "RecBole .inter",
                                           [ATT_INTERACTIONS_CSV] = "CSV",
                                           [ATT_INTERACTIONS_HISTORIES] = "histories"};
static const char *const what[] = {[ATT_LOG_USER] = "user",
                                   [ATT_LOG_ITEM] = "item",
                                   [ATT_LOG_TIME] = "time",
                                   [ATT_LOG_EVENT] = "event",
                                   [ATT_LOG_RATING] = "rating"};

const char *att_log_format_name(att_interactions_format kind) { return format_names[kind]; }

/* ---- the format */

static bool has(att_byte_view line, const char *text) { return memmem(line.data, line.bytes, text, strlen(text)); }

/* Returns the last n fields of a record as one. Spaces separate its fields. */
static att_byte_view last_fields(const att_table *t, int64_t n)
{
    const att_byte_view first = t->field[t->n - n], last = t->field[t->n - 1];
    return (att_byte_view){first.data, (size_t)(last.data + last.bytes - first.data)};
}

/* Returns the number of fields of the time at the end of a record: two or three if spaces separate a date, the time of
 * day and perhaps the zone. */
static int64_t count_time_fields(const att_table *t)
{
    for (int64_t n = 3; n > 1 && *t->separator == ' '; n--)
        if (t->n > n + 1 && att_date_is_day(last_fields(t, n)))
            return n;
    return 1;
}

static bool has_date(const att_table *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (att_date_is_day(t->field[i]))
            return true;
    return false;
}

/* Finds the kind that the first line shows, and the separator of the table. Semicolons, commas and quotes indicate
 * CSV. */
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
    const bool columns = att_log_columns_exist(t, o), many = t->n - count_time_fields(t) + 1 > MAX_FIELDS;
    const bool history =
        many && !has(line, "\"") && !has_date(t) && !att_log_columns_are_numbers(o) && !att_log_has_columns(t);
    if (columns || (many && att_log_has_heading(t, true)))
        *kind = ATT_INTERACTIONS_CSV;
    else
        *kind = history ? ATT_INTERACTIONS_HISTORIES : ATT_INTERACTIONS_LINES;
    return ATT_OK;
}

/* Sets the separator of the table, whose kind is known. Lines may also have commas or semicolons between their fields,
 * if all lines do. */
static att_status separate(att_table *t, att_byte_view line, att_interactions_format kind, int64_t max_fields)
{
    const bool tabs = has(line, "\t"), csv = has(line, ",") || has(line, ";");
    att_status e = ATT_OK;
    if (kind == ATT_INTERACTIONS_MOVIELENS)
        att_table_separate(t, "::", false);
    else if (kind == ATT_INTERACTIONS_CSV ? tabs || csv : kind == ATT_INTERACTIONS_LINES && csv && !tabs)
        e = att_table_find_separator(t);
    else
        att_table_separate(t, tabs || kind == ATT_INTERACTIONS_INTER ? "\t" : " ", false);
    if (!e && kind == ATT_INTERACTIONS_LINES && t->quoted && !att_log_has_fields(t, 2, max_fields))
        att_table_separate(t, " ", false);
    return e;
}

/* Stores the names in the current record, which is the header or heading. */
static att_status keep_names(att_log_format *f, const att_table *t)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < t->n; i++) {
        const att_byte_view name = att_log_column_name(t->field[i], f->kind == ATT_INTERACTIONS_INTER);
        e = att_names_add_bytes(&f->names, name.data, name.bytes);
    }
    return e;
}

static att_status find_columns(att_log_format *f, const att_table *t, att_byte_view line,
                               const att_interactions_options *o)
{
    const att_status e = att_log_columns_find(t, f->kind == ATT_INTERACTIONS_INTER, line, o, f->column);
    f->wants_times = !e && f->column[ATT_LOG_TIME] < 0 && !o->time;
    return e ? e : keep_names(f, t);
}

bool att_log_format_is_heading(const att_log_format *f, const att_table *t)
{
    bool same = f->names.n > 0 && (size_t)t->n == f->names.n;
    for (int64_t i = 0; same && i < t->n; i++) {
        const att_byte_view name = att_log_column_name(t->field[i], f->kind == ATT_INTERACTIONS_INTER);
        const char *first = att_names_at(&f->names, i);
        same = strlen(first) == name.bytes && !memcmp(first, name.data, name.bytes);
    }
    return same;
}

const char *att_log_format_unused_times(const att_log_format *f, const att_table *t)
{
    for (int64_t i = 0; f->wants_times && i < t->n && i < f->fields; i++)
        if (i != f->column[ATT_LOG_USER] && i != f->column[ATT_LOG_ITEM] && att_log_seems_time(t->field[i]))
            return att_names_at(&f->names, i);
    return NULL;
}

/* Sets columns that are named by their numbers, such as "3". */
static att_status number_columns(att_log_format *f, const att_where *where, const att_interactions_options *o)
{
    const char *given[ATT_LOG_COLUMNS];
    att_log_columns_given(o, given);
    for (int c = 0; c < ATT_LOG_COLUMNS; c++) {
        const int64_t number = att_log_column_number(given[c]);
        if (!given[c] || (c == ATT_LOG_TIME && !*given[c]))
            continue;
        if (f->kind == ATT_INTERACTIONS_HISTORIES || number < 0)
            return att_fail_at(where, ATT_ERR_ARGUMENT,
                               "the format is %s, whose columns have no names; \"%.80s\" was given as one%s",
                               format_names[f->kind], given[c],
                               f->kind == ATT_INTERACTIONS_HISTORIES ? "" : ", which can be a number, from 1");
        if (number >= f->fields)
            return att_fail_at(where, ATT_ERR_ARGUMENT, "there is no column %.80s, of the %s: there are %lld", given[c],
                               what[c], (long long)f->fields);
        f->column[c] = number;
    }
    for (int c = ATT_LOG_EVENT; c <= ATT_LOG_RATING; c++)
        if (att_log_filters_by(o, c) && f->column[c] < 0)
            return att_fail_at(where, ATT_ERR_FORMAT, "the format is %s, without a column of %ss%s",
                               format_names[f->kind], what[c],
                               f->kind == ATT_INTERACTIONS_HISTORIES ? "" : " that has a name: state its number");
    return f->kind == ATT_INTERACTIONS_HISTORIES ? ATT_OK : att_log_columns_check(where, f->column);
}

/* Guesses which field of "user item rating time" is the time: the last one, unless only the one before it is likely a
 * time. */
static int64_t guess_time(const att_log_format *f, const att_table *t)
{
    const bool before = f->fields == MAX_FIELDS && f->time_fields == 1 && att_time_is_likely(t->field[f->fields - 2]) &&
                        !att_time_is_likely(t->field[f->fields - 1]);
    return f->fields < 3 ? -1 : f->fields - (before ? 2 : 1);
}

/* Returns the field of "user item rating" or "user item rating time" that is the rating; -1: there is none. */
static int64_t find_rating(const att_log_format *f, const att_table *t, const att_interactions_options *o)
{
    const bool three = f->fields == MAX_FIELDS - 1, four = f->fields == MAX_FIELDS && f->column[ATT_LOG_TIME] >= 0;
    if (!o->by_rating || !(four || (three && !att_time_is_likely(t->field[MAX_FIELDS - 2]))))
        return -1;
    return four && f->column[ATT_LOG_TIME] == MAX_FIELDS - 2 ? MAX_FIELDS - 1 : MAX_FIELDS - 2;
}

/* Refuses dates where ids are expected. */
static att_status check_ids(const att_table *t, const att_where *where)
{
    for (int c = ATT_LOG_USER; c <= ATT_LOG_ITEM; c++)
        if (att_date_is_day(t->field[c]))
            return att_fail_at(where, ATT_ERR_FORMAT,
                               "%s is \"%.*s\", a date; columns in another order are named by their numbers", what[c],
                               (int)(t->field[c].bytes < 40 ? t->field[c].bytes : 40), t->field[c].data);
    return ATT_OK;
}

static att_status set_columns(att_log_format *f, const att_table *t, const att_where *where,
                              const att_interactions_options *o)
{
    const bool named = o->user && o->item;
    f->time_fields = f->kind == ATT_INTERACTIONS_LINES ? count_time_fields(t) : 1;
    f->fields -= f->time_fields - 1;
    if (f->kind != ATT_INTERACTIONS_HISTORIES && (f->fields < 2 || (f->fields > MAX_FIELDS && !named)))
        return att_fail_at(
            where, ATT_ERR_FORMAT,
            "%lld field%s in the format %s, expected \"user item\", \"user item time\" or \"user item "
            "rating time\", separated by %s; columns in another order are named by their numbers, and lines of a user "
            "and items are the format histories",
            (long long)f->fields, f->fields == 1 ? "" : "s", format_names[f->kind],
            *t->separator == ':' ? "\"::\"" : "tabs, commas, semicolons or spaces");
    f->column[ATT_LOG_USER] = 0;
    f->column[ATT_LOG_ITEM] = 1;
    f->column[ATT_LOG_TIME] = f->kind == ATT_INTERACTIONS_HISTORIES || o->time || named ? -1 : guess_time(f, t);
    f->column[ATT_LOG_EVENT] = -1;
    f->column[ATT_LOG_RATING] = named || f->kind == ATT_INTERACTIONS_HISTORIES ? -1 : find_rating(f, t, o);
    if (f->column[ATT_LOG_TIME] == f->column[ATT_LOG_RATING])
        f->column[ATT_LOG_TIME] = -1;
    f->guessed_time = f->column[ATT_LOG_TIME] >= 0;
    const att_status e = f->kind == ATT_INTERACTIONS_HISTORIES || named ? ATT_OK : check_ids(t, where);
    return e ? e : number_columns(f, where, o);
}

/* Reads a heading of a format that has no header. */
static att_status read_heading(att_log_format *f, att_table *t, att_byte_view line, const att_interactions_options *o)
{
    static const att_interactions_options none = {.size = sizeof none};
    const bool numbers = att_log_columns_are_numbers(o),
               names = att_log_has_names(t) || att_log_columns_exist(t, &none),
               heading = f->fields > 2 && att_log_has_heading(t, numbers);
    att_status e = att_table_peek(t);
    if (e || !(names || heading))
        return e;
    f->heading = line;
    e = keep_names(f, t);
    return e ? e : att_table_read(t);
}

/* Returns whether a table with the separators of CSV has no header. */
static bool has_no_header(att_table *t, const att_interactions_options *o)
{
    const bool named = o->user || o->item || (o->time && *o->time);
    return !att_log_columns_exist(t, o) && (named ? att_log_columns_are_numbers(o) : att_log_is_lines(t));
}

att_status att_log_format_find(att_log_format *f, att_table *t, const att_interactions_options *options)
{
    att_byte_view line;
    *f = (att_log_format){.kind = options->format, .time_fields = 1, .names.text.ctx = t->ctx};
    att_status e = att_table_first_line(t, &line);
    if (!e)
        e = att_log_check_content(t->ctx, t->lines.path, line);
    if (e || !line.bytes)
        return e;
    if (f->kind == ATT_INTERACTIONS_ANY)
        e = find_kind(t, line, options, &f->kind);
    e = e ? e : separate(t, line, f->kind, att_log_columns_are_numbers(options) ? INT64_MAX : MAX_FIELDS);
    e = e ? e : att_table_peek(t);
    if (!e && f->kind == ATT_INTERACTIONS_CSV && !options->format && has_no_header(t, options))
        f->kind = ATT_INTERACTIONS_LINES;
    e = e ? e : att_table_peek(t);
    e = e ? e : att_table_first_line(t, &line); /* again, because the block may have moved */
    if (e)
        return e;
    const att_where where = att_table_where(t);
    f->has_header = f->kind == ATT_INTERACTIONS_INTER || f->kind == ATT_INTERACTIONS_CSV;
    f->fields = t->n;
    e = f->has_header ? find_columns(f, t, line, options) : set_columns(f, t, &where, options);
    if (e || f->kind == ATT_INTERACTIONS_HISTORIES)
        return e;
    return f->has_header ? att_table_read(t) : read_heading(f, t, line, options);
}

void att_log_format_free(att_log_format *f) { att_names_free(&f->names); }

/* ---- a record */

/* Returns the first column that a record with n fields lacks, for messages. */
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
    const int64_t n = t->n - f->time_fields + 1;
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        field[c] = f->column[c] >= 0 && f->column[c] < n ? t->field[f->column[c]] : (att_byte_view){"", 0};
    if (f->time_fields > 1 && n > 1 && f->column[ATT_LOG_TIME] == n - 1)
        field[ATT_LOG_TIME] = last_fields(t, f->time_fields);
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
