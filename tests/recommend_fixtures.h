/* Recommenders and what trains them: for tests/null_fixtures.h, whose give() they use. */
#ifndef RECOMMEND_FIXTURES_H
#define RECOMMEND_FIXTURES_H

#include "attend_recommend.h"
#include "folder.h"

static void give(const char *of, const void *value);
static void need(att_status s);

static const char *const recommended_ids[] = {"a", "b", "c", "d"}, *const new_ids[] = {"e"};
static const char recommender_settings[] =
    "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 2, \"num_hidden_layers\": 1, \"max_position_embeddings\": 3}";

/* Of two users, who have not all items: so that others can be drawn. */
static att_holdout *recommended_data(att_ctx *c)
{
    static const char *const users[] = {"x", "x", "x", "x", "y", "y", "y", "y"};
    static const char *const items[] = {"a", "b", "c", "a", "d", "c", "d", "b"};
    const att_interactions_options o = {.size = sizeof o, .items = recommended_ids, .n_items = 4};
    att_interactions *log;
    att_holdout *h;
    need(att_interactions_new(c, 8, users, items, NULL, &o, &log));
    need(att_holdout_new(log, NULL, &h));
    return h;
}

/* A model that learns, and its folder */
static att_recommender *give_recommender(att_ctx *c, const test_folder *folder)
{
    static const float vectors[] = {1, 2, 3, 4};
    static const int64_t items = 4, one = 1, counts[] = {4, 3, 2, 1};
    static const uint32_t sequence_ids[] = {0};
    static const att_item_content content = {.size = sizeof content, .vectors = vectors, .width = 1};
    static const att_recommender_options options = {
        .size = sizeof options, .dropout = 0.1f, .sequence_ids = sequence_ids};
    static att_recommender_info info = {.size = sizeof info};
    att_recommender *m;
    need(att_recommender_new(c, recommender_settings, items, recommended_ids, &content, 1, &m));
    need(att_recommender_set_counts(m, counts));
    need(att_recommender_write(m, folder->path, 0));
    give("att_recommender_open.folder", folder->path);
    give("att_recommender_open_for_training.folder", folder->path);
    give("att_recommender_new.settings", recommender_settings);
    give("att_recommender_new.n_items", &items);
    give("att_recommender_new.items", recommended_ids);
    give("att_recommender_add_items.n_items", &one);
    give("att_recommender_add_items.items", new_ids);
    give("att_recommender_set_counts.counts", counts);
    give("const att_item_content *", &content);
    give("const att_recommender_options *", &options);
    give("att_recommender_info *", &info);
    give("const att_recommender *", m);
    give("att_recommender *", m);
    return m;
}

static void give_lists(const att_recommender *m)
{
    static const int32_t allow[] = {0, 1}, deny[] = {1};
    static const att_recommend_options options = {
        .size = sizeof options, .k = 2, .allow = allow, .n_allow = 2, .deny = deny, .n_deny = 1};
    static att_recommendation list;
    need(att_recommend(m, 1, allow, (const int64_t[]){0, 2}, &options, &list));
    give("const att_recommend_options *", &options);
    give("att_recommendation *", &list);
}

/* Models, lists and trainings. */
static void give_recommendation(att_ctx *c, const att_schedule *rates)
{
    static test_folder folder;
    static att_recommender_training_options options = {.size = sizeof options, .loss = ATT_ITEM_LOSS_BINARY};
    static att_recommender_training_options in_folder;
    att_training *t;
    att_recommender *m; /* another one: to one that is trained no items can be added */
    folder = folder_new();
    give_lists(give_recommender(c, &folder));
    need(att_recommender_open_for_training(c, folder.path, &m));
    options.data = recommended_data(c);
    options.schedule = rates;
    in_folder = options;
    in_folder.settings = recommender_settings;
    need(att_recommender_training_new(m, &options, &t));
    give("att_recommender_training_new.options", &options);
    give("const att_recommender_training_options *", &in_folder);
    give("att_training_recommender.t", t);
}

#endif
