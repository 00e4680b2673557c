/* Makes a log from actions in any order: distributes them to users, and sorts the actions of each user by time,
 * stably. */
#include "recommend/interactions.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

static att_byte_view view_of(const char *text) { return (att_byte_view){text, strlen(text)}; }

static att_status add_known_items(att_log_builder *b, const att_interactions_options *o)
{
    att_where where = {.ctx = b->log->ctx, .of = "known item"};
    att_status e = ATT_OK;
    if (o->n_items < 0 || (o->n_items > 0 && !o->items))
        return att_fail(where.ctx, ATT_ERR_ARGUMENT, "n_items is %lld, but items is %s", (long long)o->n_items,
                        o->items ? "given" : "NULL");
    for (int64_t i = 0; !e && i < o->n_items; i++) {
        int32_t number = 0;
        where.number = i;
        if (!o->items[i])
            return att_fail(where.ctx, ATT_ERR_ARGUMENT, "items[%lld] is NULL", (long long)i);
        e = att_ids_add(&b->log->items, view_of(o->items[i]), &where, "item", &number);
        if (!e && number != i)
            e = att_fail(where.ctx, ATT_ERR_ARGUMENT, "items %d and %lld are the same: %.80s", number, (long long)i,
                         o->items[i]);
    }
    return e;
}

att_status att_log_builder_init(att_log_builder *b, att_ctx *ctx, const att_interactions_options *options)
{
    *b = (att_log_builder){.log = att_calloc(ctx, 1, sizeof *b->log),
                           .drop_duplicates = options->drop_duplicates,
                           .events = options->events,
                           .n_events = options->n_events,
                           .by_rating = options->by_rating,
                           .min_rating = options->min_rating,
                           .min_count = options->min_count,
                           .known_items = options->n_items,
                           .progress = {.ctx = ctx, .report = options->progress, .user = options->progress_user}};
    if (!b->log)
        return ATT_ERR_MEMORY;
    b->log->ctx = ctx;
    b->log->info_texts.text.ctx = ctx;
    att_ids_init(&b->log->users, ctx);
    att_ids_init(&b->log->items, ctx);
    return add_known_items(b, options);
}

static void free_blocks(att_log_builder *b, att_ctx *ctx)
{
    while (b->first) {
        att_action_block *next = b->first->next;
        att_free(ctx, b->first);
        b->first = next;
    }
}

void att_log_builder_free(att_log_builder *b)
{
    if (!b->log)
        return;
    free_blocks(b, b->log->ctx);
    att_interactions_free(b->log);
    b->log = NULL;
}

static att_status add_block(att_log_builder *b)
{
    att_action_block *block = att_alloc(b->log->ctx, 1, sizeof *block);
    if (!block)
        return ATT_ERR_MEMORY;
    block->next = NULL;
    block->n = 0;
    *(b->last ? &b->last->next : &b->first) = block;
    b->last = block;
    return ATT_OK;
}

att_status att_log_builder_add(att_log_builder *b, const att_where *where, att_byte_view user, att_byte_view item,
                               double time)
{
    att_action a = {.time = time};
    const int64_t users = att_ids_count(&b->log->users);
    att_status e = att_ids_add(&b->log->users, user, where, "user", &a.user);
    if (!e) {
        e = att_ids_add(&b->log->items, item, where, "item", &a.item);
        if (e && att_ids_count(&b->log->users) > users)
            att_ids_remove_last(&b->log->users);
    }
    if (!e && (!b->last || b->last->n == ATT_ACTIONS_OF_BLOCK))
        e = add_block(b);
    if (e)
        return e;
    b->last->actions[b->last->n++] = a;
    b->log->info.actions++;
    return ATT_OK;
}

/* ---- to users */

