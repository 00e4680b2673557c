/* Reads a log of actions from a file or from arrays. */
#include "recommend/interactions.h"
#include "recommend/log_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BETWEEN = 1 << 14 }; /* records, or actions, between two reports of progress */

/* ---- a file */

/* Adds a history. All ids are checked before the first is added, so that a line is added as a whole or not at all. */
static att_status add_history(att_log_builder *b, const att_table *t)
{
    const att_where where = att_table_where(t);
    att_status e = t->n < 2 ? att_fail_at(&where, ATT_ERR_FORMAT, "1 field, the user; item is missing") : ATT_OK;
    for (int64_t i = 0; !e && i < t->n; i++)
        e = att_id_check(t->field[i], &where, i ? "item" : "user");
    if (!e)
        b->log->info.fields = b->log->info.actions == 0 || b->log->info.fields == t->n ? t->n : 0;
    if (!e)
        b->log->info.repeated_users += att_ids_find(&b->log->users, t->field[0]) >= 0;
    for (int64_t i = 1; !e && i < t->n; i++)
        e = att_log_builder_add(b, &where, t->field[0], t->field[i], 0);
    return e;
}

/* Returns whether the user is a guest: the id is empty, or a text that programs write for a missing value. */
static bool is_guest(att_interactions_info *i, att_byte_view user)
{
    static const char *const missing[] = {"NULL", "null", "NA",  "N/A",  "n/a", "#N/A",
                                          "<NA>", "NaN",  "nan", "None", "\\N"};
    const char *found = NULL;
    if (att_is_blank(user))
        return true;
    for (size_t k = 0; k < sizeof missing / sizeof *missing && !found; k++)
        if (strlen(missing[k]) == user.bytes && !memcmp(missing[k], user.data, user.bytes))
            found = missing[k];
    i->missing_user = i->missing_user ? i->missing_user : found;
    return found != NULL;
}

/* Returns whether the event is one of those that are read. */
static bool is_read(const att_log_builder *b, att_byte_view event)
{
    bool is = b->n_events == 0;
    for (int64_t i = 0; !is && i < b->n_events; i++)
        is = strlen(b->events[i]) == event.bytes && !memcmp(b->events[i], event.data, event.bytes);
    return is;
}

/* Applies the filters to an action. *keeps: whether it is read. */
static att_status filter(att_log_builder *b, const att_where *where, const att_byte_view field[ATT_LOG_COLUMNS],
                         bool *keeps)
{
    enum { SHOWN = 40 };
    const att_byte_view rating = field[ATT_LOG_RATING], event = field[ATT_LOG_EVENT];
    double number;
    *keeps = is_read(b, event);
    if (!*keeps && b->log->info.other_events++ == 0)
        snprintf(b->other_event, sizeof b->other_event, "%.*s", (int)(event.bytes < SHOWN ? event.bytes : SHOWN),
                 event.data);
    if (!*keeps || !b->by_rating)
        return ATT_OK;
    const bool empty = att_is_blank(rating);
    if (!empty && !att_log_number(rating, &number))
        return att_fail_at(where, ATT_ERR_FORMAT, "rating is \"%.*s\", not a number",
                           (int)(rating.bytes < SHOWN ? rating.bytes : SHOWN), rating.data);
    *keeps = !empty && number >= b->min_rating;
    b->log->info.low_ratings += !*keeps;
    return ATT_OK;
}

static att_status add_action(att_log_builder *b, const att_log_format *f, const att_table *t)
{
    const att_where where = att_table_where(t);
    att_byte_view field[ATT_LOG_COLUMNS];
    double time = 0;
    att_status e = att_log_format_split(f, t, field);
    if (!e && is_guest(&b->log->info, field[ATT_LOG_USER])) {
        b->log->info.guests++;
        return ATT_OK;
    }
    bool keeps = true;
    e = e ? e : filter(b, &where, field, &keeps);
    if (!e && !keeps)
        return ATT_OK;
    if (!e && att_is_blank(field[ATT_LOG_ITEM]))
        e = att_fail_at(&where, ATT_ERR_FORMAT, "item is empty");
    if (!e && b->log->info.timed)
        e = att_time_read(&where, field[ATT_LOG_TIME], &b->times, &time);
    return e ? e : att_log_builder_add(b, &where, field[ATT_LOG_USER], field[ATT_LOG_ITEM], time);
}

