/* Measures: ranks and means of Python, among all items and among samples; ties by item, the same ranks in any batch and
 * for any number of threads; what makes no sense is refused. */
// labels: threads
#include "fixtures/interactions.h"
#include "fixtures/progress.h"

#include "attend_util.h"

#include <math.h>

static att_interactions *golden_log;

static int set_up(void **state)
{
    if (open_context(state))
        return -1;
    golden_log = open_log(GOLDEN_LOG, NULL);
    return 0;
}

static int tear_down(void **state)
{
    att_interactions_free(golden_log);
    return close_context(state);
}

enum { GOLDEN_K = 8, GOLDEN_NEGATIVES = 8, MAX_CASES = 64 };

/* As make_ranking.py's scores_of; counts the calls, and the histories of the largest */
typedef struct scored {
    int64_t calls, largest;
} scored;

static att_status score(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                        float *scores)
{
    scored *calls = user;
    calls->calls++;
    calls->largest = n > calls->largest ? n : calls->largest;
    for (int64_t h = 0; h < n; h++) {
        int64_t sum = 0;
        for (int64_t i = offsets[h]; i < offsets[h + 1]; i++)
            sum += (i - offsets[h] + 1) * items[i];
        for (int64_t i = 0; i < n_items; i++)
            scores[h * n_items + i] = (float)((i * 7 + sum * 3 + i * sum) % 11);
    }
    return ATT_OK;
}

static att_ranking rank_golden(const att_holdout *h, const att_ranking_options *options)
{
    scored calls = {0};
    att_ranking r = {.size = sizeof r};
    if (att_rank(h, &(att_scorer){score, &calls}, options, &r))
        fail_msg("%s", att_error(ctx));
    return r;
}

/* ---- all items */

/* Sums of some hundred numbers in double, in another order than NumPy's. */
static void assert_near(const char *name, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%s: %.17g, not %.17g", name, found, expected);
}

static void assert_measures(const char *name, const att_ranking *r)
{
    double x[16];
    assert_int_equal(golden_line(GOLDEN_RANKING, name, x, 16), 13);
    assert_int_equal(r->cases, x[0]);
    assert_int_equal(r->repeats, x[1]);
    const att_interval found[] = {r->hr, r->ndcg, r->mrr};
    for (int i = 0; i < 3; i++) {
        assert_near(name, found[i].mean, x[2 + 3 * i]);
        assert_near(name, found[i].low, x[3 + 3 * i]);
        assert_near(name, found[i].high, x[4 + 3 * i]);
    }
    assert_near(name, r->coverage, x[11]);
    assert_near(name, r->popularity, x[12]);
}

/* The golden line NAME-ranks is of the counted cases, whose ranks are not NONE. */
static void assert_ranks(const char *name, const att_holdout *h, const int32_t *ranks, bool leave_out_unseen)
{
    char line[64];
    double x[MAX_CASES];
    att_holdout_case c;
    snprintf(line, sizeof line, "%s-ranks", name);
    const int n = golden_line(GOLDEN_RANKING, line, x, MAX_CASES);
    const int64_t cases = describe_holdout(h).cases[ATT_HOLDOUT_PART_TEST];
    int counted = 0;
    for (int64_t i = 0; i < cases; i++) {
        bool seen = false;
        assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, i, &c), ATT_OK);
        for (int64_t u = 0; u < describe_log(golden_log).users; u++) {
            const att_history train = att_holdout_train(h, u);
            for (int64_t k = 0; k < train.count; k++)
                seen |= train.items[k] == c.target;
        }
        if (seen || !leave_out_unseen)
            assert_int_equal(ranks[i], x[counted++]);
        else
            assert_int_equal(ranks[i], 0);
    }
    assert_int_equal(counted, n);
}

static void assert_all_are_golden(const att_holdout *h, const char *split)
{
    for (int i = 0; i < 4; i++) {
        int32_t ranks[MAX_CASES];
        char name[32];
        snprintf(name, sizeof name, "%s-%d-%d", split, i / 2, i % 2);
        const att_ranking r =
            rank_golden(h, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .k = GOLDEN_K,
                                       .exclude_seen = i / 2, .leave_out_unseen = i % 2, .ranks = ranks));
        assert_measures(name, &r);
        assert_ranks(name, h, ranks, i % 2);
        assert_int_equal(r.unseen, describe_holdout(h).unseen[ATT_HOLDOUT_PART_TEST]);
        assert_true(r.unseen > 0);
        assert_int_equal(r.k, GOLDEN_K);
        assert_int_equal(r.candidates, describe_log(golden_log).items);
    }
}

static void ranks_among_all_items_are_those_of_python(void **state)
{
    (void)state;
    att_holdout *h = hold_out(golden_log, NULL);
    assert_all_are_golden(h, "leave-one-out");
    att_holdout_free(h);
    h = hold_out_by_time(golden_log);
    assert_all_are_golden(h, "time");
    att_holdout_free(h);
}