/* Moves the actions to the log. The actions of each user are together, in the order of the file. */
static att_status distribute(att_log_builder *b)
{
    att_interactions *log = b->log;
    const int64_t users = att_ids_count(&log->users), actions = log->info.actions;
    log->offsets = att_calloc(log->ctx, (size_t)users + 2, sizeof *log->offsets);
    log->item = att_alloc(log->ctx, (size_t)actions, sizeof *log->item);
    log->time = log->info.timed ? att_alloc(log->ctx, (size_t)actions, sizeof *log->time) : NULL;
    if (!log->offsets || !log->item || (log->info.timed && !log->time))
        return ATT_ERR_MEMORY;
    int64_t *begin = log->offsets + 1; /* begin[user] becomes the end, which is offsets[user + 1] */
    for (const att_action_block *k = b->first; k; k = k->next)
        for (int64_t i = 0; i < k->n; i++)
            begin[k->actions[i].user + 1]++;
    for (int64_t u = 0; u < users; u++)
        begin[u + 1] += begin[u];
    for (const att_action_block *k = b->first; k; k = k->next)
        for (int64_t i = 0; i < k->n; i++) {
            const att_action *a = &k->actions[i];
            const int64_t to = begin[a->user]++;
            log->item[to] = a->item;
            if (log->time)
                log->time[to] = a->time;
        }
    free_blocks(b, log->ctx);
    return ATT_OK;
}

/* Frees the times if they are probably ratings. */
static void drop_ratings(att_log_builder *b)
{
    att_interactions *log = b->log;
    att_interactions_info *i = &log->info;
    if (!log->time || !b->guessed)
        return;
    i->ratings = att_log_has_ratings(log, &i->lowest_rating, &i->highest_rating);
    if (!i->ratings)
        return;
    att_free(log->ctx, log->time);
    log->time = NULL;
    i->timed = false;
}

/* ---- by time */

typedef struct timed_item {
    double time;
    int32_t item;
} timed_item;

/* Merges from[a, b) and from[b, c), each sorted, to to[a, c); of equal times, the first part's are first. */
static void merge(const timed_item *from, timed_item *to, int64_t a, int64_t b, int64_t c)
{
    const int64_t middle = b;
    for (int64_t i = a; i < c; i++)
        to[i] = a < middle && (b == c || from[a].time <= from[b].time) ? from[a++] : from[b++];
}

/* Sorts x [n], with scratch [n]. Returns the one that has the result. */
static timed_item *sort(timed_item *x, timed_item *scratch, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t a = 0; a < n; a += 2 * width)
            merge(x, scratch, a, att_min(a + width, n), att_min(a + 2 * width, n));
        timed_item *was = x;
        x = scratch;
        scratch = was;
    }
    return x;
}

/* Sorts the actions [begin, end) of a user; scratch [2 longest]. */
static void sort_user(att_interactions *log, int64_t begin, int64_t end, timed_item *scratch)
{
    int64_t unsorted = 0;
    for (int64_t i = begin + 1; i < end; i++)
        unsorted += log->time[i] < log->time[i - 1];
    log->info.unsorted += unsorted;
    if (unsorted == 0)
        return;
    for (int64_t i = begin; i < end; i++)
        scratch[i - begin] = (timed_item){log->time[i], log->item[i]};
    const timed_item *sorted = sort(scratch, scratch + log->info.longest, end - begin);
    for (int64_t i = begin; i < end; i++) {
        log->time[i] = sorted[i - begin].time;
        log->item[i] = sorted[i - begin].item;
    }
}

static att_status sort_users(att_interactions *log)
{
    if (!log->time)
        return ATT_OK;
    timed_item *scratch = att_alloc(log->ctx, 2 * (size_t)log->info.longest, sizeof *scratch);
    if (!scratch)
        return ATT_ERR_MEMORY;
    for (int64_t u = 0; u < log->info.users; u++)
        sort_user(log, log->offsets[u], log->offsets[u + 1], scratch);
    att_free(log->ctx, scratch);
    return ATT_OK;
}

/* Sets the unit of the times, which follows from the last one. */
static void measure_times(att_interactions *log, bool dates)
{
    att_interactions_info *i = &log->info;
    double last = -INFINITY;
    for (int64_t u = 0; log->time && u < i->users; u++)
        if (log->offsets[u] < log->offsets[u + 1])
            last = fmax(last, log->time[log->offsets[u + 1] - 1]);
    i->time_per_second = !log->time ? 0 : dates ? 1 : att_time_per_second(last);
    for (int64_t k = 0; i->time_per_second > 0 && k < i->actions; k++)
        i->unusual_times += !att_time_is_usual(log->time[k], i->time_per_second);
}

/* ---- repeats and duplicates */

/* Counts repeated actions. close_gaps: removes duplicates. last [items]: the position of the last action with each
 * item; a position before the user's first action belongs to another user. */
