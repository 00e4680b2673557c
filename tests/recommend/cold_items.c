/* Items without training actions in a model with content: training does not push them down, so that they are listed
 * where their content says; without content they are not listed. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/folder.h"

#include "attend_recommend.h"

enum { TOPICS = 4, ITEMS = 40, COLD = 8, WARM = ITEMS - COLD, USERS = 120, LENGTH = 9, WIDTH = 8, STEPS = 120 };

/* Users with items of one topic each, which is that of the item's number; the last items of all have no actions. */
static att_interactions *make_log(att_ctx *ctx, const char *ids[ITEMS])
{
    static char user[USERS][16], item[ITEMS][16];
    static const char *user_of[USERS * LENGTH], *item_of[USERS * LENGTH];
    att_interactions *log;
    uint32_t state = 1;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(item[i], sizeof item[i], "i%d", i);
        ids[i] = item[i];
    }
    for (int n = 0; n < USERS * LENGTH; n++) {
        const int u = n / LENGTH;
        snprintf(user[u], sizeof user[u], "u%d", u);
        state = state * 1664525u + 1013904223u;
        user_of[n] = user[u];
        item_of[n] = item[(int)(state >> 16) % (WARM / TOPICS) * TOPICS + u % TOPICS];
    }
    const att_interactions_options o = {.size = sizeof o, .items = ids, .n_items = ITEMS};
    if (att_interactions_new(ctx, USERS * LENGTH, user_of, item_of, NULL, &o, &log))
        fail_msg("%s", att_error(ctx));
    return log;
}

