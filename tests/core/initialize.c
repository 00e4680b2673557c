/* Initialization of parameters: bounds, deviations and fans by the papers' formulas; numbers by position alone. */
#include "attend_learn.h"
#include "fixtures/check.h"

enum { ROWS = 40, COLUMNS = 50, COUNT = ROWS * COLUMNS };

static att_tensor make(float *x, int rank, const int64_t *dim)
{
    att_tensor v;
    assert_int_equal(att_wrap(&v, x, ATT_F32, rank, dim, NULL), ATT_OK);
    return v;
}

typedef struct expectation {
    att_init init;
    double bound;     /* 0: a normal distribution */
    double deviation; /* of the distribution */
} expectation;

/* Of n numbers, the mean is within 5 of its standard errors, and the deviation within 5 %: its own error is at most
 * 1 / sqrt(2 n) = 1.6 %. Of 2,000 uniform numbers the largest is above 0.99 of the bound but for 2e-9 of all seeds. */
static void check_distribution(att_ctx *ctx, const expectation *e)
{
    static float x[COUNT];
    const att_tensor v = make(x, ATT_DIMS(ROWS, COLUMNS));
    att_init init = e->init;
    init.size = sizeof init;
    assert_int_equal(att_initialize(ctx, &v, &init, 7, "w"), ATT_OK);
    double sum = 0, squares = 0, most = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        most = fmax(most, fabs((double)x[i]));
    }
    check_near(0, (float)(sum / COUNT), 5 * e->deviation / sqrt(COUNT), "kind %d: mean", init.kind);
    check_near(e->deviation, (float)sqrt(squares / COUNT), 0.05 * e->deviation, "kind %d: deviation", init.kind);
    if (e->bound > 0) {
        assert_true(most <= e->bound * (1 + 1e-7));
        assert_true(most > 0.99 * e->bound);
    }
}

