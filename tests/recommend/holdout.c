/* Splits of logs: those of Python, each user's last actions or by two points in time; what does not fit is refused. */
#include "fixtures/interactions.h"

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

/* The golden lines NAME, NAME-valid and NAME-test */
static void assert_is_golden(const att_holdout *h, const char *name)
{
    const att_holdout_info i = describe_holdout(h);
    const int64_t found[] = {
        i.users,     i.actions,    i.items,      i.positions,  i.cases[0],           i.cases[1],          i.unseen[0],
        i.unseen[1], i.repeats[0], i.repeats[1], i.train_only, i.without_history[0], i.without_history[1]};
    double x[256];
    assert_int_equal(golden_line(GOLDEN_RANKING, name, x, 256), 13);
    for (int k = 0; k < 13; k++)
        if (found[k] != (int64_t)x[k])
            fail_msg("%s: number %d is %lld, not %g", name, k, (long long)found[k], x[k]);
    for (int part = ATT_HOLDOUT_PART_VALID; part <= ATT_HOLDOUT_PART_TEST; part++) {
        char line[64];
        snprintf(line, sizeof line, "%s-%s", name, part == ATT_HOLDOUT_PART_VALID ? "valid" : "test");
        assert_int_equal(golden_line(GOLDEN_RANKING, line, x, 256), 3 * i.cases[part]);
        for (int64_t k = 0; k < i.cases[part]; k++) {
            att_holdout_case c;
            assert_int_equal(att_holdout_get(h, (att_holdout_part)part, k, &c), ATT_OK);
            assert_int_equal(c.user, x[3 * k]);
            assert_int_equal(c.history.count, x[3 * k + 1]);
            assert_int_equal(c.target, x[3 * k + 2]);
            assert_ptr_equal(c.history.items, att_interactions_history(golden_log, c.user).items);
        }
    }
}

static void the_last_two_actions_are_held_out(void **state)
{
    (void)state;
    att_holdout *h = hold_out(golden_log, NULL);
    assert_is_golden(h, "leave-one-out");
    for (int64_t u = 0; u < describe_log(golden_log).users; u++) {
        const int64_t n = att_interactions_history(golden_log, u).count;
        assert_int_equal(att_holdout_train(h, u).count, n < 3 ? n : n - 2);
    }
    assert_ptr_equal(att_holdout_log(h), golden_log);
    att_holdout_free(h);
}

static void points_in_time_are_the_same_for_all_users(void **state)
{
    (void)state;
    att_holdout *h = hold_out_by_time(golden_log);
    double points[2];
    assert_int_equal(golden_line(GOLDEN_RANKING, "points", points, 2), 2);
    assert_true(describe_holdout(h).valid_from == points[0]);
    assert_true(describe_holdout(h).test_from == points[1]);
    assert_is_golden(h, "time");
    for (int64_t u = 0; u < describe_log(golden_log).users; u++) {
        const att_history train = att_holdout_train(h, u);
        for (int64_t i = 0; i < train.count; i++)
            assert_true(train.times[i] < points[0]);
    }
    att_holdout_free(h);
    h = hold_out(golden_log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_TIME, .valid_from = points[0],
                                         .test_from = points[1]));
    assert_is_golden(h, "time");
    att_holdout_free(h);
}

static void users_with_few_actions_are_for_training_only(void **state)
{
    (void)state;
    att_interactions *log = log_of("aabbbccccd", "xyxyzxyzwx");
    static const struct {
        int64_t min_actions, cases, train_only, actions;
    } expected[] = {{0, 2, 2, 6}, {3, 2, 2, 6}, {4, 1, 3, 8}, {5, 0, 4, 10}};
    for (int i = 0; i < 4; i++) {
        att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .min_actions = expected[i].min_actions));
        const att_holdout_info info = describe_holdout(h);
        assert_int_equal(info.cases[0], expected[i].cases);
        assert_int_equal(info.cases[1], expected[i].cases);
        assert_int_equal(info.train_only, expected[i].train_only);
        assert_int_equal(info.actions, expected[i].actions);
        assert_int_equal(info.users, 4);
        att_holdout_free(h);
    }
    att_holdout *all = hold_out(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE));
    assert_int_equal(describe_holdout(all).actions, 10);
    assert_int_equal(describe_holdout(all).positions, 6);
    assert_int_equal(describe_holdout(all).cases[1], 0);
    att_holdout_free(all);
    att_interactions_free(log);
}

/* Of users a to j, of whom e and h have too few actions, every other one is held out. The others have all actions for
 * training, or those before the point in time. */
