/* Learning rates by step, and the mean of checkpoints. */
// labels: portable
#include "attend_optimizer.h"
#include "fixtures/golden_text.h"

#define GOLDEN "tests/golden/optimizer.txt"

static double rate_of(const att_schedule *s, int64_t step)
{
    double rate = -1;
    if (att_schedule_rate(s, step, &rate))
        fail_msg("%s", att_error(NULL));
    return rate;
}

static void schedules_are_those_of_transformers_and_of_the_paper(void **state)
{
    (void)state;
    enum { WARMUP = 7, STEPS = 50, SHOWN = STEPS + 1, PAPER = 51 };
    static const char *const names[] = {[ATT_SCHEDULE_CONSTANT] = "constant",
                                        [ATT_SCHEDULE_INVERSE_SQRT] = "inverse_sqrt",
                                        [ATT_SCHEDULE_COSINE] = "cosine",
                                        [ATT_SCHEDULE_LINEAR] = "linear"};
    double expected[SHOWN];
    for (int kind = ATT_SCHEDULE_CONSTANT; kind <= ATT_SCHEDULE_LINEAR; kind++) {
        assert_int_equal(golden_line(GOLDEN, names[kind], expected, SHOWN), SHOWN);
        for (int64_t i = 0; i < SHOWN; i++) { /* the file has 12 digits */
            const att_schedule s = {.size = sizeof s,
                                    .kind = (att_schedule_kind)kind,
                                    .max_rate = 0.002,
                                    .warmup = WARMUP,
                                    .steps = STEPS,
                                    .min_rate = 0.0002};
            if (!(fabs(rate_of(&s, i) - expected[i]) <= 1e-11 * 0.002))
                fail_msg("%s: step %d: %.15g, not %.15g", names[kind], (int)i, rate_of(&s, i), expected[i]);
        }
    }
    assert_int_equal(golden_line(GOLDEN, "paper", expected, SHOWN), PAPER);
    for (int64_t i = 0; i < PAPER; i++) {
        const att_schedule s = {
            .size = sizeof s, .kind = ATT_SCHEDULE_INVERSE_SQRT, .max_rate = 1 / sqrt(512.0 * 4000), .warmup = 4000};
        if (!(fabs(rate_of(&s, 400 * i) - expected[i]) <= 1e-11 * s.max_rate))
            fail_msg("paper: step %d: %.15g, not %.15g", (int)(400 * i), rate_of(&s, 400 * i), expected[i]);
    }
    const att_schedule cosine = {
        .size = sizeof cosine, .kind = ATT_SCHEDULE_COSINE, .max_rate = 1, .steps = 5, .min_rate = 0.25};
    assert_true(rate_of(&cosine, 0) == 1 && rate_of(&cosine, 5) == 0.25 && rate_of(&cosine, 1000000) == 0.25);
    const att_schedule bare = {.size = sizeof bare, .kind = ATT_SCHEDULE_INVERSE_SQRT, .max_rate = 1};
    assert_true(rate_of(&bare, 0) == 1 && rate_of(&bare, 1) == 1 && rate_of(&bare, 4) == 0.5);
}