static void ranks_are_the_same_in_any_batch_and_for_any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 3, 29, 1000};
    static int32_t ranks[2][3 * MAX_CASES];
    att_ranking first = {0};
    for (int threads = 1; threads <= 3; threads++)
        for (int b = 0; b < 4; b++) {
            att_ctx *own = check_open(NULL, threads);
            att_interactions *log;
            att_holdout *h;
            scored calls = {0};
            att_ranking r = {.size = sizeof r};
            const bool is_first = threads == 1 && b == 0;
            assert_int_equal(att_interactions_open(own, GOLDEN_LOG, NULL, &log), ATT_OK);
            assert_int_equal(att_holdout_new(log, NULL, &h), ATT_OK);
            assert_int_equal(att_rank(h, &(att_scorer){score, &calls},
                                      ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST,
                                                  .batch = batches[b], .candidates = ATT_CANDIDATES_OUTSIDE_HISTORY,
                                                  .negatives = 9, .draws = 3, .seed = 5, .ranks = ranks[!is_first]),
                                      &r),
                             ATT_OK);
            assert_true(calls.largest <= batches[b]);
            first = is_first ? r : first;
            assert_memory_equal(&first, &r, sizeof r);
            if (!is_first)
                assert_memory_equal(ranks[0], ranks[1], 3 * (size_t)r.cases * sizeof ranks[0][0]);
            att_holdout_free(h);
            att_interactions_free(log);
            att_close(own);
        }
}

/* Of five equal scores the first item is first; minus infinity is last, and still has a rank. */
static att_status score_constant(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                                 float *scores)
{
    (void)items;
    (void)offsets;
    for (int64_t i = 0; i < n * n_items; i++)
        scores[i] = *(float *)user;
    return ATT_OK;
}

static void equal_scores_have_the_order_of_items(void **state)
{
    (void)state;
    att_interactions *log = log_of("aaabbbccc", "vwxwxvxvy"); /* tests: x, v, y */
    att_holdout *h = hold_out(log, NULL);
    float constants[] = {0, -INFINITY, INFINITY};
    for (int i = 0; i < 3; i++) {
        int32_t ranks[3];
        att_ranking r = {.size = sizeof r};
        const att_ranking_options o = {.size = sizeof o, .part = ATT_HOLDOUT_PART_TEST, .k = 2, .ranks = ranks};
        assert_int_equal(att_rank(h, &(att_scorer){score_constant, &constants[i]}, &o, &r), ATT_OK);
        assert_int_equal(ranks[0], 3);
        assert_int_equal(ranks[1], 1);
        assert_int_equal(ranks[2], 4);
        assert_true(r.hr.mean == 1.0 / 3);
        assert_true(r.coverage == 0.5); /* v and w */
    }
    att_holdout_free(h);
    att_interactions_free(log);
}

static void of_one_item_all_ranks_are_one(void **state)
{
    (void)state;
    att_interactions *log = log_of("aaabbb", "xxxxxx");
    att_holdout *h = hold_out(log, NULL);
    const att_ranking r = rank_golden(h, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST));
    assert_int_equal(r.candidates, 1);
    assert_int_equal(r.repeats, 2);
    assert_true(r.hr.mean == 1 && r.hr.high == 1 && r.ndcg.mean == 1 && r.ndcg.low == 1 && r.coverage == 1);
    assert_near("low", r.hr.low, 2 / (2 + 1.96 * 1.96));
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- samples */

/* The mean hit rate of many draws is its expectation, computed by combinatorics: to within five deviations of the mean,
 * which a right program exceeds once in two million seeds. */
static void samples_give_the_expected_measures(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    att_holdout *h = hold_out(golden_log, NULL);
    for (int kind = ATT_CANDIDATES_OUTSIDE_TRAINING; kind <= ATT_CANDIDATES_BY_POPULARITY; kind++) {
        char name[32];
        double expected[2];
        const int64_t negatives = kind == ATT_CANDIDATES_BY_POPULARITY ? 2 : GOLDEN_NEGATIVES;
        snprintf(name, sizeof name, "expected-%d", kind);
        assert_int_equal(golden_line(GOLDEN_RANKING, name, expected, 2), 2);
        const att_ranking r =
            rank_golden(h, ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .k = 1, .seed = 11,
                                       .draws = DRAWS, .candidates = (att_candidates)kind, .negatives = negatives));
        assert_int_equal(r.candidates, negatives + 1);
        if (!(fabs(r.hr.mean - expected[0]) <= 5 * expected[1] / sqrt(DRAWS)))
            fail_msg("%s: %g, not %g", name, r.hr.mean, expected[0]);
    }
    att_holdout_free(h);
}

/* Each history has the scores of the table, user [n_items]. */
static att_status score_table(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                              float *scores)
{
    (void)items;
    (void)offsets;
    for (int64_t i = 0; i < n; i++)
        memcpy(scores + i * n_items, user, (size_t)n_items * sizeof *scores);
    return ATT_OK;
}

/* a is tested on t and has had u. Of the others h is so popular that it is the first of two negatives, and that the
 * second is never found by trying: it is p or q, with 1 and 2 actions in the log. Only q is before t. */