static void held_out_users_are_spread_evenly(void **state)
{
    (void)state;
    att_interactions *log = log_of("aaabbbcccdddeefffggghiiijjj", "xyzxyzxyzxyzxyxyzxyzxxyzxyz");
    static const struct {
        int64_t wanted;
        const char *users;
    } expected[] = {{0, "abcdfgij"}, {1, "j"}, {2, "dj"}, {3, "cgj"}, {4, "bdgj"}, {8, "abcdfgij"}, {99, "abcdfgij"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        att_holdout *h = hold_out(log, ATT_OPTIONS(att_holdout_options, .held_out_users = expected[i].wanted));
        const att_holdout_info info = describe_holdout(h);
        const int64_t n = (int64_t)strlen(expected[i].users);
        assert_int_equal(info.train_only, 2);
        assert_int_equal(info.not_held_out, 8 - n);
        assert_int_equal(info.actions, 27 - 2 * n);
        for (int part = ATT_HOLDOUT_PART_VALID; part <= ATT_HOLDOUT_PART_TEST; part++) {
            assert_int_equal(info.cases[part], n);
            for (int64_t k = 0; k < n; k++) {
                att_holdout_case c;
                assert_int_equal(att_holdout_get(h, (att_holdout_part)part, k, &c), ATT_OK);
                assert_int_equal(*att_interactions_user(log, c.user), expected[i].users[k]);
                assert_int_equal(att_holdout_train(h, c.user).count, 1);
            }
        }
        att_holdout_free(h);
    }
    att_holdout *all = hold_out_by_time(golden_log),
                *some = hold_out(golden_log,
                                 ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_TIME,
                                             .valid_from = describe_holdout(all).valid_from,
                                             .test_from = describe_holdout(all).test_from, .held_out_users = 2));
    assert_int_equal(describe_holdout(some).actions, describe_holdout(all).actions);
    assert_in_range(describe_holdout(some).cases[ATT_HOLDOUT_PART_TEST], 1, 2);
    att_holdout_free(all);
    att_holdout_free(some);
    att_interactions_free(log);
}

static void assert_refused(const att_interactions *log, const att_holdout_options *options, const char *says)
{
    att_holdout *h;
    if (!att_holdout_new(log, options, &h) || h)
        fail_msg("accepted, instead of: %s", says);
    check_message(ctx, says);
}

#define OPTIONS(...) ATT_OPTIONS(att_holdout_options, __VA_ARGS__)

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const ids[] = {"a", "a", "a"};
    att_interactions *untimed, *timed = log_of("aaa", "xyz");
    assert_int_equal(att_interactions_new(ctx, 3, ids, ids, NULL, NULL, &untimed), ATT_OK);
    assert_refused(untimed, OPTIONS(.kind = ATT_HOLDOUT_TIME), "a log without times");
    assert_refused(timed, OPTIONS(.kind = (att_holdout_kind)7), "kind is 7");
    assert_refused(timed, OPTIONS(.min_actions = 2), "min_actions is 2, expected 0 or at least 3");
    assert_refused(timed, OPTIONS(.min_actions = -1), "min_actions is -1");
    assert_refused(timed, OPTIONS(.held_out_users = -1), "held_out_users is -1, expected 0 or more");
    assert_refused(timed, OPTIONS(.valid_share = 0.1), "for ATT_HOLDOUT_TIME only");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_share = 0.6, .test_share = 0.4),
                   "valid_share + test_share is 1, not in (0, 1)");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .test_share = NAN), "test_share is nan, not in (0, 1)");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_share = -0.1), "valid_share is -0.1");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_from = 2, .test_from = 2), "which is not later");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_from = NAN, .test_from = 2), "which is not later");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_from = 1, .test_from = 2, .test_share = 0.1),
                   "one of them is enough");
    assert_refused(timed, OPTIONS(.kind = ATT_HOLDOUT_TIME, .valid_from = -2, .test_from = -1),
                   "no action is left for training: validation is from -2 on");
    att_holdout *h = hold_out(timed, NULL);
    att_holdout_case c;
    assert_int_equal(att_holdout_get(h, ATT_HOLDOUT_PART_TEST, 1, &c), ATT_ERR_ARGUMENT);
    check_message(ctx, "i is 1, but there are 1 cases");
    assert_int_equal(att_holdout_get(h, (att_holdout_part)2, 0, &c), ATT_ERR_ARGUMENT);
    assert_int_equal(att_holdout_train(h, 1).count, 0);
    att_holdout_free(h);
    att_interactions_free(timed);
    att_interactions_free(untimed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_two_actions_are_held_out),
        cmocka_unit_test(points_in_time_are_the_same_for_all_users),
        cmocka_unit_test(users_with_few_actions_are_for_training_only),
        cmocka_unit_test(held_out_users_are_spread_evenly),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
