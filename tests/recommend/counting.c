/* Models that count: EASE against NumPy and against its definition, their folders and lists, what they do not have. */
#include "fixtures/check.h"
#include "fixtures/interactions.h"
#include "fixtures/progress.h"
#include "fixtures/real_files.h"

#include "attend_util.h"

enum { MAX_ITEMS = 128, CASES = 6 };

static const char *const kinds[] = {"{\"model_type\": \"attend-popularity\"}",
                                    "{\"model_type\": \"attend-neighbors\", \"neighbors\": 5, \"decay\": 0.7}",
                                    "{\"model_type\": \"attend-ease\", \"l2\": 2, \"decay\": 0.7}"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static att_recommender *fit(const att_holdout *h, const char *settings)
{
    att_recommender *m;
    if (att_recommender_fit(h, settings, NULL, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static void score_history(const att_recommender *m, att_history h, int64_t n_items, float *scores)
{
    const att_scorer s = att_recommender_scorer(m);
    if (s.score(s.user, h.items, (const int64_t[]){0, h.count}, 1, n_items, scores))
        fail_msg("%s", att_error(ctx));
}

/* ---- EASE */

/* The inverse of 51 items with condition number 56 has errors of some condition number times roundings. Each score is a
 * sum of up to 30 of its numbers, which are below 1, divided by the diagonal, which is above 1 / 60. */
static const double ease_tolerance = 56 * 30 * FLT_EPSILON;

static void assert_ease(const att_holdout *h, const char *split, const char *decay)
{
    char settings[96], line[64];
    const int64_t n_items = describe_log(att_holdout_log(h)).items;
    snprintf(settings, sizeof settings, "{\"model_type\": \"attend-ease\", \"l2\": 2, \"decay\": %s}", decay);
    att_recommender *m = fit(h, settings);
    for (int64_t i = 0; i < CASES; i++) {
        att_holdout_case c;
        float scores[MAX_ITEMS];
        double x[MAX_ITEMS];
        assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, i, &c), ATT_OK);
        snprintf(line, sizeof line, "%s-ease-%s-%d", split, decay, (int)c.user);
        assert_int_equal(golden_line(GOLDEN_RANKING, line, x, MAX_ITEMS), n_items);
        score_history(m, c.history, n_items, scores);
        for (int64_t k = 0; k < n_items; k++)
            if (isinf(x[k]) ? !(scores[k] <= -INFINITY) : !(fabs(scores[k] - x[k]) <= ease_tolerance))
                fail_msg("%s, item %d: %.9g, not %.9g", line, (int)k, (double)scores[k], x[k]);
    }
    att_recommender_free(m);
}

static void scores_of_ease_are_those_of_numpy(void **state)
{
    (void)state;
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    att_holdout *h = hold_out(log, NULL);
    assert_ease(h, "leave-one-out", "1");
    assert_ease(h, "leave-one-out", "0.7");
    att_holdout_free(h);
    h = hold_out_by_time(log);
    assert_ease(h, "time", "1");
    assert_ease(h, "time", "0.7");
    att_holdout_free(h);
    att_interactions_free(log);
}

/* Makes a log with more items than a tile of the inversion has rows, and than several of its blocks have columns. */
enum { MANY = 700, USERS = 300, EACH = 12 };
static att_interactions *wide_log(void)
{
    static char user_text[USERS * EACH + MANY][8], item_text[USERS * EACH + MANY][8];
    static const char *users[USERS * EACH + MANY], *items[USERS * EACH + MANY];
    att_interactions *log;
    for (int i = 0; i < USERS * EACH + MANY; i++) {
        const int item = i < MANY ? i : (int)(check_bits(5, (uint64_t)i) % MANY); /* each item is in the log */
        snprintf(user_text[i], sizeof user_text[i], "u%d", i % USERS);
        snprintf(item_text[i], sizeof item_text[i], "i%d", item);
        users[i] = user_text[i];
        items[i] = item_text[i];
    }
    assert_int_equal(att_interactions_new(ctx, USERS * EACH + MANY, users, items, NULL, NULL, &log), ATT_OK);
    return log;
}

/* The weights B solve (X^T X + l2 I) B = X^T X with columns that the zero diagonal of B shifts: off the diagonal, the
 * gradient of the squared error is zero, for each column j: sum_k G[i, k] B[k, j] = X^T X[i, j] for i != j, where G is
 * X^T X + l2 I. */
static void weights_of_ease_solve_the_regression(void **state)
{
    (void)state;
    static float b[MANY][MANY];
    static double g[MANY][MANY];
    const double l2 = 3;
    att_interactions *log = wide_log();
    att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE));
    att_recommender *m = fit(h, "{\"model_type\": \"attend-ease\", \"l2\": 3, \"decay\": 1}");
    for (int64_t u = 0; u < USERS; u++) {
        const att_history x = att_holdout_train(h, u);
        bool has[MANY] = {false};
        for (int64_t i = 0; i < x.count; i++)
            has[x.items[i]] = true;
        for (int i = 0; i < MANY; i++)
            for (int k = 0; has[i] && k < MANY; k++)
                g[i][k] += has[k];
    }
    for (int32_t i = 0; i < MANY; i++)
        score_history(m, (att_history){.items = &i, .count = 1}, MANY, b[i]);
    double worst = 0;
    for (int j = 0; j < MANY; j += 7) {
        assert_true(b[j][j] == 0);
        for (int i = 0; i < MANY; i++) {
            double sum = l2 * (double)b[i][j] - g[i][j];
            for (int k = 0; k < MANY; k++)
                sum += g[i][k] * (double)b[k][j];
            worst = fmax(worst, i == j ? 0 : fabs(sum));
        }
    }
    /* A residual is G times errors of B. G's rows have sums below 300 and its condition number is below 100; B's
     * numbers are below 1. */
    assert_true(worst > 0 && worst <= 300 * FLT_EPSILON * 100);
    att_recommender_free(m);
    att_holdout_free(h);
    att_interactions_free(log);
}