static void rare_items_are_drawn_by_weight_after_a_popular_one(void **state)
{
    (void)state;
    enum { HITS = 60000, DRAWS = 4000 };
    static char users[HITS + 16], items[HITS + 16];
    static int32_t ranks[2 * DRAWS]; /* of b, and of a */
    snprintf(users + HITS, 16, "baaacc");
    snprintf(items + HITS, 16, "puutqq");
    memset(users, 'b', HITS);
    memset(items, 'h', HITS);
    att_interactions *log = log_of(users, items);
    att_holdout *h = hold_out(log, NULL);
    float scores[] = {[0] = 0, [1] = 0, [2] = 0, [3] = 1, [4] = 2}; /* h, p, u, t, q */
    assert_int_equal(att_interactions_find_item(log, "t"), 3);
    assert_int_equal(att_interactions_find_item(log, "q"), 4);
    att_ranking r = {.size = sizeof r};
    assert_int_equal(att_rank(h, &(att_scorer){score_table, scores},
                              ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_TEST, .draws = DRAWS,
                                          .negatives = 2, .candidates = ATT_CANDIDATES_BY_POPULARITY, .ranks = ranks),
                              &r),
                     ATT_OK);
    assert_int_equal(r.cases, 2);
    double second = 0;
    for (int d = 0; d < DRAWS; d++)
        second += ranks[DRAWS + d] == 2;
    const double share = 2.0 / 3, deviation = sqrt(share * (1 - share) / DRAWS);
    if (!(fabs(second / DRAWS - share) <= 5 * deviation))
        fail_msg("q was drawn in %g of %d samples", second, DRAWS);
    att_holdout_free(h);
    att_interactions_free(log);
}

/* ---- what is refused */

static att_status score_nothing(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                                float *scores)
{
    (void)items;
    (void)offsets;
    (void)n;
    (void)n_items;
    (void)scores;
    return att_fail(user, ATT_ERR_UNSUPPORTED, "the scorer refuses");
}

static void assert_refused(const att_holdout *h, const att_ranking_options *options, att_status status,
                           const char *says)
{
    scored calls = {0};
    att_ranking r = {.size = sizeof r};
    assert_int_equal(att_rank(h, &(att_scorer){score, &calls}, options, &r), status);
    check_message(ctx, says);
}

#define REFUSED(h, says, ...) assert_refused(h, ATT_OPTIONS(att_ranking_options, __VA_ARGS__), ATT_ERR_ARGUMENT, says)

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    att_interactions *log = log_of("aaaa", "wxyz");
    att_holdout *h = hold_out(log, NULL), *none = hold_out(log, ATT_OPTIONS(att_holdout_options, .min_actions = 9));
    REFUSED(h, "part is 4", .part = (att_holdout_part)4);
    REFUSED(h, "candidates is -1", .candidates = (att_candidates)-1);
    REFUSED(h, "k is -1", .k = -1);
    REFUSED(h, "batch is -2", .batch = -2);
    REFUSED(h, "negatives and draws are for samples", .negatives = 5);
    REFUSED(h, "3 negatives are to be drawn for the user a, but there are 0 items", .negatives = 3,
            .candidates = ATT_CANDIDATES_OUTSIDE_HISTORY);
    REFUSED(h, "there are 0 items besides", .negatives = 3, .candidates = ATT_CANDIDATES_BY_POPULARITY);
    REFUSED(h, "whose held-out items do not occur in training", .leave_out_unseen = true);
    REFUSED(none, "there is no case for validation: 0 users have enough actions", .k = 5);
    att_ranking r = {.size = sizeof r};
    float nan = NAN;
    assert_int_equal(att_rank(h, &(att_scorer){score_constant, &nan}, NULL, &r), ATT_ERR_ARGUMENT);
    check_message(ctx, "a score for the user a is not a number");
    assert_int_equal(att_rank(h, &(att_scorer){score_nothing, ctx}, NULL, &r), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "the scorer refuses");
    assert_int_equal(att_rank(h, &(att_scorer){NULL, NULL}, NULL, &r), ATT_ERR_ARGUMENT);
    att_holdout_free(none);
    att_holdout_free(h);
    att_interactions_free(log);
}

static att_status rank_in_batches(void *h, att_progress_fn progress, void *user)
{
    scored calls = {0};
    att_ranking r = {.size = sizeof r};
    const att_status s = att_rank(h, &(att_scorer){score, &calls},
                                  ATT_OPTIONS(att_ranking_options, .batch = 4, .progress = progress, .user = user), &r);
    progress_result(s, &r, sizeof r);
    return s;
}

static void progress_may_stop_the_call(void **state)
{
    (void)state;
    att_holdout *h = hold_out(golden_log, NULL);
    assert_progress(ctx, rank_in_batches, h);
    att_holdout_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_among_all_items_are_those_of_python),
        cmocka_unit_test(ranks_are_the_same_in_any_batch_and_for_any_number_of_threads),
        cmocka_unit_test(equal_scores_have_the_order_of_items),
        cmocka_unit_test(of_one_item_all_ranks_are_one),
        cmocka_unit_test(samples_give_the_expected_measures),
        cmocka_unit_test(rare_items_are_drawn_by_weight_after_a_popular_one),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(progress_may_stop_the_call),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