/* Reads the current record. */
static att_status add_record(att_log_builder *b, const att_log_format *f, att_table *t)
{
    if (att_log_format_is_heading(f, t))
        return ATT_OK;
    const att_status e = f->kind == ATT_INTERACTIONS_HISTORIES ? add_history(b, t) : add_action(b, f, t);
    return e ? att_table_skip(t, e) : ATT_OK;
}

static att_status read_records(att_log_builder *b, att_log_format *f, att_table *t)
{
    att_status e = att_table_read(t);
    b->progress.all = t->lines.opened.st_size + 1;
    f->unused_times = e ? NULL : att_log_format_unused_times(f, t);
    for (int64_t i = 0; !e && t->n > 0; i++) {
        e = add_record(b, f, t);
        if (!e && i % BETWEEN == 0)
            e = att_progress_add(&b->progress, t->lines.offset + (int64_t)t->lines.at - b->progress.done);
        e = e ? e : att_table_read(t);
    }
    return e;
}

/* Sets the members of info that describe the file. The heading, or an empty one, has been added to the texts. */
static att_status state(att_interactions *log, const att_table *t, const att_log_format *f, bool heading)
{
    const char *const texts[] = {t->skipped ? att_names_at(&t->reason, 0) : "", f->unused_times ? f->unused_times : ""};
    att_status e = att_names_add(&log->info_texts, texts[0]);
    e = e ? e : att_names_add(&log->info_texts, texts[1]);
    if (e)
        return e;
    log->info.skipped = t->skipped;
    log->info.heading = heading ? att_names_at(&log->info_texts, 0) : NULL;
    log->info.bad = t->skipped ? att_names_at(&log->info_texts, 1) : NULL;
    log->info.unused_times = f->unused_times ? att_names_at(&log->info_texts, 2) : NULL;
    return ATT_OK;
}

static att_status read_file(att_log_builder *b, const char *path, const att_interactions_options *o)
{
    att_table t = {0};
    att_log_format f = {0};
    att_table_init(&t, b->log->ctx);
    att_status e = att_table_begin(&t, path);
    t.lines.advice = "; write an action a line, the format lines";
    t.max_skipped = o->skip_bad_lines;
    e = e ? e : att_log_format_find(&f, &t, o);
    if (!e && f.kind) {
        b->log->info.format =
            t.quoted && f.kind == ATT_INTERACTIONS_LINES ? "CSV without a header" : att_log_format_name(f.kind);
        b->log->info.timed = f.kind != ATT_INTERACTIONS_HISTORIES && f.column[ATT_LOG_TIME] >= 0;
        b->guessed = f.guessed_time ? f.column[ATT_LOG_TIME] + 1 : 0;
        b->log->info.guessed_times = b->guessed;
        const att_byte_view heading = f.heading;
        e = att_names_add_bytes(&b->log->info_texts, heading.data, heading.bytes);
        e = e ? e : read_records(b, &f, &t);
        e = e ? e : state(b->log, &t, &f, heading.bytes > 0);
        if (o->format || b->log->info.repeated_users + att_ids_count(&b->log->users) < 2)
            b->log->info.fields = 0; /* as given; or of one line */
    }
    att_log_format_free(&f);
    att_table_close(&t);
    return e;
}

static att_status read_options(att_ctx *ctx, const att_interactions_options *options, att_interactions_options *o)
{
    const att_status e = att_options_read(o, sizeof *o, options, "att_interactions_options");
    if (!e && (unsigned)o->format > ATT_INTERACTIONS_HISTORIES)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "format is %d, not an att_interactions_format", (int)o->format);
    if (!e && (o->n_events < 0 || (o->n_events > 0 && !o->events)))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n_events is %lld, but events is %s", (long long)o->n_events,
                        o->events ? "given" : "NULL");
    for (int64_t i = 0; !e && i < o->n_events; i++)
        if (!o->events[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "events[%lld] is NULL", (long long)i);
    if (!e && (o->min_count < 0 || (o->by_rating && isnan(o->min_rating))))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "min_count is %lld and min_rating %g, expected 0 or more, and a number",
                        (long long)o->min_count, o->min_rating);
    return e ? e : att_table_check_skip(ctx, o->skip_bad_lines);
}