static void measures_of_ease_on_ml_100k_are_those_of_numpy(void **state)
{
    (void)state;
    const char *path = data_file("sasrec/ml-100k/ml-100k.inter");
    if (!path) {
        print_message("skipped: sasrec/ml-100k/ml-100k.inter is not in ATTEND_DATA or ../shared/data\n");
        skip();
    }
    att_interactions *log = open_log(path, NULL);
    att_holdout *h = hold_out(log, NULL);
    att_recommender *m = fit(h, "{\"model_type\": \"attend-ease\", \"decay\": 1}");
    const att_scorer s = att_recommender_scorer(m);
    att_ranking r = {.size = sizeof r};
    double x[16];
    assert_int_equal(
        att_rank(h, &s, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .exclude_seen = true), &r),
        ATT_OK);
    assert_int_equal(golden_line(GOLDEN_RANKING, "ml-100k-ease", x, 16), 13);
    /* A score that is rounded otherwise may exchange two items for one user of 943. */
    check_near(x[2], r.hr.mean, 1.0 / 943, "HR@10");
    check_near(x[5], r.ndcg.mean, 1.0 / 943, "NDCG@10");
    att_recommender_free(m);
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- folders and lists */

/* Asserts that two models have the same scores of the first histories of a test, or nearly. */
static void assert_same(const att_recommender *a, const att_recommender *b, const att_holdout *h, double tolerance)
{
    const int64_t n_items = describe_log(att_holdout_log(h)).items;
    for (int64_t i = 0; i < CASES; i++) {
        float x[MAX_ITEMS], y[MAX_ITEMS];
        att_holdout_case c;
        assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, i, &c), ATT_OK);
        score_history(a, c.history, n_items, x);
        score_history(b, c.history, n_items, y);
        for (int64_t k = 0; k < n_items; k++)
            assert_true(x[k] == y[k] || fabs((double)x[k] - (double)y[k]) <= tolerance);
    }
}