static void distributions_have_the_bounds_and_deviations_of_their_papers(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const double both = ROWS + COLUMNS, cut = 0.8796256610342398; /* the deviation of a normal distribution truncated at
                                                                   * 2 */
    const expectation all[] = {
        {{.kind = ATT_INIT_UNIFORM, .value = 0.3}, 0.3, 0.3 / sqrt(3)},
        {{.kind = ATT_INIT_NORMAL, .value = 0.02}, 0, 0.02},
        {{.kind = ATT_INIT_TRUNCATED_NORMAL, .value = 0.5}, 1, 0.5 * cut},
        {{.kind = ATT_INIT_FAN_IN_UNIFORM}, 1 / sqrt(COLUMNS), 1 / sqrt(3 * COLUMNS)},
        {{.kind = ATT_INIT_FAN_IN_UNIFORM, .fan_in = 4}, 0.5, 0.5 / sqrt(3)},
        {{.kind = ATT_INIT_XAVIER_UNIFORM}, sqrt(6 / both), sqrt(2 / both)},
        {{.kind = ATT_INIT_XAVIER_UNIFORM, .gain = 2, .fan_out = 150}, 2 * sqrt(6.0 / 200), 2 * sqrt(2.0 / 200)},
        {{.kind = ATT_INIT_XAVIER_NORMAL}, 0, sqrt(2 / both)},
        {{.kind = ATT_INIT_KAIMING_UNIFORM}, sqrt(6.0 / COLUMNS), sqrt(2.0 / COLUMNS)},
        {{.kind = ATT_INIT_KAIMING_NORMAL, .gain = 1}, 0, 1 / sqrt(COLUMNS)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_distribution(ctx, &all[i]);
    att_close(ctx);
}

/* A convolution's weight [out, in, height, width] has height * width times as many inputs. */
static void fans_count_what_a_kernel_covers(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[8 * 3 * 2 * 5], y[8 * 3 * 2 * 5];
    const att_tensor a = make(x, ATT_DIMS(8, 3, 2, 5)), b = make(y, ATT_DIMS(8, 30));
    assert_int_equal(att_initialize(ctx, &a, ATT_OPTIONS(att_init, .kind = ATT_INIT_FAN_IN_UNIFORM), 1, "w"), ATT_OK);
    assert_int_equal(att_initialize(ctx, &b, ATT_OPTIONS(att_init, .kind = ATT_INIT_FAN_IN_UNIFORM), 1, "w"), ATT_OK);
    assert_memory_equal(x, y, sizeof x);
    att_close(ctx);
}

static void numbers_depend_on_seed_name_and_index_alone(void **state)
{
    (void)state;
    static float x[20000], y[20000];
    const att_tensor a = make(x, ATT_DIMS(20000)), b = make(y, ATT_DIMS(100, 200)), part = make(y, ATT_DIMS(300));
    const att_init *init = ATT_OPTIONS(att_init, .kind = ATT_INIT_NORMAL, .value = 1);
    att_ctx *one = check_open(NULL, 1), *four = check_open(NULL, 4);
    assert_int_equal(att_initialize(one, &a, init, 3, "w"), ATT_OK);
    assert_int_equal(att_initialize(four, &b, init, 3, "w"), ATT_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(att_initialize(one, &part, init, 3, "w"), ATT_OK);
    assert_memory_equal(x, y, 300 * sizeof *x);
    assert_int_equal(att_initialize(one, &part, init, 4, "w"), ATT_OK);
    assert_memory_not_equal(x, y, 300 * sizeof *x);
    assert_int_equal(att_initialize(one, &part, init, 3, "v"), ATT_OK);
    assert_memory_not_equal(x, y, 300 * sizeof *x);
    assert_int_equal(att_initialize(one, &part, NULL, 3, "v"), ATT_OK);
    for (int i = 0; i < 300; i++)
        assert_true(y[i] == 0.0f);
    assert_int_equal(att_initialize(one, &part, ATT_OPTIONS(att_init, .value = 1.5), 3, "v"), ATT_OK);
    assert_true(y[299] == 1.5f);
    att_close(one);
    att_close(four);
}

static void what_cannot_be_initialized_is_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[12] = {0};
    const att_tensor vector = make(x, ATT_DIMS(12)), matrix = make(x, ATT_DIMS(3, 4));
    att_tensor halves = matrix, strided = matrix;
    halves.dtype = ATT_F16;
    strided.stride[0] = 1, strided.stride[1] = 3;
    const struct {
        const att_tensor *x;
        att_init init;
        att_status status;
        const char *words;
    } bad[] = {
        {&vector, {.kind = ATT_INIT_XAVIER_UNIFORM}, ATT_ERR_SHAPE, "x is [12], and ATT_INIT_XAVIER_UNIFORM needs"},
        {&vector, {.kind = ATT_INIT_XAVIER_UNIFORM, .fan_in = 3}, ATT_ERR_SHAPE, "fan_out"},
        {&matrix, {.kind = (att_init_kind)99}, ATT_ERR_ARGUMENT, "init.kind is 99"},
        {&matrix, {.kind = ATT_INIT_NORMAL, .value = INFINITY}, ATT_ERR_ARGUMENT, "init.value is inf"},
        {&matrix, {.kind = ATT_INIT_KAIMING_NORMAL, .gain = NAN}, ATT_ERR_ARGUMENT, "gain nan"},
        {&matrix, {.kind = ATT_INIT_FAN_IN_UNIFORM, .fan_in = -1}, ATT_ERR_ARGUMENT, "fan_in is -1"},
        {&halves, {.kind = ATT_INIT_NORMAL, .value = 1}, ATT_ERR_DTYPE, "x is f16"},
        {&strided, {.kind = ATT_INIT_NORMAL, .value = 1}, ATT_ERR_SHAPE, "not dense"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        att_init init = bad[i].init;
        init.size = sizeof init;
        assert_int_equal(att_initialize(ctx, bad[i].x, &init, 1, "w"), bad[i].status);
        check_message(ctx, bad[i].words);
    }
    for (int i = 0; i < 12; i++)
        assert_true(x[i] == 0.0f);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_have_the_bounds_and_deviations_of_their_papers),
        cmocka_unit_test(fans_count_what_a_kernel_covers),
        cmocka_unit_test(numbers_depend_on_seed_name_and_index_alone),
        cmocka_unit_test(what_cannot_be_initialized_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
