/* Baselines: scores of NumPy, on a made-up log and on ml-100k; what is refused. */
#include "fixtures/interactions.h"
#include "fixtures/progress.h"
#include "fixtures/real_files.h"

#include "attend_util.h"

#include <math.h>

enum { MAX_ITEMS = 128, WIDTH = 3, CASES = 6 };

static att_baseline *baseline(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *options)
{
    att_baseline *b;
    if (att_baseline_new(h, kind, options, &b))
        fail_msg("%s", att_error(ctx));
    return b;
}

/* As make_ranking.py's vector */
static void fill_vectors(float *x, int64_t items)
{
    for (int i = 0; i < items; i++) {
        const bool none = i % 6 == 5;
        x[i * WIDTH] = none ? 0 : (float)(1 + i % 3);
        x[i * WIDTH + 1] = none ? 0 : (float)(i % 5 - 2);
        x[i * WIDTH + 2] = none ? 0 : (float)(i % 4 - 1);
    }
}

static void score_history(const att_baseline *b, const int32_t *items, int64_t n, int64_t n_items, float *scores)
{
    const att_scorer s = att_baseline_scorer(b);
    const int64_t offsets[] = {0, n};
    if (s.score(s.user, items, offsets, 1, n_items, scores))
        fail_msg("%s", att_error(ctx));
}

/* Scores of the first cases are those of the golden lines SPLIT-NAME-USER. */
static void assert_scores(const att_holdout *h, const att_baseline *b, const char *name, double tolerance)
{
    const int64_t n_items = describe_log(att_holdout_log(h)).items;
    for (int64_t i = 0; i < CASES; i++) {
        att_holdout_case c;
        float scores[MAX_ITEMS];
        double x[MAX_ITEMS];
        char line[64];
        assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, i, &c), ATT_OK);
        snprintf(line, sizeof line, "%s-%d", name, (int)c.user);
        assert_int_equal(golden_line(GOLDEN_RANKING, line, x, MAX_ITEMS), n_items);
        score_history(b, c.history.items, c.history.count, n_items, scores);
        for (int64_t k = 0; k < n_items; k++)
            if (!(fabs(scores[k] - x[k]) <= tolerance))
                fail_msg("%s, item %d: %.9g, not %.9g", line, (int)k, scores[k], x[k]);
    }
}

static void assert_baselines(const att_holdout *h, const char *split)
{
    float vectors[MAX_ITEMS * WIDTH];
    char name[64];
    const int64_t n_items = describe_log(att_holdout_log(h)).items;
    fill_vectors(vectors, n_items);
    att_baseline *near =
        baseline(h, ATT_BASELINE_NEIGHBORS, ATT_OPTIONS(att_baseline_options, .neighbors = 4, .decay = 0.7));
    att_baseline *content = baseline(
        h, ATT_BASELINE_CONTENT, ATT_OPTIONS(att_baseline_options, .decay = 0.9, .vectors = vectors, .width = WIDTH));
    snprintf(name, sizeof name, "%s-neighbors", split);
    assert_scores(h, near, name, 0); /* the same operations in the same types and order */
    snprintf(name, sizeof name, "%s-content", split);
    /* Vectors of three numbers and their mean over up to 40 items are rounded to float, as are weights: cosines are off
     * by some roundings each. */
    assert_scores(h, content, name, 40 * FLT_EPSILON);
    att_baseline_free(content);
    att_baseline_free(near);
}

static void scores_are_those_of_numpy(void **state)
{
    (void)state;
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    att_holdout *h = hold_out(log, NULL);
    assert_baselines(h, "leave-one-out");
    att_holdout_free(h);
    h = hold_out_by_time(log);
    assert_baselines(h, "time");
    att_holdout_free(h);
    att_interactions_free(log);
}

