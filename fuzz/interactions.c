/* The input is a byte, the format and options, and the bytes of a log. What is accepted must be complete: sorted
 * histories of items with ids, splits of each kind, ranks of each kind of candidates. */
#include "fuzz.h"

#include "attend_recommend.h"

enum { FORMATS = ATT_INTERACTIONS_HISTORIES + 1, SKIPS = 16, NUMBERS = 32, UNTIMED = 64, DISTINCT = 128 };

static void check_history(const att_interactions *log, int64_t user, int64_t items, const att_holdout *h)
{
    const att_history x = att_interactions_history(log, user), train = att_holdout_train(h, user);
    const char *id = att_interactions_user(log, user);
    fuzz_check(x.count > 0 && id && att_interactions_find_user(log, id) == user, "a user without id or action");
    fuzz_check(train.count <= x.count && (!train.count || train.items == x.items), "training is not the beginning");
    for (int64_t i = 0; i < x.count; i++) {
        fuzz_check(x.items[i] >= 0 && x.items[i] < items, "an item that does not exist");
        fuzz_check(!x.times || i == 0 || x.times[i - 1] <= x.times[i], "times that are not sorted");
        const char *item = att_interactions_item(log, x.items[i]);
        fuzz_check(item && att_interactions_find_item(log, item) == x.items[i], "an item without id");
    }
}

static void check_ranks(const att_holdout *h, const att_scorer *scorer, int candidates)
{
    att_ranking r = {.size = sizeof r};
    att_ranking_options o = {.size = sizeof o, .part = ATT_HOLDOUT_PART_TEST, .k = 3, .exclude_seen = candidates % 2};
    o.candidates = (att_candidates)candidates;
    o.negatives = o.draws = candidates ? 2 : 0;
    if (!att_rank(h, scorer, &o, &r)) /* otherwise there are too few items, or no case */
        fuzz_check(r.cases > 0 && r.hr.mean >= r.ndcg.mean && r.ndcg.mean >= r.mrr.mean && r.hr.mean <= 1 &&
                       r.coverage >= 0 && r.coverage <= 1,
                   "measures in the wrong order");
}

static void check_split(const att_interactions *log, att_holdout_kind kind)
{
    att_interactions_info info = {.size = sizeof info};
    att_holdout_info split = {.size = sizeof split};
    att_holdout *h;
    att_baseline *b;
    int64_t actions = 0;
    fuzz_check(!att_interactions_describe(log, &info), "a log without a description");
    if (att_holdout_new(log, ATT_OPTIONS(att_holdout_options, .kind = kind), &h)) {
        fuzz_check(kind == ATT_HOLDOUT_TIME, "a log that cannot be split");
        return;
    }
    for (int64_t u = 0; u < info.users; u++) {
        check_history(log, u, info.items, h);
        actions += att_holdout_train(h, u).count;
    }
    fuzz_check(!att_holdout_describe(h, &split) && split.actions == actions, "a wrong number of actions");
    fuzz_check(!att_baseline_new(h, ATT_BASELINE_NEIGHBORS, NULL, &b), "no baseline");
    const att_scorer scorer = att_baseline_scorer(b);
    for (int candidates = ATT_CANDIDATES_ALL; candidates <= ATT_CANDIDATES_BY_POPULARITY; candidates++)
        check_ranks(h, &scorer, candidates);
    att_baseline_free(b);
    att_holdout_free(h);
}

/* The input as one time */
static void check_time(const unsigned char *data, size_t size)
{
    char text[64];
    double x;
    bool date;
    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text - 1), (const char *)data);
    if (!att_interactions_time(text, 1, &x, &date))
        fuzz_check(x - x == 0 && (!date || (x >= -62167305600. && x < 253402400000.)), "a time that is out of range");
}

static void remove_files(void)
{
    static const char *const names[] = {"log", NULL};
    fuzz_remove(names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool registered;
    char path[128];
    att_interactions *log;
    if (!registered)
        registered = !atexit(remove_files);
    if (size < 2)
        return 0;
    att_interactions_options o = {.size = sizeof o, .format = (att_interactions_format)(data[0] % FORMATS)};
    o.time = data[0] & UNTIMED ? "" : NULL;
    o.drop_duplicates = data[0] & DISTINCT;
    o.skip_bad_lines = data[0] & SKIPS ? 2 : 0;
    if (data[0] & NUMBERS) {
        o.user = "2";
        o.item = "1";
        o.time = o.time ? o.time : "3";
    }
    check_time(data + 1, size - 1);
    fuzz_write("log", (fuzz_section){data + 1, size - 1});
    snprintf(path, sizeof path, "%s/log", fuzz_folder());
    if (att_interactions_open(fuzz_context(), path, &o, &log)) {
        fuzz_check(!log, "refused, but with a log");
        return 0;
    }
    for (int kind = ATT_HOLDOUT_LEAVE_ONE_OUT; kind <= ATT_HOLDOUT_NONE; kind++)
        check_split(log, (att_holdout_kind)kind);
    att_interactions_free(log);
    return 0;
}
