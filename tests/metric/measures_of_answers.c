/* Measures of answers against their definitions: shares, calibration, ranks, and the control of captions. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"

#include <attend_metric.h>
#include <attend_util.h>
#include <math.h>

static uint32_t random_word(uint32_t i)
{
    uint32_t words[4];
    att_random(7, (const uint32_t[]){i, 0, 0, 0}, words);
    return words[0];
}

static void assert_near(const char *name, double expected, double found, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s: %.17g, not %.17g", name, found, expected);
}

/* Newcombe 1998, table I, method 3, to its four digits */
static void the_interval_of_a_share_is_that_of_wilson(void **state)
{
    (void)state;
    static const struct {
        int successes, n;
        double low, high;
    } published[] = {{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    att_interval x;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const int n = published[i].n, all = published[i].successes;
        assert_int_equal(att_share_interval(all, n, &x), ATT_OK);
        assert_near("share", (double)all / n, x.mean, 1e-15);
        assert_near("low", published[i].low, x.low, 5e-5);
        assert_near("high", published[i].high, x.high, 5e-5);
        assert_int_equal(att_share_interval(n - all, n, &x), ATT_OK); /* the interval of failures is the mirror image */
        assert_near("low of the others", 1 - published[i].high, x.low, 5e-5);
        assert_near("high of the others", 1 - published[i].low, x.high, 5e-5);
    }
    assert_int_equal(att_share_interval(0, 1, &x), ATT_OK);
    assert_true(x.low == 0);
    assert_int_equal(att_share_interval(1, 1, &x), ATT_OK);
    assert_true(x.high == 1);
}

enum { MANY = 500 };

/* Returns the sum over bins, each found by its ends. */
static double calibration_by_definition(const float *confidence, const bool *right, int64_t n, int64_t bins)
{
    double error = 0;
    for (int64_t b = 0; b < bins; b++) {
        double hits = 0, sum = 0, inside = 0;
        for (int64_t i = 0; i < n; i++) {
            const double x = (double)confidence[i] * (double)bins;
            if ((x >= (double)b && x < (double)(b + 1)) || (b == bins - 1 && confidence[i] == 1))
                hits += right[i], sum += (double)confidence[i], inside++;
        }
        if (inside > 0)
            error += inside / (double)n * fabs(hits / inside - sum / inside);
    }
    return error;
}

static void the_calibration_error_is_that_of_its_definition(void **state)
{
    (void)state;
    static float confidence[MANY];
    static bool right[MANY];
    double error;
    /* In quarters: (0.5, 0.5625) one of two right, (1, 0.875) both right: |0.5 - 0.53125| / 2 + |1 - 0.9375| / 2 */
    const float few[] = {0.5f, 0.875f, 0.5625f, 1};
    assert_int_equal(att_calibration_error(ctx, few, (const bool[]){true, true, false, true}, 4, 4, &error), ATT_OK);
    assert_true(error == 0.046875);
    for (uint32_t i = 0; i < MANY; i++) {
        confidence[i] = i % 50 == 0 ? (float)(i / 50) / 9 : (float)(random_word(i) >> 8) / (1 << 24); /* 0 and 1, too */
        right[i] = random_word(MANY + i) >> 8 < (uint32_t)(confidence[i] * (1 << 23));
    }
    for (int64_t bins = 1; bins <= 40; bins += 13) {
        assert_int_equal(att_calibration_error(ctx, confidence, right, MANY, bins, &error), ATT_OK);
        assert_near("calibration error", calibration_by_definition(confidence, right, MANY, bins), error, 1e-12);
        assert_true(error > 0.2); /* half as often right as they say */
    }
}

/* att_measure_ranks' sums, case by case */
static att_interval mean_by_definition(const double *x, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    const double half = 1.96 * sqrt(squares / (double)(n - 1)) / sqrt((double)n);
    return (att_interval){sum / (double)n, fmax(sum / (double)n - half, 0), fmin(sum / (double)n + half, 1)};
}

static void assert_interval(const char *name, att_interval expected, att_interval found)
{
    assert_near(name, expected.mean, found.mean, 1e-12);
    assert_near(name, expected.low, found.low, 1e-12);
    assert_near(name, expected.high, found.high, 1e-12);
}

/* Newcombe (1998), table II, method 10: the difference of 56 of 70 and 48 of 80 is 0.2, from 0.0524 to 0.3339. The
 * share of failures of the second is its mirror image, so that the mean of 56/70 and 32/80 is half of 1 more. */
static void the_interval_of_balanced_accuracy_is_newcombes_for_two_classes(void **state)
{
    (void)state;
    att_interval mean, share;
    const int64_t right[] = {56, 0, 32}, n[] = {70, 0, 80}; /* the class without images does not count */
    assert_int_equal(att_balanced_accuracy(right, n, 3, &mean), ATT_OK);
    assert_near("mean", 0.6, mean.mean, 1e-15);
    assert_near("low", (1 + 0.0524) / 2, mean.low, 0.00005 / 2 + 1e-15); /* the table has four digits */
    assert_near("high", (1 + 0.3339) / 2, mean.high, 0.00005 / 2 + 1e-15);
    assert_int_equal(att_share_interval(56, 70, &share), ATT_OK);
    assert_int_equal(att_balanced_accuracy(right, n, 1, &mean), ATT_OK);
    assert_interval("one class", share, mean);
    assert_int_equal(att_balanced_accuracy(right + 1, n + 1, 1, &mean), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL), "att_balanced_accuracy: none of the 1 classes has a trial");
    assert_int_equal(att_balanced_accuracy(n, right, 1, &mean), ATT_ERR_ARGUMENT);
}