static void an_empty_history_gets_popular_items(void **state)
{
    (void)state;
    att_interactions *log = log_of("abcabcabc", "xxyyyyzzz"); /* training: x x y, each user's first */
    att_holdout *h = hold_out(log, NULL);
    const float vectors[] = {1, 1, 1};
    const att_baseline_options content = {.size = sizeof content, .vectors = vectors, .width = 1};
    float scores[3];
    for (int kind = ATT_BASELINE_POPULARITY; kind <= ATT_BASELINE_CONTENT; kind++) {
        att_baseline *b = baseline(h, (att_baseline_kind)kind, kind == ATT_BASELINE_CONTENT ? &content : NULL);
        score_history(b, NULL, 0, 3, scores);
        assert_true(scores[0] > scores[1] && scores[1] > scores[2]);
        att_baseline_free(b);
    }
    att_holdout_free(h);
    att_interactions_free(log);
}

/* Of a user with more than 1,000 items the last 1,000 count: "first" is then no neighbor of "last". */
static void of_a_long_history_the_last_thousand_items_count(void **state)
{
    (void)state;
    enum { ACTIONS = 1203 };
    static char text[ACTIONS][16];
    static const char *users[ACTIONS], *items[ACTIONS];
    att_interactions *log;
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        users[i] = "u";
        items[i] = text[i];
    }
    assert_int_equal(att_interactions_new(ctx, ACTIONS, users, items, NULL, NULL, &log), ATT_OK);
    att_holdout *h = hold_out(log, NULL);
    att_baseline *b = baseline(h, ATT_BASELINE_NEIGHBORS, ATT_OPTIONS(att_baseline_options, .neighbors = 2000));
    static float scores[ACTIONS];
    score_history(b, (const int32_t[]){ACTIONS - 3}, 1, ACTIONS, scores);
    for (int i = 0; i < ACTIONS; i++)
        assert_int_equal(scores[i] > 0, i >= ACTIONS - 2 - 1000 && i < ACTIONS - 3);
    att_baseline_free(b);
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- real data */

static void assert_golden_measures(const att_holdout *h, const att_baseline *b, const char *name)
{
    const att_scorer s = att_baseline_scorer(b);
    att_ranking r = {.size = sizeof r};
    double x[16];
    assert_int_equal(
        att_rank(h, &s, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .exclude_seen = true), &r),
        ATT_OK);
    assert_int_equal(golden_line(GOLDEN_RANKING, name, x, 16), 13);
    const double found[] = {(double)r.cases, (double)r.repeats, r.hr.mean,   r.hr.low,   r.hr.high,
                            r.ndcg.mean,     r.ndcg.low,        r.ndcg.high, r.mrr.mean, r.mrr.low,
                            r.mrr.high,      r.coverage,        r.popularity};
    for (int i = 0; i < 13; i++) /* sums of 943 numbers in another order */
        if (!(fabs(found[i] - x[i]) <= 1e-11 * fabs(x[i])))
            fail_msg("%s, number %d: %.17g, not %.17g", name, i, found[i], x[i]);
}