static void a_folder_has_the_model(void **state)
{
    (void)state;
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    att_holdout *h = hold_out(log, NULL);
    for (int k = 0; k < KINDS; k++)
        for (int half = 0; half < 2; half++) {
            test_folder folder = folder_new();
            att_recommender *m = fit(h, kinds[k]), *again;
            att_recommender_info is = {.size = sizeof is}, was = {.size = sizeof was};
            for (int i = 0; i < 2; i++) { /* the second time it replaces itself */
                if (att_recommender_write(m, folder.path, half ? ATT_F16 : ATT_F32))
                    fail_msg("%s", att_error(ctx));
            }
            if (att_recommender_open(ctx, folder.path, NULL, &again))
                fail_msg("%s", att_error(ctx));
            assert_int_equal(att_recommender_describe(m, &was), ATT_OK);
            assert_int_equal(att_recommender_describe(again, &is), ATT_OK);
            assert_string_equal(is.type, was.type);
            assert_true(is.items == was.items && is.neighbors == was.neighbors && is.decay == was.decay &&
                        is.l2 == was.l2 && is.hidden == 0);
            assert_string_equal(att_recommender_item(again, 3), att_interactions_item(log, 3));
            /* f16 has 11 bits: 30 numbers up to 1, each rounded by 2^-12 of itself */
            assert_same(m, again, h, half ? 30 * 0x1p-12 : 0);
            att_recommender_free(again);
            att_recommender_free(m);
            folder_remove(&folder);
        }
    att_holdout_free(h);
    att_interactions_free(log);
}

/* A list has the items with the highest scores, in the order of ties, without seen and denied ones. */
static void lists_are_those_of_the_scores(void **state)
{
    (void)state;
    enum { K = 8 };
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    att_holdout *h = hold_out(log, NULL);
    const int64_t n_items = describe_log(log).items;
    const int32_t denied[] = {0, 5};
    for (int k = 0; k < KINDS; k++) {
        att_recommender *m = fit(h, kinds[k]);
        for (int64_t i = 0; i < CASES; i++) {
            float scores[MAX_ITEMS];
            att_holdout_case c;
            att_recommendation r;
            assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, i, &c), ATT_OK);
            score_history(m, c.history, n_items, scores);
            for (int64_t s = 0; s < c.history.count; s++)
                scores[c.history.items[s]] = -INFINITY;
            scores[denied[0]] = scores[denied[1]] = -INFINITY;
            assert_int_equal(att_recommend(m, 1, c.history.items, (const int64_t[]){0, c.history.count},
                                           ATT_OPTIONS(att_recommend_options, .k = K, .exclude_seen = true,
                                                       .deny = denied, .n_deny = 2),
                                           &r),
                             ATT_OK);
            for (int n = 0; n < K; n++) {
                int best = 0;
                for (int x = 1; x < n_items; x++)
                    best = scores[x] > scores[best] ? x : best;
                assert_int_equal(r.items[n], best);
                assert_true(r.scores[n] == scores[best] && !r.by_popular[0]);
                scores[best] = -INFINITY;
            }
            att_recommendation_free(ctx, &r);
        }
        att_recommender_free(m);
    }
    att_holdout_free(h);
    att_interactions_free(log);
}

/* a and b have two common users of two and three; c has one with b. */
static void similar_items_are_those_of_the_same_users(void **state)
{
    (void)state;
    att_interactions *log = log_of("uuvvwwx", "abababc");
    att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE));
    att_recommender *m = fit(h, kinds[1]);
    att_recommendation r;
    assert_int_equal(att_recommender_similar(m, 0, NULL, &r), ATT_OK);
    assert_true(r.items[0] == 1 && r.items[1] == -1 && fabsf(r.scores[0] - 1) <= FLT_EPSILON);
    att_recommendation_free(ctx, &r);
    assert_int_equal(att_recommender_similar(m, 2, NULL, &r), ATT_OK);
    assert_int_equal(r.items[0], -1);
    att_recommendation_free(ctx, &r);
    att_recommender_free(m);
    m = fit(h, kinds[2]);
    /* X^T X + 2 I = [5 3 0; 3 5 0; 0 0 3]: P = [5 -3; -3 5] / 16, B[a, b] = 3 / 5 */
    assert_int_equal(att_recommender_similar(m, 0, NULL, &r), ATT_OK);
    assert_true(r.items[0] == 1 && fabsf(r.scores[0] - 0.6f) <= 4 * FLT_EPSILON && r.items[1] == 2);
    assert_true(r.scores[1] == 0);
    att_recommendation_free(ctx, &r);
    att_recommender_free(m);
    m = fit(h, kinds[0]);
    assert_int_equal(att_recommender_similar(m, 0, NULL, &r), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "attend-popularity has no similar items");
    att_recommender_free(m);
    att_holdout_free(h);
    att_interactions_free(log);
}