static void measures_of_ranks_are_those_of_their_definitions(void **state)
{
    (void)state;
    enum { DRAWS = 5, K = 10 };
    static int32_t ranks[MANY * DRAWS];
    att_rank_measures m = {.size = sizeof m};
    att_interval share;
    assert_int_equal(att_measure_ranks((const int32_t[]){1, 3, 0, 11}, 4, 1, K, &m), ATT_OK);
    assert_int_equal(att_share_interval(2, 4, &share), ATT_OK);
    assert_interval("HR", share, m.hr);
    assert_near("NDCG", (1 + 0.5) / 4, m.ndcg.mean, 1e-15);
    assert_near("MRR", (1 + 1.0 / 3) / 4, m.mrr.mean, 1e-15);
    for (uint32_t i = 0; i < MANY * DRAWS; i++)
        ranks[i] = (int32_t)(random_word(i) % 17);
    static double hit[MANY], gain[MANY], reciprocal[MANY];
    for (int i = 0; i < MANY; i++) {
        hit[i] = gain[i] = reciprocal[i] = 0;
        for (int d = 0; d < DRAWS; d++) {
            const int32_t rank = ranks[i * DRAWS + d];
            if (rank < 1 || rank > K)
                continue;
            hit[i] += 1.0 / DRAWS;
            gain[i] += log(2) / log(1 + rank) / DRAWS;
            reciprocal[i] += 1.0 / rank / DRAWS;
        }
    }
    assert_int_equal(att_measure_ranks(ranks, MANY, DRAWS, K, &m), ATT_OK);
    assert_interval("HR of draws", mean_by_definition(hit, MANY), m.hr);
    assert_interval("NDCG of draws", mean_by_definition(gain, MANY), m.ndcg);
    assert_interval("MRR of draws", mean_by_definition(reciprocal, MANY), m.mrr);
    assert_int_equal(att_measure_ranks(ranks, 1, DRAWS, K, &m), ATT_OK); /* one case says nothing of a deviation */
    assert_true(m.hr.low == 0 && m.hr.high == 1);
}