static void wrong_schedules_are_named(void **state)
{
    (void)state;
    static const struct {
        att_schedule s;
        int64_t step;
        const char *sentence;
    } wrong[] = {
        {{.max_rate = NAN}, 1, "schedule.max_rate is nan, not a rate"},
        {{.max_rate = 1, .warmup = -1}, 1, "schedule.warmup is -1, less than 0"},
        {{.max_rate = 1}, -1, "step is -1, less than 0"},
        {{.max_rate = 1, .kind = (att_schedule_kind)4}, 1, "schedule.kind is 4, which is not an att_schedule_kind"},
        {{.max_rate = 1, .kind = ATT_SCHEDULE_COSINE, .warmup = 5, .steps = 5},
         1,
         "schedule.steps is 5, but must be more than schedule.warmup = 5"},
        {{.max_rate = 1, .kind = ATT_SCHEDULE_LINEAR, .warmup = 3, .steps = 2},
         1,
         "schedule.steps is 2, but must be more than schedule.warmup = 3"},
        {{.max_rate = 1, .kind = ATT_SCHEDULE_COSINE, .steps = 5, .min_rate = 2},
         1,
         "schedule.min_rate is 2, not from 0 to schedule.max_rate = 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_schedule s = wrong[i].s;
        double rate = 7;
        s.size = sizeof s;
        assert_int_equal(att_schedule_rate(&s, wrong[i].step, &rate), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(NULL), wrong[i].sentence);
        assert_true(rate == 7);
    }
}

/* ---- average */

enum { ROWS = 37, FEATURES = 61, COUNT = ROWS * FEATURES, SETS = 5 };

static att_tensor matrix(void *data, att_dtype dtype)
{
    att_tensor x;
    assert_int_equal(att_wrap(&x, data, dtype, ATT_DIMS(ROWS, FEATURES), NULL), ATT_OK);
    return x;
}

static void an_average_is_the_mean_rounded_once(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    float *x[SETS], mean[COUNT];
    uint16_t ones[COUNT];
    att_tensor sets[SETS + 1], out = matrix(mean, ATT_F32);
    for (int i = 0; i < SETS; i++) {
        x[i] = check_numbers(COUNT, (uint64_t)i);
        sets[i] = matrix(x[i], ATT_F32);
    }
    for (int i = 0; i < COUNT; i++)
        ones[i] = 0x3f80; /* 1 in bf16 */
    sets[SETS] = matrix(ones, ATT_BF16);
    for (int n = 1; n <= SETS + 1; n++) {
        assert_int_equal(att_average(ctx, sets, n, &out), ATT_OK);
        for (int i = 0; i < COUNT; i++) {
            double sum = n > SETS ? 1 : 0;
            for (int k = 0; k < n && k < SETS; k++)
                sum += (double)x[k][i];
            /* half a unit of a float, and double's roundings */
            check_near(sum / n, mean[i], (0.5 + 1e-6) * check_unit(sum / n), "mean of %d at %d", n, i);
        }
    }
    for (int i = 0; i < SETS; i++)
        sets[i] = sets[0];
    for (int n = 1; n <= SETS; n++) { /* a mean of likes is what they are, to the bit; in place, too */
        assert_int_equal(att_average(ctx, sets, n, &out), ATT_OK);
        assert_memory_equal(mean, x[0], sizeof mean);
    }
    sets[1] = matrix(x[1], ATT_F32);
    assert_int_equal(att_average(ctx, sets, 2, &out), ATT_OK);
    assert_int_equal(att_average(ctx, sets, 2, &sets[1]), ATT_OK);
    assert_memory_equal(mean, x[1], sizeof mean);
    for (int i = 0; i < SETS; i++)
        free(x[i]);
    att_close(ctx);
}

static void wrong_averages_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[COUNT] = {0}, y[COUNT + 1] = {0};
    att_tensor sets[] = {matrix(x, ATT_F32), matrix(x, ATT_F32)}, out = matrix(y, ATT_F32);
#define REFUSED(n, status, words)                                                                                      \
    (assert_int_equal(att_average(ctx, sets, n, &out), status), check_message(ctx, words), sets[1] = sets[0])
    REFUSED(0, ATT_ERR_ARGUMENT, "average: n = 0");
    sets[1].dim[0]--;
    REFUSED(2, ATT_ERR_SHAPE, "average: x[1] is [36, 61] but out is [37, 61]");
    sets[1].dtype = ATT_I32;
    REFUSED(2, ATT_ERR_DTYPE, "average: x[1] is i32, not f32, f16 or bf16");
    sets[1].stride[0]++;
    REFUSED(2, ATT_ERR_SHAPE, "average: x[1] is not dense");
    sets[1].data = y + 1;
    REFUSED(2, ATT_ERR_ARGUMENT, "overlap in memory");
    sets[1].data = y;
    sets[1].dtype = ATT_F16;
    REFUSED(2, ATT_ERR_ARGUMENT, "overlap in memory");
    out.stride[0]++;
    REFUSED(2, ATT_ERR_SHAPE, "average: out is not dense");
    out.dtype = ATT_BF16;
    REFUSED(2, ATT_ERR_DTYPE, "average: out is bf16");
#undef REFUSED
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_those_of_transformers_and_of_the_paper),
        cmocka_unit_test(wrong_schedules_are_named),
        cmocka_unit_test(an_average_is_the_mean_rounded_once),
        cmocka_unit_test(wrong_averages_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