static void count_repeats(att_interactions *log, bool close_gaps, int64_t *last)
{
    int64_t to = 0;
    for (int64_t i = 0; i < log->info.items; i++)
        last[i] = -1;
    for (int64_t u = 0, begin = 0; u < log->info.users; u++) {
        const int64_t first = to, end = log->offsets[u + 1];
        for (int64_t i = begin; i < end; i++) {
            int64_t *before = &last[log->item[i]];
            const bool repeat = *before >= first;
            const bool duplicate = repeat && log->time && log->time[*before] == log->time[i];
            log->info.duplicates += duplicate;
            if (close_gaps && duplicate)
                continue;
            log->info.repeats += repeat;
            log->info.ties += log->time && to > first && log->time[to - 1] == log->time[i];
            log->item[to] = log->item[i];
            if (log->time)
                log->time[to] = log->time[i];
            *before = to++;
        }
        begin = end;
        log->offsets[u + 1] = to;
    }
    log->info.actions = to;
}

static void find_longest(att_interactions *log)
{
    log->info.longest = 0;
    for (int64_t u = 0; u < log->info.users; u++)
        log->info.longest = att_max(log->info.longest, log->offsets[u + 1] - log->offsets[u]);
}

/* Returns the error that the log has no action. */
static att_status fail_empty(const att_log_builder *b, const char *label)
{
    const att_interactions *log = b->log;
    const att_interactions_info *i = &log->info;
    if (i->other_events && !i->low_ratings)
        return att_fail(log->ctx, ATT_ERR_FORMAT, "%s: no action is left: %lld have other events; the first is \"%s\"",
                        label, (long long)i->other_events, b->other_event);
    if (i->other_events || i->low_ratings)
        return att_fail(log->ctx, ATT_ERR_FORMAT,
                        "%s: no action is left: %lld have other events, %lld a lower rating or none", label,
                        (long long)i->other_events, (long long)i->low_ratings);
    return log->info.guests ? att_fail(log->ctx, ATT_ERR_FORMAT, "%s: none of the %lld actions has a user%s%s", label,
                                       (long long)log->info.guests, log->info.missing_user ? "; one is " : "",
                                       log->info.missing_user ? log->info.missing_user : "")
                            : att_fail(log->ctx, ATT_ERR_FORMAT, "%s has no action of a user with an item", label);
}

/* Counts the repeated actions of a log. `info` must not have counted them yet. */
static att_status describe_repeats(att_interactions *log, bool close_gaps)
{
    int64_t *last = att_alloc(log->ctx, (size_t)log->info.items, sizeof *last);
    if (!last)
        return ATT_ERR_MEMORY;
    count_repeats(log, close_gaps, last);
    find_longest(log);
    att_free(log->ctx, last);
    return ATT_OK;
}

/* Keeps the core of a finished log, and describes it again. */
static att_status keep_core(const att_log_builder *b, const char *label)
{
    att_interactions *log = b->log;
    const int64_t duplicates = log->info.duplicates;
    att_status e = att_log_keep_core(log, b->min_count, b->known_items, label);
    if (e)
        return e;
    log->info.repeats = log->info.ties = log->info.duplicates = 0;
    e = describe_repeats(log, false);
    if (b->drop_duplicates)
        log->info.duplicates = duplicates; /* which are not in the log any more */
    return e;
}

static att_status finish(att_log_builder *b, const char *label)
{
    att_interactions *log = b->log;
    if (log->info.actions == 0)
        return fail_empty(b, label);
    att_status e = distribute(b);
    if (e)
        return e;
    log->info.users = att_ids_count(&log->users);
    log->info.items = att_ids_count(&log->items);
    drop_ratings(b);
    find_longest(log);
    e = sort_users(log);
    if (e)
        return e;
    measure_times(log, b->times == ATT_TIME_DATE);
    e = describe_repeats(log, b->drop_duplicates);
    return e || b->min_count < 2 ? e : keep_core(b, label);
}

att_status att_log_builder_finish(att_log_builder *b, const char *label, att_interactions **out)
{
    att_status e = finish(b, label);
    e = e ? e : att_progress_end(&b->progress);
    if (!e) {
        *out = b->log;
        b->log = NULL;
    }
    return e;
}