static void an_item_without_an_action_is_near_to_none(void **state)
{
    (void)state;
    static const char *const users[] = {"u", "u", "v", "v"}, *const items[] = {"x", "y", "x", "y"},
                             *const first[] = {"cold"};
    att_interactions *log;
    att_recommendation r;
    assert_int_equal(att_interactions_new(ctx, 4, users, items, NULL,
                                          ATT_OPTIONS(att_interactions_options, .items = first, .n_items = 1), &log),
                     ATT_OK);
    att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE));
    for (int k = 1; k < KINDS; k++) {
        att_recommender *m = fit(h, kinds[k]);
        assert_int_equal(att_recommender_similar(m, 0, NULL, &r), ATT_ERR_ARGUMENT);
        check_message(ctx, "item \"cold\" had no action in training");
        assert_int_equal(att_recommend(m, 1, (const int32_t[]){1}, (const int64_t[]){0, 1}, NULL, &r), ATT_OK);
        assert_int_equal(r.items[0], 2);
        assert_int_equal(r.items[2], k == 1 ? 0 : -1); /* neighbors rank it last, EASE not at all */
        att_recommendation_free(ctx, &r);
        const att_status s = att_recommend(m, 1, (const int32_t[]){1}, (const int64_t[]){0, 1},
                                           ATT_OPTIONS(att_recommend_options, .new_share = 0.5), &r);
        assert_int_equal(s, k == 1 ? ATT_OK : ATT_ERR_UNSUPPORTED);
        if (s)
            check_message(ctx, "has no scores of items without an action in training");
        else
            assert_int_equal(r.items[1], 0); /* half of the places are for new items */
        att_recommendation_free(ctx, &r);
        att_recommender_free(m);
    }
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- what is refused */

static void assert_refused(att_status s, const char *says)
{
    if (s != ATT_ERR_UNSUPPORTED)
        fail_msg("%d: %s", s, att_error(ctx));
    check_message(ctx, says);
}

static void what_needs_vectors_is_refused(void **state)
{
    (void)state;
    static const int32_t item = 0;
    static const int64_t offsets[] = {0, 1};
    static const char *const more[] = {"new"};
    att_interactions *log = log_of("aaabbb", "xyzxyz");
    att_holdout *h = hold_out(log, NULL);
    float x[8];
    att_trace *trace;
    att_training *training;
    att_recommender *other;
    att_tape *t;
    const att_schedule rates = {.size = sizeof rates, .max_rate = 1e-3};
    const att_training_options common = {.size = sizeof common, .schedule = &rates};
    test_folder folder = folder_new();
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (int k = 0; k < KINDS; k++) {
        att_recommender *m = fit(h, kinds[k]);
        assert_refused(att_recommender_vectors(m, x), "has no vectors of items: it counts the actions of a log");
        assert_refused(att_recommender_embed(m, 1, &item, offsets, NULL, x), "has no vectors of histories");
        assert_refused(att_recommender_trace(m, 1, &item, NULL, &trace), "has no attention");
        assert_refused(att_recommender_add_items(m, 1, more, NULL, 1), "has no vectors of items");
        assert_refused(att_recommender_training_new(
                           m, &common, ATT_OPTIONS(att_recommender_training_options, .data = h), &training),
                       "has no weights that are trained");
        assert_null(att_recommender_table(t, m));
        att_tape_reset(t);
        assert_null(att_recommender_apply(t, m, &item, offsets, 1, NULL));
        att_tape_reset(t);
        assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
        assert_refused(att_recommender_open_for_training(ctx, folder.path, NULL, &other),
                       "has no weights that are trained");
        assert_null(other);
        att_recommender_free(m);
    }
    att_tape_free(t);
    folder_remove(&folder);
    att_holdout_free(h);
    att_interactions_free(log);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *says;
    } wrong[] = {
        {"{\"model_type\": \"attend-sasrec\"}", "attend-sasrec is trained, not counted: att_recommender_training_open"},
        {"{\"model_type\": \"attend-ease\", \"neighbors\": 3}", "\"neighbors\""},
        {"{\"model_type\": \"attend-ease\", \"l2\": 0}", "\"l2\""},
        {"{\"model_type\": \"attend-neighbors\", \"decay\": 1.5}", "\"decay\""},
        {"{\"model_type\": \"attend-neighbors\", \"neighbors\": 0}", "\"neighbors\""},
        {"{\"model_type\": \"attend-popularity\", \"decay\": 1}", "\"decay\""},
    };
    att_interactions *log = log_of("aaabbb", "xyzxyz");
    att_holdout *h = hold_out(log, NULL);
    att_recommender *m;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (!att_recommender_fit(h, wrong[i].settings, NULL, &m) || m)
            fail_msg("accepted: %s", wrong[i].settings);
        check_message(ctx, wrong[i].says);
    }
    const char *const ids[] = {"x"};
    assert_int_equal(att_recommender_new(ctx, kinds[2], 1, ids, NULL, 1, &m), ATT_ERR_ARGUMENT);
    check_message(ctx, "attend-ease counts the actions of a log: att_recommender_fit");
    att_holdout_free(h);
    att_interactions_free(log);
}