static void measures_on_ml_100k_are_those_of_numpy(void **state)
{
    (void)state;
    const char *path = data_file("sasrec/ml-100k/ml-100k.inter");
    if (!path) {
        print_message("skipped: sasrec/ml-100k/ml-100k.inter is not in ATTEND_DATA or ../shared/data\n");
        skip();
    }
    att_interactions *log = open_log(path, NULL);
    att_holdout *h = hold_out(log, NULL);
    att_baseline *popular = baseline(h, ATT_BASELINE_POPULARITY, NULL),
                 *near = baseline(h, ATT_BASELINE_NEIGHBORS, NULL);
    assert_golden_measures(h, popular, "ml-100k-popularity");
    assert_golden_measures(h, near, "ml-100k-neighbors");
    att_baseline_free(popular);
    att_baseline_free(near);
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- what is refused */

static void assert_refused(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *options,
                           const char *says)
{
    att_baseline *b;
    if (!att_baseline_new(h, kind, options, &b) || b)
        fail_msg("accepted, instead of: %s", says);
    check_message(ctx, says);
}

#define REFUSED(kind, says, ...) assert_refused(h, kind, ATT_OPTIONS(att_baseline_options, __VA_ARGS__), says)

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    att_interactions *log = log_of("aaabbb", "xyzxyz");
    att_holdout *h = hold_out(log, NULL);
    const float vectors[] = {1, NAN, 1};
    REFUSED((att_baseline_kind)5, "kind is 5", .decay = 1);
    REFUSED(ATT_BASELINE_NEIGHBORS, "decay 1.5", .decay = 1.5);
    REFUSED(ATT_BASELINE_NEIGHBORS, "decay nan", .decay = NAN);
    REFUSED(ATT_BASELINE_NEIGHBORS, "neighbors is -3", .neighbors = -3);
    REFUSED(ATT_BASELINE_NEIGHBORS, "vectors are for ATT_BASELINE_CONTENT only", .vectors = vectors, .width = 1);
    REFUSED(ATT_BASELINE_CONTENT, "needs vectors, which are NULL", .width = 1);
    REFUSED(ATT_BASELINE_CONTENT, "of a width, 0", .vectors = vectors);
    REFUSED(ATT_BASELINE_CONTENT, "the vector of item y has numbers that are not finite", .vectors = vectors,
            .width = 1);
    att_baseline *b = baseline(h, ATT_BASELINE_POPULARITY, NULL);
    const att_scorer s = att_baseline_scorer(b);
    float scores[4];
    const int64_t offsets[] = {0, 1}, descending[] = {0, -1}, later[] = {1, 1};
    assert_int_equal(s.score(s.user, (const int32_t[]){0}, offsets, 1, 4, scores), ATT_ERR_ARGUMENT);
    check_message(ctx, "scores of 4 items, but the baseline's log has 3");
    assert_int_equal(s.score(s.user, (const int32_t[]){3}, offsets, 1, 3, scores), ATT_ERR_ARGUMENT);
    check_message(ctx, "items[0] is 3, but the log has items 0 to 2");
    assert_int_equal(s.score(s.user, (const int32_t[]){0}, descending, 1, 3, scores), ATT_ERR_ARGUMENT);
    assert_int_equal(s.score(s.user, (const int32_t[]){0}, later, 1, 3, scores), ATT_ERR_ARGUMENT);
    assert_null(att_baseline_scorer(NULL).score);
    att_baseline_free(b);
    att_holdout_free(h);
    att_interactions_free(log);
}

static void counting_neighbors_is_cancelled(void **state)
{
    (void)state;
    static int cancel = 0;
    static const char *const users[] = {"u", "u", "v", "v"}, *const items[] = {"x", "y", "x", "y"};
    att_ctx *other;
    att_interactions *log;
    att_holdout *h;
    att_baseline *b;
    assert_int_equal(att_open(&other, ATT_OPTIONS(att_config, .n_threads = 2, .cancel = &cancel)), ATT_OK);
    assert_int_equal(att_interactions_new(other, 4, users, items, NULL, NULL, &log), ATT_OK);
    assert_int_equal(att_holdout_new(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE), &h), ATT_OK);
    cancel = 1;
    assert_int_equal(att_baseline_new(h, ATT_BASELINE_NEIGHBORS, NULL, &b), ATT_ERR_CANCELLED);
    assert_null(b);
    att_holdout_free(h);
    att_interactions_free(log);
    att_close(other);
}

static att_status count_in_passes(void *h, att_progress_fn progress, void *user)
{
    att_baseline *b;
    const att_status s = att_baseline_new(h, ATT_BASELINE_NEIGHBORS,
                                          ATT_OPTIONS(att_baseline_options, .progress = progress, .user = user), &b);
    assert_true(!s == (b != NULL));
    att_baseline_free(b);
    return s;
}

static void progress_may_stop_counting(void **state)
{
    (void)state;
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    att_holdout *h = hold_out(log, NULL);
    assert_progress(ctx, count_in_passes, h);
    att_holdout_free(h);
    att_interactions_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_numpy),
        cmocka_unit_test(an_empty_history_gets_popular_items),
        cmocka_unit_test(of_a_long_history_the_last_thousand_items_count),
        cmocka_unit_test(measures_on_ml_100k_are_those_of_numpy),
        cmocka_unit_test(counting_neighbors_is_cancelled),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(progress_may_stop_counting),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
