/* Logs of interactions for tests: opened, described, compared with tests/golden/ranking.txt. */
#ifndef INTERACTIONS_HELP_H
#define INTERACTIONS_HELP_H

#include "context.h"
#include "folder.h"
#include "golden_text.h"

#include "attend_recommend.h"

#define GOLDEN_LOG "tests/golden/interactions.csv"
#define GOLDEN_RANKING "tests/golden/ranking.txt"

static inline att_interactions *open_log(const char *path, const att_interactions_options *options)
{
    att_interactions *log;
    if (att_interactions_open(ctx, path, options, &log))
        fail_msg("%s", att_error(ctx));
    return log;
}

static inline att_interactions_info describe_log(const att_interactions *log)
{
    att_interactions_info info = {.size = sizeof info};
    assert_int_equal(att_interactions_describe(log, &info), ATT_OK);
    return info;
}

/* A user's history as "item,item,...", with "@time" if the log has times. */
static inline const char *history_text(const att_interactions *log, const char *user)
{
    static char text[512];
    const int64_t number = att_interactions_find_user(log, user);
    const att_history h = att_interactions_history(log, number);
    int n = 0;
    assert_true(number >= 0 && h.count > 0);
    assert_string_equal(att_interactions_user(log, number), user);
    for (int64_t i = 0; i < h.count; i++) {
        const char *item = att_interactions_item(log, h.items[i]);
        assert_int_equal(att_interactions_find_item(log, item), h.items[i]);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i ? "," : "", item);
        if (h.times)
            n += snprintf(text + n, sizeof text - (size_t)n, "@%.17g", h.times[i]);
    }
    return text;
}

static inline att_holdout *hold_out(const att_interactions *log, const att_holdout_options *options)
{
    att_holdout *h;
    if (att_holdout_new(log, options, &h))
        fail_msg("%s", att_error(ctx));
    return h;
}

static inline att_holdout_info describe_holdout(const att_holdout *h)
{
    att_holdout_info info = {.size = sizeof info};
    assert_int_equal(att_holdout_describe(h, &info), ATT_OK);
    return info;
}

/* As make_ranking.py's by_time */
static inline att_holdout *hold_out_by_time(const att_interactions *log)
{
    return hold_out(
        log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_TIME, .valid_share = 0.25, .test_share = 0.25));
}

/* A log of arrays: user and item k are those of the texts' characters k, times ascend. */
static inline att_interactions *log_of(const char *users, const char *items)
{
    enum { MAX = 1 << 16 };
    static char text[2][MAX][2];
    static const char *id[2][MAX];
    static double times[MAX];
    const int n = (int)strlen(users);
    att_interactions *log;
    assert_true(n <= MAX && strlen(items) == (size_t)n);
    for (int i = 0; i < n; i++) {
        text[0][i][0] = users[i];
        text[1][i][0] = items[i];
        id[0][i] = text[0][i];
        id[1][i] = text[1][i];
        times[i] = i;
    }
    assert_int_equal(att_interactions_new(ctx, n, id[0], id[1], times, NULL, &log), ATT_OK);
    return log;
}

#endif
