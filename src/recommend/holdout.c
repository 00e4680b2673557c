/* Splits a log into actions for training and actions to be predicted. */
#include "recommend/holdout.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ACTIONS = 3 }; /* one for training, one for validation, one for the test */

/* ---- points in time */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static att_status check_share(att_ctx *ctx, const char *name, double share)
{
    if (share > 0 && share < 1)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is %g, not in (0, 1)", name, share);
}

/* Finds the points in time after which these shares of the actions happen. */
static att_status points_of_shares(const att_interactions *log, att_holdout_options *o)
{
    const int64_t n = log->info.actions;
    o->valid_share = o->valid_share == 0 ? 0.1 : o->valid_share;
    o->test_share = o->test_share == 0 ? 0.1 : o->test_share;
    att_status e = check_share(log->ctx, "valid_share", o->valid_share);
    e = e ? e : check_share(log->ctx, "test_share", o->test_share);
    e = e ? e : check_share(log->ctx, "valid_share + test_share", o->valid_share + o->test_share);
    if (e)
        return e;
    double *sorted = att_alloc(log->ctx, (size_t)n, sizeof *sorted);
    if (!sorted)
        return ATT_ERR_MEMORY;
    memcpy(sorted, log->time, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    const int64_t test = (int64_t)floor((1 - o->test_share) * (double)n);
    const int64_t valid = (int64_t)floor((1 - o->test_share - o->valid_share) * (double)n);
    o->test_from = sorted[att_min(test, n - 1)];
    o->valid_from = sorted[att_min(valid, n - 1)];
    att_free(log->ctx, sorted);
    return ATT_OK;
}

static att_status find_points(const att_interactions *log, att_holdout_options *o)
{
    att_status e = ATT_OK;
    if (!log->time)
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "a split by time of a log without times (of the format %s)",
                        log->info.format);
    if (o->valid_from == 0 && o->test_from == 0)
        e = points_of_shares(log, o);
    else if (o->valid_share != 0 || o->test_share != 0)
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "shares and points in time are given; one of them is enough");
    if (!e && !(o->valid_from < o->test_from))
        return att_fail(log->ctx, ATT_ERR_ARGUMENT,
                        "validation is from %.17g on and the test from %.17g on, which is not later", o->valid_from,
                        o->test_from);
    return e;
}

/* ---- users */

static void add_case(att_holdout *h, att_holdout_part part, int64_t user, int64_t position)
{
    h->cases[part][h->info.cases[part]++] = (att_case){position, (int32_t)user};
}

static void leave_one_out(att_holdout *h, int64_t user, int64_t begin, int64_t end)
{
    (void)begin;
    h->train_end[user] = end - 2;
    add_case(h, ATT_HOLDOUT_PART_VALID, user, end - 2);
    add_case(h, ATT_HOLDOUT_PART_TEST, user, end - 1);
}

/* Returns the first of the actions [begin, end) that is not before a point in time. */
static int64_t first_from(const att_interactions *log, int64_t begin, int64_t end, double point)
{
    while (begin < end && log->time[begin] < point)
        begin++;
    return begin;
}

/* Adds the first action in [begin, end) as a case of a part, whose actions are [from, to), if the user has an action
 * before it. */
static void add_first(att_holdout *h, att_holdout_part part, int64_t user, int64_t from, int64_t to)
{
    if (from == to)
        return;
    if (from == h->log->offsets[user])
        h->info.without_history[part]++;
    else
        add_case(h, part, user, from);
}

static void split_by_time(att_holdout *h, int64_t user, int64_t begin, int64_t end)
{
    const int64_t valid = first_from(h->log, begin, end, h->info.valid_from);
    const int64_t test = first_from(h->log, valid, end, h->info.test_from);
    h->train_end[user] = valid;
    add_first(h, ATT_HOLDOUT_PART_VALID, user, valid, test);
    add_first(h, ATT_HOLDOUT_PART_TEST, user, test, end);
}

/* The users with enough actions, and how many of them are chosen. */
typedef struct chosen {
    int64_t min_actions, enough, wanted;
    int64_t before; /* users with enough actions before the next one */
} chosen;

static int64_t actions_of(const att_interactions *log, int64_t user)
{
    return log->offsets[user + 1] - log->offsets[user];
}

static chosen begin_choice(const att_interactions *log, const att_holdout_options *o)
{
    chosen c = {.min_actions = o->min_actions ? o->min_actions : MIN_ACTIONS};
    for (int64_t u = 0; u < log->info.users; u++)
        c.enough += actions_of(log, u) >= c.min_actions;
    c.wanted = o->held_out_users ? att_min(o->held_out_users, c.enough) : c.enough;
    return c;
}

/* Returns whether the next user with enough actions is chosen: if a third of them is wanted, every third one. */
static bool choose(chosen *c)
{
    const int64_t before = c->before++;
    return c->before * c->wanted / c->enough > before * c->wanted / c->enough;
}

static void split_user(att_holdout *h, int64_t user, chosen *c)
{
    const int64_t begin = h->log->offsets[user], end = h->log->offsets[user + 1];
    const bool by_time = h->info.kind == ATT_HOLDOUT_TIME;
    h->train_end[user] = by_time ? first_from(h->log, begin, end, h->info.valid_from) : end;
    if (h->info.kind == ATT_HOLDOUT_NONE)
        return;
    if (end - begin < c->min_actions)
        h->info.train_only++;
    else if (!choose(c))
        h->info.not_held_out++;
    else if (by_time)
        split_by_time(h, user, begin, end);
    else
        leave_one_out(h, user, begin, end);
}

/* ---- counts */

