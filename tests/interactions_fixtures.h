/* Logs of interactions, splits and baselines: for tests/null_fixtures.h, whose give() they use. */
#ifndef INTERACTIONS_FIXTURES_H
#define INTERACTIONS_FIXTURES_H

#include "attend_recommend.h"
#include "folder.h"

#include <fcntl.h>

static void give(const char *of, const void *value);
static void need(att_status s);

static const char *const log_ids[] = {"a", "b", "c", "d"};

/* A log of arrays and of a file: the user "a" has all items. */
static att_interactions *give_log(att_ctx *c, const test_folder *folder)
{
    static const char *const users[] = {"a", "a", "a", "a"};
    static const double times[] = {1, 2, 3, 4};
    static const int64_t n = 4;
    static const att_interactions_options in_memory = {.size = sizeof in_memory, .items = log_ids, .n_items = 2};
    static const att_interactions_options in_file = {
        .size = sizeof in_file, .user = "user", .item = "item", .time = "time", .items = log_ids, .n_items = 2};
    static char path[160];
    att_interactions *log;
    folder_write(folder, "log.csv", "user,item,time\na,b,1\n");
    snprintf(path, sizeof path, "%s/log.csv", folder->path);
    need(att_interactions_new(c, n, users, log_ids, times, NULL, &log));
    give("att_interactions_open.path", path);
    give("att_interactions_open.options", &in_file);
    give("att_interactions_new.n", &n);
    give("att_interactions_new.users", users);
    give("att_interactions_new.items", log_ids);
    give("att_interactions_new.times", times);
    give("const att_interactions_options *", &in_memory);
    give("const char *id", "a");
    give("const att_interactions *", log);
    give("att_interactions *", log);
    return log;
}

static att_status score_equally(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                                float *scores)
{
    (void)user;
    (void)items;
    (void)offsets;
    for (int64_t i = 0; i < n * n_items; i++)
        scores[i] = 0;
    return ATT_OK;
}

static void give_baseline(const att_holdout *h)
{
    static const float vectors[] = {1, 1, 1, 1};
    static const att_baseline_options options = {.size = sizeof options, .vectors = vectors, .width = 1};
    static const att_baseline_kind kind = ATT_BASELINE_CONTENT;
    att_baseline *b;
    need(att_baseline_new(h, kind, &options, &b));
    give("att_baseline_kind", &kind);
    give("const att_baseline_options *", &options);
    give("const att_baseline *", b);
    give("att_baseline *", b);
}

/* A log with its splits, measures and baselines. */
static void give_interactions(att_ctx *c)
{
    static test_folder folder;
    static att_interactions_info log_info = {.size = sizeof log_info};
    static att_holdout_info info = {.size = sizeof info};
    static const att_holdout_options options = {.size = sizeof options};
    static const att_holdout_part part = ATT_HOLDOUT_TEST;
    static att_holdout_case held_out;
    static const att_scorer scorer = {score_equally, NULL};
    static int32_t ranks[1];
    static const att_ranking_options ranking = {.size = sizeof ranking, .ranks = ranks};
    static att_ranking result = {.size = sizeof result};
    att_holdout *h;
    folder = folder_new();
    need(att_holdout_new(give_log(c, &folder), &options, &h));
    give("att_interactions_info *", &log_info);
    give("const att_holdout_options *", &options);
    give("att_holdout_info *", &info);
    give("att_holdout_part", &part);
    give("att_holdout_case *", &held_out);
    give("const att_holdout *", h);
    give("att_holdout *", h);
    give("const att_scorer *", &scorer);
    give("const att_ranking_options *", &ranking);
    give("att_ranking *", &result);
    give_baseline(h);
}

/* ---- tables: a file to be written at path */

static void give_tables(att_ctx *c, const char *path)
{
    static att_table *tables[2]; /* the first is freed */
    static int stream;
    stream = open("/dev/null", O_RDONLY | O_CLOEXEC);
    give("int file", &stream);
    FILE *table = fopen(path, "w");
    assert_non_null(table);
    fputs("a,b\nc,d\n", table);
    fclose(table);
    for (int i = 0; i < 2; i++)
        need(att_table_open(c, path, ATT_OPTIONS(att_table_options, .skip_bad_lines = 1), &tables[i]));
    give("att_table_open.path", path);
    give("att_table *", tables[0]);
    give("const att_table *", tables[1]);
}

#endif