static void a_cyclic_permutation_is_one_cycle_and_any_of_them(void **state)
{
    (void)state;
    enum { N = 100, SEEDS = 300 };
    int64_t x[N], count[6] = {0};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (int64_t n = 1; n <= N; n += 33) {
            assert_int_equal(att_cyclic_permutation(seed, n, x), ATT_OK);
            int64_t length = 1;
            for (int64_t i = x[0]; i != 0; i = x[i])
                length++;
            assert_int_equal(length, n);
        }
    /* Of four there are six cycles, by what follows 0 and what follows that: each 50 times, with a deviation of 6.5. */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_int_equal(att_cyclic_permutation(seed, 4, x), ATT_OK);
        count[2 * (x[0] - 1) + (x[x[0]] == (x[0] == 3 ? 2 : 3))]++;
    }
    for (int i = 0; i < 6; i++)
        if (count[i] < 50 - 5 * 6.5 || count[i] > 50 + 5 * 6.5)
            fail_msg("cycle %d is drawn %d times of %d", i, (int)count[i], SEEDS);
}

static void wrong_sizes_and_values_are_refused(void **state)
{
    (void)state;
    att_interval share = {.mean = 3};
    att_rank_measures m = {.size = sizeof m, .hr.mean = 3};
    double error = 3;
    int64_t x = 3;
    const float above[] = {0.5f, 1.5f}, nan[] = {NAN};
    const bool right[2] = {false};
    const int32_t ranks[] = {1, -1};
    assert_int_equal(att_share_interval(3, 2, &share), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL),
                        "att_share_interval: successes is 3 of n 2, but must be 0 to n, and n 1 or more");
    assert_int_equal(att_share_interval(-1, 2, &share), ATT_ERR_ARGUMENT);
    assert_int_equal(att_share_interval(0, 0, &share), ATT_ERR_ARGUMENT);
    assert_int_equal(att_calibration_error(ctx, above, right, 2, 15, &error), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_calibration_error: confidence[1] is 1.5, but must be from 0 to 1");
    assert_int_equal(att_calibration_error(ctx, nan, right, 1, 15, &error), ATT_ERR_ARGUMENT);
    assert_int_equal(att_calibration_error(ctx, above, right, 1, 0, &error), ATT_ERR_ARGUMENT);
    assert_int_equal(att_calibration_error(ctx, above, right, 0, 15, &error), ATT_ERR_ARGUMENT);
    assert_int_equal(att_measure_ranks(ranks, 2, 1, 10, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL), "att_measure_ranks: ranks[1] is -1, but must be 1 or more, or 0: none");
    assert_int_equal(att_measure_ranks(ranks, 1, 1, 0, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL), "att_measure_ranks: k is 0, but must be 1 to 2147483647");
    assert_int_equal(att_cyclic_permutation(1, 0, &x), ATT_ERR_ARGUMENT);
    assert_true(share.mean == 3 && m.hr.mean == 3 && error == 3 && x == 3);
}

static void without_memory_there_is_an_error(void **state)
{
    (void)state;
    double error = 7;
    fail_alloc f = {0};
    att_ctx *failing = fail_open(&f);
    f.fail_at = f.calls + 1;
    assert_int_equal(att_calibration_error(failing, &(const float){0.5f}, &(const bool){true}, 1, 15, &error),
                     ATT_ERR_MEMORY);
    assert_true(error == 7);
    assert_int_equal(att_calibration_error(failing, &(const float){0.5f}, &(const bool){true}, 1, 15, &error), ATT_OK);
    att_close(failing);
    assert_int_equal(f.live, 0);
    assert_true(error == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_of_a_share_is_that_of_wilson),
        cmocka_unit_test(the_calibration_error_is_that_of_its_definition),
        cmocka_unit_test(the_interval_of_balanced_accuracy_is_newcombes_for_two_classes),
        cmocka_unit_test(measures_of_ranks_are_those_of_their_definitions),
        cmocka_unit_test(a_cyclic_permutation_is_one_cycle_and_any_of_them),
        cmocka_unit_test(wrong_sizes_and_values_are_refused),
        cmocka_unit_test(without_memory_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
