/* Training a recommender: it learns what popularity cannot, with the same bits whatever the threads and the pauses;
 * further items keep what is trained; what cannot be trained on is named. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"

#include "attend_util.h"
#include "recommend/recommend_batches.h"

enum { ITEMS = 40, USERS = 300, LENGTH = 9 };

static test_folder folder;

static int set_up(void **state)
{
    (void)state;
    folder = folder_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[320];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

/* ---- a log in which the next item follows from the last two */

typedef struct data {
    att_interactions *log;
    att_holdout *holdout;
} data;

/* users of a log of items 0 to n_items - 1, as many being in `known` before */
static data make_data(att_ctx *ctx, int users, int n_items, const char *const *known, int64_t n_known)
{
    static char user[USERS][16], item[ITEMS + 10][16];
    static const char *user_of[USERS * LENGTH], *item_of[USERS * LENGTH];
    for (int i = 0; i < n_items; i++)
        snprintf(item[i], sizeof item[i], "i%d", i);
    for (int u = 0; u < users; u++) {
        snprintf(user[u], sizeof user[u], "u%d", u);
        int before = u * 7 % n_items, last = u * 13 % n_items;
        for (int k = 0; k < LENGTH; k++) {
            user_of[u * LENGTH + k] = user[u];
            item_of[u * LENGTH + k] = item[last];
            const int next = (last * 3 + before / 20 + 1) % n_items;
            before = last;
            last = next;
        }
    }
    const att_interactions_options o = {.size = sizeof o, .items = known, .n_items = n_known};
    data d;
    if (att_interactions_new(ctx, users * LENGTH, user_of, item_of, NULL, &o, &d.log) ||
        att_holdout_new(d.log, NULL, &d.holdout))
        fail_msg("%s", att_error(ctx));
    return d;
}

static void data_free(data *d)
{
    att_holdout_free(d->holdout);
    att_interactions_free(d->log);
}

static double ndcg(const att_holdout *h, att_scorer scorer)
{
    att_ranking r = {.size = sizeof r};
    if (att_rank(h, &scorer, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST), &r))
        fail_msg("%s", att_error(NULL));
    return r.ndcg.mean;
}

static double baseline(const att_holdout *h, att_baseline_kind kind)
{
    att_baseline *b;
    if (att_baseline_new(h, kind, NULL, &b))
        fail_msg("%s", att_error(NULL));
    const double y = ndcg(h, att_baseline_scorer(b));
    att_baseline_free(b);
    return y;
}

static void make_steps(att_training *t, int64_t n)
{
    att_training_report r = {.size = sizeof r};
    for (int64_t i = 0; i < n; i++)
        if (att_training_step(t, &r))
            fail_msg("%s", att_error(NULL));
}

#define SASREC "\"model_type\": \"attend-sasrec\", \"hidden_size\": 32, \"max_position_embeddings\": 6"
#define BERT4REC "\"model_type\": \"attend-bert4rec\", \"hidden_size\": 32, \"max_position_embeddings\": 6"
enum { STEPS = 240 };
static const att_schedule schedule = {
    .size = sizeof schedule, .kind = ATT_SCHEDULE_COSINE, .max_rate = 0.01, .warmup = 10, .steps = STEPS};