static void damaged_folders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *says;
    } wrong[] = {
        {"config.json", "{\"model_type\": \"attend-ease\", \"num_items\": 40000}",
         "for 40000 they would take 6.0 GiB, and at most 32768 are supported; leave out rare items, or use "
         "attend-neighbors"},
        {"config.json", "{\"model_type\": \"attend-ease\", \"num_items\": 3}", "ease.weight"},
        {"config.json", "{\"model_type\": \"attend-neighbors\", \"num_items\": 2}", "counts"},
        {"config.json", "{\"model_type\": \"attend-popularity\", \"num_items\": 3, \"l2\": 3}", "\"l2\""},
    };
    att_interactions *log = log_of("aaabbb", "xyzxyz");
    att_holdout *h = hold_out(log, NULL);
    att_recommender *m = fit(h, kinds[1]), *opened;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_folder folder = folder_new();
        assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
        folder_write(&folder, wrong[i].file, wrong[i].text);
        if (!att_recommender_open(ctx, folder.path, NULL, &opened) || opened)
            fail_msg("accepted: %s", wrong[i].text);
        check_message(ctx, wrong[i].says);
        folder_remove(&folder);
    }
    att_recommender_free(m);
    att_holdout_free(h);
    att_interactions_free(log);
}

/* A list of neighbors with an item that the model does not have is not followed. */
static void damaged_lists_are_refused(void **state)
{
    (void)state;
    char path[128];
    att_recommender *opened;
    att_interactions *log = log_of("aaabbb", "xyzxyz");
    att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE));
    att_recommender *m = fit(h, kinds[1]);
    test_folder folder = folder_new();
    assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", folder.path);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    char header[1024] = "";
    uint64_t bytes;
    assert_int_equal(fread(&bytes, 8, 1, f), 1);
    assert_int_equal(fread(header, 1, bytes < 1000 ? bytes : 1000, f), bytes);
    const char *at = strstr(strstr(header, "\"neighbors.item\""), "\"data_offsets\":[");
    assert_non_null(at);
    assert_int_equal(fseek(f, (long)(8 + bytes) + strtol(at + 16, NULL, 10), SEEK_SET), 0);
    assert_int_equal(fwrite(&(const int32_t){3}, 4, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(att_recommender_open(ctx, folder.path, NULL, &opened), ATT_ERR_FORMAT);
    check_message(ctx, "the lists of neighbors are damaged");
    att_recommender_free(m);
    folder_remove(&folder);
    att_holdout_free(h);
    att_interactions_free(log);
}

static att_status fit_ease(void *h, att_progress_fn progress, void *user)
{
    att_recommender *m;
    const att_status s =
        att_recommender_fit(h, kinds[2], ATT_OPTIONS(att_call_options, .progress = progress, .user = user), &m);
    assert_true(!s == (m != NULL));
    att_recommender_free(m);
    return s;
}

static void progress_may_stop_the_inversion(void **state)
{
    (void)state;
    att_interactions *log = wide_log();
    att_holdout *h = hold_out(log, NULL);
    assert_progress(ctx, fit_ease, h);
    att_holdout_free(h);
    att_interactions_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_ease_are_those_of_numpy),
        cmocka_unit_test(weights_of_ease_solve_the_regression),
        cmocka_unit_test(measures_of_ease_on_ml_100k_are_those_of_numpy),
        cmocka_unit_test(a_folder_has_the_model),
        cmocka_unit_test(lists_are_those_of_the_scores),
        cmocka_unit_test(similar_items_are_those_of_the_same_users),
        cmocka_unit_test(an_item_without_an_action_is_near_to_none),
        cmocka_unit_test(what_needs_vectors_is_refused),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(damaged_lists_are_refused),
        cmocka_unit_test(progress_may_stop_the_inversion),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
