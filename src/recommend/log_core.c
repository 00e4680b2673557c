/* Leaves out rare users and items. */
#include "recommend/interactions.h"

#include <string.h>

typedef struct core {
    att_interactions *log;
    int64_t min, known_items;
    int64_t *of_user, *of_item; /* actions that are left; -1: it is left out */
    int32_t *number;            /* [items]: the new numbers of items; -1: none */
} core;

/* Leaves out what has too few actions. Returns whether there was any. */
static bool leave_out(int64_t *left, int64_t n, int64_t min)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        if (left[i] >= 0 && left[i] < min) {
            left[i] = -1;
            any = true;
        }
    return any;
}

/* Counts the actions of users and items that are left. */
static void count(core *c)
{
    const att_interactions *log = c->log;
    for (int64_t u = 0; u < log->info.users; u++)
        c->of_user[u] = c->of_user[u] < 0 ? -1 : 0;
    for (int64_t i = 0; i < log->info.items; i++)
        c->of_item[i] = c->of_item[i] < 0 ? -1 : 0;
    for (int64_t u = 0; u < log->info.users; u++)
        for (int64_t i = log->offsets[u]; c->of_user[u] >= 0 && i < log->offsets[u + 1]; i++)
            if (c->of_item[log->item[i]] >= 0) {
                c->of_user[u]++;
                c->of_item[log->item[i]]++;
            }
}

static void find(core *c)
{
    bool changes = true;
    while (changes) {
        count(c);
        const bool users = leave_out(c->of_user, c->log->info.users, c->min);
        changes = leave_out(c->of_item, c->log->info.items, c->min) || users;
    }
}

/* Copies the ids of what is left, and items with a fixed number. */
static att_status copy_ids(att_ids *to, const att_ids *from, const int64_t *left, int64_t known, int32_t *number)
{
    const att_where where = {.ctx = from->ctx, .of = "id"};
    att_status e = ATT_OK;
    att_ids_init(to, from->ctx);
    for (int64_t i = 0; !e && i < att_ids_count(from); i++) {
        const char *id = att_ids_at(from, i);
        number[i] = -1;
        if (i < known || left[i] >= 0)
            e = att_ids_add(to, (att_byte_view){id, strlen(id)}, &where, "id", &number[i]);
    }
    return e;
}

/* Moves the actions that are left together. */
static void close_gaps(core *c)
{
    att_interactions *log = c->log;
    int64_t to = 0, users = 0;
    for (int64_t u = 0, begin = 0; u < log->info.users; u++) {
        const int64_t end = log->offsets[u + 1];
        for (int64_t i = begin; c->of_user[u] >= 0 && i < end; i++) {
            if (c->of_item[log->item[i]] < 0)
                continue;
            log->item[to] = c->number[log->item[i]];
            if (log->time)
                log->time[to] = log->time[i];
            to++;
        }
        begin = end;
        if (c->of_user[u] >= 0)
            log->offsets[++users] = to;
    }
    log->info.rare_actions = log->info.actions - to;
    log->info.actions = to;
}

static int64_t count_out(const int64_t *left, int64_t n)
{
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++)
        out += left[i] < 0;
    return out;
}

static att_status apply(core *c, const char *label)
{
    att_interactions *log = c->log;
    att_ids users, items;
    const int64_t n_users = log->info.users, n_items = log->info.items;
    find(c);
    log->info.rare_users = count_out(c->of_user, n_users);
    log->info.rare_items = count_out(c->of_item, n_items);
    if (log->info.rare_users == n_users)
        return att_fail(log->ctx, ATT_ERR_FORMAT,
                        "%s: no users and items are left that have %lld actions or more with one another", label,
                        (long long)c->min);
    int32_t *number = att_alloc(log->ctx, (size_t)n_users, sizeof *number); /* of users, not used */
    att_status e = number ? copy_ids(&users, &log->users, c->of_user, 0, number) : ATT_ERR_MEMORY;
    att_free(log->ctx, number);
    if (!number)
        return e;
    const att_status of_items = copy_ids(&items, &log->items, c->of_item, c->known_items, c->number);
    e = e ? e : of_items;
    if (!e) {
        close_gaps(c);
        const att_ids old[] = {log->users, log->items};
        log->users = users;
        log->items = items;
        users = old[0];
        items = old[1];
        log->info.users = att_ids_count(&log->users);
        log->info.items = att_ids_count(&log->items);
    }
    att_ids_free(&users);
    att_ids_free(&items);
    return e;
}

att_status att_log_keep_core(att_interactions *log, int64_t min, int64_t known_items, const char *label)
{
    core c = {.log = log, .min = min, .known_items = known_items};
    c.of_user = att_calloc(log->ctx, (size_t)log->info.users, sizeof *c.of_user);
    c.of_item = att_calloc(log->ctx, (size_t)log->info.items, sizeof *c.of_item);
    c.number = att_alloc(log->ctx, (size_t)log->info.items, sizeof *c.number);
    const att_status e = c.of_user && c.of_item && c.number ? apply(&c, label) : ATT_ERR_MEMORY;
    att_free(log->ctx, c.of_user);
    att_free(log->ctx, c.of_item);
    att_free(log->ctx, c.number);
    return e;
}