typedef struct way {
    const char *settings;
    att_item_loss loss;
    bool with_replacement;
    double calibration, last_mask_share;
    double expected; /* NDCG@10, at least */
} way;
static const way ways[] = {
    {"{" SASREC "}", ATT_ITEM_LOSS_SOFTMAX, false, 0, 0, 0.9},
    {"{" SASREC ", \"block\": \"post-norm\"}", ATT_ITEM_LOSS_SAMPLED_SOFTMAX, false, 0, 0, 0.9},
    {"{" SASREC ", \"block\": \"sasrec\"}", ATT_ITEM_LOSS_BINARY, true, 0, 0, 0.5},
    {"{" SASREC "}", ATT_ITEM_LOSS_GBCE, true, 0.75, 0, 0.5},
    {"{" BERT4REC "}", ATT_ITEM_LOSS_SOFTMAX, false, 0, 0.5, 0.5},
    {"{" BERT4REC ", \"block\": \"pre-norm\"}", ATT_ITEM_LOSS_SAMPLED_SOFTMAX, false, 0, 0.5, 0.45}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static const att_training_options common = {
    .size = sizeof common, .schedule = &schedule, .beta2 = 0.98, .weight_decay = 1e-3, .clip = 5, .seed = 4};

static att_recommender_training_options options_of(const way *w, const att_holdout *h)
{
    return (att_recommender_training_options){.size = sizeof(att_recommender_training_options),
                                              .data = h,
                                              .batch = 32,
                                              .with_replacement = w->with_replacement,
                                              .loss = w->loss,
                                              .negatives = w->loss == ATT_ITEM_LOSS_SOFTMAX ? 0 : 8,
                                              .calibration = w->calibration,
                                              .mask_share = strstr(w->settings, "bert4rec") ? 0.3 : 0,
                                              .last_mask_share = w->last_mask_share,
                                              .dropout = 0.1f};
}

/* ---- learning */

static void what_popularity_cannot_find_is_learned(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    data d = make_data(ctx, USERS, ITEMS, NULL, 0);
    const double popular = baseline(d.holdout, ATT_BASELINE_POPULARITY);
    const char *ids[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        ids[i] = att_interactions_item(d.log, i);
    assert_true(popular < 0.5);
    for (int w = 0; w < WAYS; w += check_step(4)) {
        att_recommender *m;
        att_training *t;
        if (att_recommender_new(ctx, ways[w].settings, ITEMS, ids, NULL, 1, &m))
            fail_msg("%s", att_error(ctx));
        const double before = ndcg(d.holdout, att_recommender_scorer(m));
        const att_recommender_training_options o = options_of(&ways[w], d.holdout);
        if (att_recommender_training_new(m, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        assert_ptr_equal(att_training_recommender(t), m);
        att_training_info info = {.size = sizeof info};
        make_steps(t, STEPS);
        const double after = ndcg(d.holdout, att_recommender_scorer(m));
        assert_int_equal(att_training_describe(t, &info), ATT_OK);
        assert_int_equal(info.examples, USERS);
        assert_true(after > ways[w].expected && before < popular);
        att_training_free(t);
        att_recommender_free(m);
    }
    data_free(&d);
    att_close(ctx);
}

static att_training *open_training(att_ctx *ctx, const char *name, const way *w, const att_holdout *h, bool resume)
{
    att_recommender_training_options o = options_of(w, h);
    att_training *t;
    o.settings = w->settings;
    att_training_options c = common;
    c.resume = resume;
    if (att_recommender_training_open(ctx, path_of(name), &c, &o, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* ---- folders, and further items */

/* The larger model has the vectors of all items and of a history that the other has. */
static void check_inherited(const att_recommender *m, const att_recommender *larger)
{
    static float items[2][(ITEMS + 10) * 32], histories[2][32];
    const int32_t history[] = {3, 1, 4, 1, 5};
    const int64_t offsets[] = {0, 5};
    const att_recommender *const both[] = {m, larger};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(att_recommender_vectors(both[i], items[i]), ATT_OK);
        assert_int_equal(att_recommender_embed(both[i], 1, history, offsets, NULL, histories[i]), ATT_OK);
    }
    assert_memory_equal(items[0], items[1], ITEMS * 32 * sizeof(float));
    assert_memory_equal(histories[0], histories[1], sizeof histories[0]);
}

static void further_items_keep_what_is_trained(void **state)
{
    (void)state;
    enum { MORE = 5 };
    att_ctx *ctx = check_open(NULL, 2);
    data d = make_data(ctx, USERS, ITEMS, NULL, 0);
    att_training *t = open_training(ctx, "first", &ways[0], d.holdout, false);
    make_steps(t, STEPS);
    assert_int_equal(att_training_keep_best(t, ndcg(d.holdout, att_recommender_scorer(att_training_recommender(t))), 0),
                     ATT_OK);
    att_training_free(t);
    att_recommender *m;
    if (att_recommender_open(ctx, path_of("first"), NULL, &m))
        fail_msg("%s", att_error(ctx));
    const double trained = ndcg(d.holdout, att_recommender_scorer(m));
    assert_true(trained > 0.9);
    const char *ids[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        ids[i] = att_recommender_item(m, i);
    data more = make_data(ctx, 50, ITEMS + MORE, ids, ITEMS); /* read with the model's items first */
    way from_model = ways[0];
    att_recommender_training_options o = options_of(&from_model, more.holdout);
    char first[320];
    snprintf(first, sizeof first, "%s", path_of("first"));
    o.model = first;
    if (att_recommender_training_open(ctx, path_of("second"), &common, &o, &t))
        fail_msg("%s", att_error(ctx));
    att_recommender_info info = {.size = sizeof info};
    assert_int_equal(att_recommender_describe(att_training_recommender(t), &info), ATT_OK);
    assert_int_equal(info.items, ITEMS + MORE);
    assert_string_equal(att_recommender_item(att_training_recommender(t), 3), ids[3]);
    check_inherited(m, att_training_recommender(t));
    make_steps(t, 2);
    att_training_free(t);
    assert_int_equal(att_recommender_training_open(ctx, path_of("first"), &common, &o, &t), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "is the model's own folder"));
    att_recommender_free(m);
    data_free(&d);
    data_free(&more);
    att_close(ctx);
}

static void items_cannot_be_added_while_a_training_is_open(void **state)
{
    (void)state;
    const char *const added[] = {"added"}, *ids[ITEMS];
    att_ctx *ctx = check_open(NULL, 1);
    data d = make_data(ctx, 20, ITEMS, NULL, 0);
    int n = 0;
    for (; att_interactions_item(d.log, n); n++)
        ids[n] = att_interactions_item(d.log, n);
    att_recommender *m;
    att_training *t, *second;
    assert_int_equal(att_recommender_new(ctx, ways[0].settings, n, ids, NULL, 1, &m), ATT_OK);
    const att_recommender_training_options o = options_of(&ways[0], d.holdout);
    assert_int_equal(att_recommender_training_new(m, &common, &o, &t), ATT_OK);
    assert_int_equal(att_recommender_training_new(m, &common, &o, &second), ATT_OK);
    att_training_free(second);
    assert_int_equal(att_recommender_add_items(m, 1, added, NULL, 1), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "a training of the model is open"));
    make_steps(t, 2);
    att_training_free(t);
    assert_int_equal(att_recommender_add_items(m, 1, added, NULL, 1), ATT_OK);
    att_recommender_free(m);
    data_free(&d);
    att_close(ctx);
}

/* ---- content */

static int32_t best_of(att_ctx *ctx, const att_recommender *m, const att_holdout *h, int64_t user)
{
    const att_history x = att_holdout_train(h, user);
    att_recommendation r;
    assert_int_equal(att_recommend(m, 1, x.items, (const int64_t[]){0, x.count}, NULL, &r), ATT_OK);
    const int32_t best = r.items[0];
    att_recommendation_free(ctx, &r);
    return best;
}

/* An item without any action yet has the content of another: it is listed where that one is. */
static void new_items_are_found_by_their_content(void **state)
{
    (void)state;
    enum { WIDTH = ITEMS };
    static float content[(ITEMS + 1) * WIDTH];
    for (int i = 0; i < ITEMS; i++)
        content[i * WIDTH + i] = 1;
    att_ctx *ctx = check_open(NULL, 2);
    data d = make_data(ctx, USERS, ITEMS, NULL, 0);
    const att_item_content add = {.size = sizeof add, .vectors = content, .width = WIDTH, .add = true};
    att_recommender_training_options o = options_of(&ways[0], d.holdout);
    att_training *t;
    att_recommender *m;
    att_recommendation r;
    o.settings = ways[0].settings;
    o.content = &add;
    if (att_recommender_training_open(ctx, path_of("content"), &common, &o, &t))
        fail_msg("%s", att_error(ctx));
    make_steps(t, STEPS);
    assert_true(ndcg(d.holdout, att_recommender_scorer(att_training_recommender(t))) > 0.9);
    assert_int_equal(att_training_write(t, 0, 0), ATT_OK);
    att_training_free(t);
    assert_int_equal(att_recommender_open_for_training(ctx, path_of("content"), NULL, &m), ATT_OK);
    const int32_t copied = best_of(ctx, m, d.holdout, 0); /* user 0's */
    const att_item_content new_item = {
        .size = sizeof new_item, .vectors = content + copied * WIDTH, .width = WIDTH, .add = true};
    assert_int_equal(att_recommender_add_items(m, 1, (const char *const[]){"new"}, &new_item, 1), ATT_OK);
    int64_t lists = 0, found = 0;
    for (int64_t u = 0; u < USERS; u++) {
        const att_history h = att_holdout_train(d.holdout, u);
        assert_int_equal(
            att_recommend(m, 1, h.items, (const int64_t[]){0, h.count}, ATT_OPTIONS(att_recommend_options, .k = 5), &r),
            ATT_OK);
        bool has = false;
        for (int i = 0; i < 5; i++)
            has = has || r.items[i] == ITEMS;
        lists += r.items[0] == copied;
        found += r.items[0] == copied && has;
        att_recommendation_free(ctx, &r);
    }
    assert_true(lists > 0 && found == lists);
    att_recommender_free(m);
    data_free(&d);
    att_close(ctx);
}

/* ---- batches */

static att_history_source source_of(const data *d, bool masked)
{
    return (att_history_source){.data = d->holdout,
                                .users = 100,
                                .items = ITEMS,
                                .max = 5,
                                .negatives = 3,
                                .batch = 16,
                                .masked = masked,
                                .mask_share = 0.4,
                                .last_mask_share = 0.25,
                                .seed = 9};
}

static bool has_item(const att_history *h, int32_t item)
{
    for (int64_t i = 0; i < h->count; i++)
        if (h->items[i] == item)
            return true;
    return false;
}

/* Are the positions of history i of the batch, from `at` on, those of this user? Moves *at behind them. */
static bool is_of_user(const att_history_batch *b, int64_t i, const att_history *h, bool masked, int64_t *at)
{
    const int64_t first = b->offsets[i], n = b->offsets[i + 1] - first;
    const int32_t *last = h->items + h->count - n; /* the last items, or what is predicted */
    for (int64_t k = 0; k < n; k++) {
        const int32_t input = b->items[first + k];
        const bool position = *at < b->positions && b->rows[*at] == first + k;
        if (position != (!masked || input == ITEMS) || (input != ITEMS && input != last[masked ? k : k - 1]))
            return false;
        if (!position)
            continue;
        const int32_t *candidates = b->candidates + 4 * (*at);
        bool good = b->targets[*at] == last[k] && candidates[0] == last[k];
        for (int c = 1; c < 4; c++)
            good = good && candidates[c] < ITEMS && !has_item(h, candidates[c]);
        if (!good)
            return false;
        ++*at;
    }
    return true;
}

static void check_batch(const data *d, const att_history_batch *b, bool masked)
{
    int64_t at = 0;
    for (int64_t i = 0; i < b->n; i++) {
        bool found = false;
        assert_int_equal(b->offsets[i + 1] - b->offsets[i], 5);
        for (int64_t u = 0; u < 100 && !found; u++) { /* some have the same last items */
            const att_history h = att_holdout_train(d->holdout, u);
            int64_t end = at;
            found = is_of_user(b, i, &h, masked, &end);
            at = found ? end : at;
        }
        assert_true(found);
    }
    assert_int_equal(at, b->positions);
}

static void batches_are_of_the_last_items(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    data d = make_data(ctx, 100, ITEMS, NULL, 0);
    for (int masked = 0; masked < 2; masked++) {
        const att_history_source source = source_of(&d, masked);
        att_history_batches *all;
        const att_history_batch *b;
        int64_t histories = 0, positions = 0;
        assert_int_equal(att_history_batches_new(ctx, &source, &all), ATT_OK);
        assert_int_equal(att_history_batches_count(all), 100);
        assert_int_equal(att_history_batches_begin(all, 2), 7);
        for (int64_t i = 0; i < 7; i++) {
            assert_int_equal(att_history_batches_get(all, i, 0, att_history_batches_size(all, i), &b), ATT_OK);
            check_batch(&d, b, masked);
            histories += b->n;
            positions += b->positions;
        }
        assert_int_equal(histories, 100);
        /* masked: of 3/4 of the histories 0.4 of 5 items, of 1/4 one; 100 histories are off by 5 standard errors of
         * less than 1.3 each */
        assert_true(masked ? fabs((double)positions / 100 - (0.75 * (2 + pow(0.6, 5)) + 0.25)) < 5 * 0.13
                           : positions == 500);
        att_history_batches_free(all);
    }
    data_free(&d);
    att_close(ctx);
}

/* Of 4,000 items a user has not two, and one of these may not be drawn. */
static void negatives_are_found_among_few(void **state)
{
    (void)state;
    enum { N = 4000, LEFT = 7, KEPT = 70 };
    static char item[N][8];
    static const char *user[N], *items[N];
    static int32_t drawn[N - 1];
    att_ctx *ctx = check_open(NULL, 1);
    att_history_batches *all;
    const att_history_batch *b;
    data d;
    for (int i = 0, n = 0; i < N; i++) {
        snprintf(item[i], sizeof item[i], "%d", i);
        items[i] = item[i];
        user[i] = i == LEFT || i == KEPT ? "other" : "u";
        if (i != KEPT)
            drawn[n++] = i;
    }
    const att_interactions_options o = {.size = sizeof o, .items = items, .n_items = N};
    assert_int_equal(att_interactions_new(ctx, N, user, items, NULL, &o, &d.log), ATT_OK);
    assert_int_equal(att_holdout_new(d.log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE), &d.holdout),
                     ATT_OK);
    const att_history_source source = {.data = d.holdout,
                                       .users = 1,
                                       .items = N,
                                       .max = 5,
                                       .negatives = 20,
                                       .drawn = drawn,
                                       .n_drawn = N - 1,
                                       .batch = 1};
    assert_int_equal(att_history_batches_new(ctx, &source, &all), ATT_OK);
    assert_int_equal(att_history_batches_begin(all, 0), 1);
    assert_int_equal(att_history_batches_get(all, 0, 0, 1, &b), ATT_OK);
    assert_int_equal(b->positions, 5);
    for (int i = 0; i < 5 * 21; i++)
        assert_true(i % 21 == 0 || b->candidates[i] == LEFT);
    att_history_batches_free(all);
    data_free(&d);
    att_close(ctx);
}

/* ---- what cannot be trained on */

static void check_refused(att_ctx *ctx, const att_recommender_training_options *o, const char *words)
{
    att_training *t;
    const att_status e = att_recommender_training_open(ctx, path_of("refused"), &common, o, &t);
    if (!e || t || !strstr(att_error(ctx), words))
        fail_msg("expected \"%s\", got status %d: %s", words, e, att_error(ctx));
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    data d = make_data(ctx, 20, ITEMS, NULL, 0);
    const att_recommender_training_options good = options_of(&ways[3], d.holdout);
    att_recommender_training_options o = good;
    check_refused(ctx, &o, "one of options.settings and options.model is needed, but both are NULL");
    o.settings = ways[3].settings;
    o.calibration = 1.5;
    check_refused(ctx, &o, "options.calibration is 1.5, expected 0 to 1");
    o.calibration = 0.5;
    o.dropout = 1;
    check_refused(ctx, &o, "options.dropout is 1, expected [0, 1)");
    o.dropout = 0;
    o.loss = ATT_ITEM_LOSS_BINARY;
    check_refused(ctx, &o, "options.calibration is 0.5, but options.loss is not gBCE");
    o.calibration = 0;
    o.loss = ATT_ITEM_LOSS_SOFTMAX;
    check_refused(ctx, &o, "options.negatives is 8, but the softmax over all items");
    o.negatives = 0;
    o.mask_share = 0.5;
    check_refused(ctx, &o, "options.mask_share is 0.5, but the model is attend-sasrec, which masks no items");
    o = good;
    o.settings = ways[3].settings;
    o.negatives = ITEMS;
    check_refused(ctx, &o, "options.negatives is 40, but of gBCE it can be at most the number of other items, 33");
    o = good;
    o.settings = "{\"model_type\": \"attend-sasrec\", \"hidden\": 3}";
    check_refused(ctx, &o, "hidden");
    /* one user has all items: nothing else can be drawn */
    const char *const user[] = {"u", "u", "u", "u"}, *const item[] = {"a", "b", "b", "a"};
    data small;
    assert_int_equal(att_interactions_new(ctx, 4, user, item, NULL, NULL, &small.log), ATT_OK);
    assert_int_equal(att_holdout_new(small.log, NULL, &small.holdout), ATT_OK);
    att_training *t = open_training(ctx, "all", &ways[2], small.holdout, false);
    att_training_report r = {.size = sizeof r};
    assert_int_equal(att_training_step(t, &r), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "user \"u\" has all 2 items in training"));
    att_training_free(t);
    data_free(&small);
    /* no user has two items for training */
    assert_int_equal(att_interactions_new(ctx, 3, user, item, NULL, NULL, &small.log), ATT_OK);
    assert_int_equal(att_holdout_new(small.log, NULL, &small.holdout), ATT_OK);
    o = options_of(&ways[0], small.holdout);
    o.settings = ways[0].settings;
    check_refused(ctx, &o, "has no user with two actions for training");
    data_free(&small);
    data_free(&d);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_popularity_cannot_find_is_learned),
        cmocka_unit_test(further_items_keep_what_is_trained),
        cmocka_unit_test(items_cannot_be_added_while_a_training_is_open),
        cmocka_unit_test(new_items_are_found_by_their_content),
        cmocka_unit_test(batches_are_of_the_last_items),
        cmocka_unit_test(negatives_are_found_among_few),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