att_status att_interactions_open(att_ctx *ctx, const char *path, const att_interactions_options *options,
                                 att_interactions **out)
{
    att_interactions_options o;
    att_log_builder b;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = read_options(ctx, options, &o);
    if (e)
        return e;
    e = att_log_builder_init(&b, ctx, &o);
    b.progress.call = __func__;
    e = e ? e : read_file(&b, path, &o);
    e = e ? e : att_log_builder_finish(&b, path, out);
    att_log_builder_free(&b);
    return e;
}

/* ---- memory */

static att_status add_from(att_log_builder *b, const att_interaction_source *s, const att_where *where)
{
    att_byte_view user = {NULL, 0}, item = {NULL, 0};
    double time = 0;
    const att_status e = s->get(s->user, where->number, &user, &item, &time);
    if (e)
        return e;
    if (!user.data || !item.data)
        return att_fail_at(where, ATT_ERR_ARGUMENT, "%s is NULL", user.data ? "item" : "user");
    if (s->timed && !isfinite(time))
        return att_fail_at(where, ATT_ERR_ARGUMENT, "time is %g", time);
    return att_log_builder_add(b, where, user, item, time);
}

static att_status add_actions(att_log_builder *b, const att_interaction_source *s)
{
    att_where where = {.ctx = b->log->ctx, .of = "action"};
    att_status e = ATT_OK;
    b->log->info.format = "memory";
    b->log->info.timed = s->timed;
    b->progress.all = s->n + 1;
    for (int64_t i = 0; !e && i < s->n; i++) {
        where.number = i;
        e = add_from(b, s, &where);
        if (!e && i % BETWEEN == 0)
            e = att_progress_add(&b->progress, i + 1 - b->progress.done);
    }
    return e;
}

static att_status read_source(const char *call, att_ctx *ctx, const att_interaction_source *source,
                              const att_interactions_options *options, att_interactions **out)
{
    att_interactions_options o;
    att_log_builder b;
    att_status e = read_options(ctx, options, &o);
    if (e)
        return e;
    if (o.format || o.user || o.item || o.time || o.n_events || o.by_rating)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "format, columns, events and ratings are for files, not for arrays");
    e = att_log_builder_init(&b, ctx, &o);
    b.progress.call = call;
    e = e ? e : add_actions(&b, source);
    e = e ? e : att_log_builder_finish(&b, "the array", out);
    att_log_builder_free(&b);
    return e;
}

att_status att_interactions_read(att_ctx *ctx, const att_interaction_source *source,
                                 const att_interactions_options *options, att_interactions **out)
{
    att_interaction_source s;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"source", source}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status e = att_options_read(&s, sizeof s, source, "att_interaction_source");
    if (!e && !s.get)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "source.get is NULL");
    return e ? e : read_source(__func__, ctx, &s, options, out);
}

/* Arrays of the actions */
typedef struct actions {
    const char *const *users, *const *items;
    const double *times; /* or NULL */
} actions;

static att_byte_view id_of(const char *id) { return (att_byte_view){id, id ? strlen(id) : 0}; }

static att_status get_action(void *arrays, int64_t i, att_byte_view *user, att_byte_view *item, double *time)
{
    const actions *a = arrays;
    *user = id_of(a->users[i]);
    *item = id_of(a->items[i]);
    *time = a->times ? a->times[i] : 0;
    return ATT_OK;
}

att_status att_interactions_new(att_ctx *ctx, int64_t n, const char *const *users, const char *const *items,
                                const double *times, const att_interactions_options *options, att_interactions **out)
{
    if (out)
        *out = NULL;
    const att_named given[] = {{"ctx", ctx}, {"out", out}, {"users", users}, {"items", items}};
    if (att_require(__func__, given, n > 0 ? 4 : 2))
        return ATT_ERR_ARGUMENT;
    actions arrays = {users, items, times};
    const att_interaction_source source = {
        .size = sizeof source, .n = n, .timed = times != NULL, .get = get_action, .user = &arrays};
    return read_source(__func__, ctx, &source, options, out);
}