static att_recommender *make_model(att_ctx *ctx, const char *const ids[ITEMS], const char *type, bool add)
{
    static float vectors[ITEMS * WIDTH];
    char settings[200];
    att_recommender *m;
    for (int i = 0; i < ITEMS * WIDTH; i++)
        vectors[i] = i % WIDTH == i / WIDTH % TOPICS ? 1 : 0.05f * (float)(i * 7 % 11 - 5);
    const att_item_content content = {.size = sizeof content, .vectors = vectors, .width = WIDTH, .add = add};
    snprintf(settings, sizeof settings,
             "{\"model_type\": \"%s\", \"hidden_size\": 32, \"max_position_embeddings\": 10}", type);
    if (att_recommender_new(ctx, settings, ITEMS, ids, &content, 1, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Writes the model and opens it again: it is still one with content. */
static att_recommender *reopen(att_ctx *ctx, att_recommender *m)
{
    test_folder folder = folder_new();
    att_recommender *again = NULL;
    if (att_recommender_write(m, folder.path, 0) || att_recommender_open_for_training(ctx, folder.path, NULL, &again))
        fail_msg("%s", att_error(ctx));
    att_recommender_free(m);
    folder_remove(&folder);
    return again;
}

static void train(att_recommender *m, const att_holdout *h, att_item_loss loss)
{
    const att_schedule rates = {.size = sizeof rates, .max_rate = 0.01};
    const att_training_options common = {.size = sizeof common, .schedule = &rates, .seed = 2};
    const att_recommender_training_options o = {.size = sizeof o, .data = h, .batch = 32, .loss = loss};
    att_training_report r = {.size = sizeof r};
    att_training *t;
    att_status e = att_recommender_training_new(m, &common, &o, &t);
    for (int i = 0; !e && i < STEPS; i++)
        e = att_training_step(t, &r);
    if (e)
        fail_msg("%s", att_error(NULL));
    att_training_free(t);
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Returns the median of the ranks of cold items for users of their topic. */
static int median_rank(att_ctx *ctx, const att_recommender *m, const att_interactions *log)
{
    int ranks[USERS * COLD / TOPICS], n = 0;
    for (int64_t u = 0; u < USERS; u++) {
        const att_history x = att_interactions_history(log, u);
        att_recommendation r;
        assert_int_equal(att_recommend(m, 1, x.items, (const int64_t[]){0, x.count},
                                       ATT_OPTIONS(att_recommend_options, .k = ITEMS), &r),
                         ATT_OK);
        for (int i = 0; i < ITEMS; i++)
            if (r.items[i] >= WARM && r.items[i] % TOPICS == u % TOPICS)
                ranks[n++] = i + 1;
        att_recommendation_free(ctx, &r);
    }
    assert_int_equal(n, sizeof ranks / sizeof ranks[0]);
    qsort(ranks, (size_t)n, sizeof *ranks, ascending);
    return ranks[n / 2];
}

static void content_decides_where_they_are_listed(void **state)
{
    (void)state;
    static const att_item_loss losses[] = {ATT_ITEM_LOSS_SOFTMAX, ATT_ITEM_LOSS_GBCE};
    att_ctx *ctx = check_open(NULL, 2);
    const char *ids[ITEMS];
    att_interactions *log = make_log(ctx, ids);
    att_holdout *h;
    assert_int_equal(att_holdout_new(log, NULL, &h), ATT_OK);
    for (int way = 0; way < 8; way++) {
        att_recommender *m = make_model(ctx, ids, way & 4 ? "attend-bert4rec" : "attend-sasrec", way & 1);
        if (way & 2)
            m = reopen(ctx, m);
        train(m, h, losses[way >> 1 & 1]);
        const int rank = median_rank(ctx, m, log);
        if (rank > ITEMS / TOPICS + 1)
            fail_msg("way %d: the median rank of cold items is %d of %d", way, rank, ITEMS);
        att_recommender_free(m);
    }
    att_holdout_free(h);
    att_interactions_free(log);
    att_close(ctx);
}

/* ---- without a vector */

enum { EMPTY = ITEMS - 2 }; /* cold, and its content is zeros */

/* A list of all items has all but the empty one, and at most one other. */
static void check_list(const att_recommendation *r, bool itself)
{
    int n = 0;
    for (int64_t i = 0; i < r->k; i++) {
        assert_int_not_equal(r->items[i], EMPTY);
        n += r->items[i] >= 0;
    }
    assert_int_equal(n, ITEMS - 1 - itself);
}

static void check_lists(att_ctx *ctx, const att_recommender *m)
{
    static const int32_t history[] = {1, 5, EMPTY}, empty[] = {EMPTY};
    static const int64_t offsets[] = {0, 3};
    const att_recommend_options *all = ATT_OPTIONS(att_recommend_options, .k = ITEMS);
    float scores[ITEMS];
    att_recommendation r;
    assert_int_equal(att_recommend(m, 1, history, offsets, all, &r), ATT_OK);
    check_list(&r, false);
    att_recommendation_free(ctx, &r);
    assert_int_equal(
        att_recommend(m, 1, history, offsets, ATT_OPTIONS(att_recommend_options, .allow = empty, .n_allow = 1), &r),
        ATT_OK);
    assert_int_equal(r.items[0], -1);
    att_recommendation_free(ctx, &r);
    assert_int_equal(att_recommender_similar(m, 3, all, &r), ATT_OK);
    check_list(&r, true);
    att_recommendation_free(ctx, &r);
    assert_int_equal(att_recommender_similar(m, EMPTY, all, &r), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "item \"i38\" has no vector"));
    const att_scorer scorer = att_recommender_scorer(m);
    assert_int_equal(scorer.score(scorer.user, history, offsets, 1, ITEMS, scores), ATT_OK);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(isinf(scores[i]) != 0, i == EMPTY);
}

static void an_item_without_text_and_actions_is_in_no_list(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const char *ids[ITEMS];
    att_interactions *log = make_log(ctx, ids);
    att_holdout *h;
    assert_int_equal(att_holdout_new(log, NULL, &h), ATT_OK);
    for (int bert = 0; bert < 2; bert++) {
        const test_folder folder = folder_new();
        att_recommender *m = make_model(ctx, ids, bert ? "attend-bert4rec" : "attend-sasrec", true), *opened;
        for (int64_t i = 0; i < att_nn_params_count(att_recommender_params(m)); i++) {
            const char *name;
            const att_param *p = att_nn_params_at(att_recommender_params(m), i, &name);
            if (!strcmp(name, "content.vectors"))
                memset((float *)att_param_value(p)->data + EMPTY * WIDTH, 0, WIDTH * sizeof(float));
        }
        train(m, h, ATT_ITEM_LOSS_SOFTMAX);
        check_lists(ctx, m);
        assert_int_equal(att_recommender_write(m, folder.path, ATT_F16), ATT_OK);
        assert_int_equal(att_recommender_open(ctx, folder.path, NULL, &opened), ATT_OK);
        check_lists(ctx, opened);
        att_recommender_free(opened);
        att_recommender_free(m);
        folder_remove(&folder);
    }
    att_holdout_free(h);
    att_interactions_free(log);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(content_decides_where_they_are_listed),
                                       cmocka_unit_test(an_item_without_text_and_actions_is_in_no_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