static void count_training(att_holdout *h)
{
    const att_interactions *log = h->log;
    for (int64_t u = 0; u < log->info.users; u++) {
        const int64_t n = h->train_end[u] - log->offsets[u];
        h->info.users += n > 0;
        h->info.actions += n;
        h->info.positions += att_max(n - 1, 0);
        for (int64_t i = log->offsets[u]; i < h->train_end[u]; i++)
            h->counts[log->item[i]]++;
    }
    for (int64_t i = 0; i < log->info.items; i++)
        h->info.items += h->counts[i] > 0;
}

bool att_case_is_repeat(const att_holdout *h, const att_case *c)
{
    const att_history x = att_case_history(h, c);
    for (int64_t i = 0; i < x.count; i++)
        if (x.items[i] == h->log->item[c->position])
            return true;
    return false;
}

static void count_cases(att_holdout *h, att_holdout_part part)
{
    for (int64_t i = 0; i < h->info.cases[part]; i++) {
        const att_case *c = &h->cases[part][i];
        h->info.unseen[part] += h->counts[h->log->item[c->position]] == 0;
        h->info.repeats[part] += att_case_is_repeat(h, c);
    }
}

/* ---- the object */

static att_status allocate(att_holdout *h, int64_t cases)
{
    const size_t users = (size_t)h->log->info.users, items = (size_t)h->log->info.items;
    h->train_end = att_alloc(h->ctx, users, sizeof *h->train_end);
    h->counts = att_calloc(h->ctx, items, sizeof *h->counts);
    for (int part = 0; part < 2; part++)
        h->cases[part] = att_alloc(h->ctx, (size_t)cases, sizeof *h->cases[part]);
    return h->train_end && h->counts && h->cases[0] && h->cases[1] ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status split(att_holdout *h, const att_holdout_options *o)
{
    chosen c = begin_choice(h->log, o);
    att_status e = allocate(h, c.wanted);
    if (e)
        return e;
    for (int64_t u = 0; u < h->log->info.users; u++)
        split_user(h, u, &c);
    count_training(h);
    if (h->info.actions == 0)
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "no action is left for training: validation is from %.17g on",
                        o->valid_from);
    count_cases(h, ATT_HOLDOUT_PART_VALID);
    count_cases(h, ATT_HOLDOUT_PART_TEST);
    return ATT_OK;
}

static att_status check_options(const att_interactions *log, att_holdout_options *o)
{
    const bool by_time = o->kind == ATT_HOLDOUT_TIME;
    const int64_t min = o->kind == ATT_HOLDOUT_LEAVE_ONE_OUT ? MIN_ACTIONS : 1;
    if ((unsigned)o->kind > ATT_HOLDOUT_NONE)
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "kind is %d, not an att_holdout_kind", (int)o->kind);
    if (o->min_actions != 0 && o->min_actions < min)
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "min_actions is %lld, expected 0 or at least %lld",
                        (long long)o->min_actions, (long long)min);
    if (o->held_out_users < 0)
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "held_out_users is %lld, expected 0 or more",
                        (long long)o->held_out_users);
    if (!by_time && (o->valid_share != 0 || o->test_share != 0 || o->valid_from != 0 || o->test_from != 0))
        return att_fail(log->ctx, ATT_ERR_ARGUMENT, "shares and points in time are for ATT_HOLDOUT_TIME only");
    return by_time ? find_points(log, o) : ATT_OK;
}

att_status att_holdout_new(const att_interactions *log, const att_holdout_options *options, att_holdout **out)
{
    att_holdout_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"log", log}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&o, sizeof o, options, "att_holdout_options");
    e = e ? e : check_options(log, &o);
    if (e)
        return e;
    att_holdout *h = att_calloc(log->ctx, 1, sizeof *h);
    if (!h)
        return ATT_ERR_MEMORY;
    h->ctx = log->ctx;
    h->log = log;
    h->info.kind = o.kind;
    h->info.valid_from = o.valid_from;
    h->info.test_from = o.test_from;
    e = split(h, &o);
    if (e)
        att_holdout_free(h);
    else
        *out = h;
    return e;
}

void att_holdout_free(att_holdout *h)
{
    if (!h)
        return;
    att_free(h->ctx, h->train_end);
    att_free(h->ctx, h->counts);
    att_free(h->ctx, h->cases[0]);
    att_free(h->ctx, h->cases[1]);
    att_free(h->ctx, h);
}

const att_interactions *att_holdout_log(const att_holdout *h) { return h ? h->log : NULL; }

att_status att_holdout_describe(const att_holdout *h, att_holdout_info *info)
{
    if (att_require(__func__, ATT_NAMED({"h", h}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &h->info, sizeof h->info, "att_holdout_info");
}

att_history att_holdout_train(const att_holdout *h, int64_t user)
{
    if (!h || user < 0 || user >= h->log->info.users)
        return (att_history){0};
    return att_history_of(h->log, h->log->offsets[user], h->train_end[user]);
}

att_status att_holdout_get(const att_holdout *h, att_holdout_part part, int64_t i, att_holdout_case *out)
{
    if (out)
        *out = (att_holdout_case){0};
    if (att_require(__func__, ATT_NAMED({"h", h}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if ((unsigned)part > ATT_HOLDOUT_PART_TEST)
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "part is %d, not an att_holdout_part", (int)part);
    if (i < 0 || i >= h->info.cases[part])
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "i is %lld, but there are %lld cases", (long long)i,
                        (long long)h->info.cases[part]);
    const att_case *c = &h->cases[part][i];
    *out = (att_holdout_case){c->user, att_case_history(h, c), h->log->item[c->position]};
    return ATT_OK;
}
