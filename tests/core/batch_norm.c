/* Batch normalization against PyTorch. Gradients by differences are in gradients.c. */
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

#define GOLDEN "tests/golden/batch_norm.txt"

enum { IMAGES = 2, HEIGHT = 3, WIDTH = 4, CHANNELS = 5, COUNT = IMAGES * HEIGHT * WIDTH * CHANNELS };

static const att_batch_norm_options training = {.size = sizeof training, .training = true};

typedef struct layer {
    att_param *gamma, *beta;
    float *weights[2], running[2][CHANNELS];
    att_tensor mean, variance;
} layer;

static void layer_open(att_ctx *ctx, layer *l)
{
    for (int i = 0; i < 2; i++)
        l->weights[i] = check_numbers(CHANNELS, 3 + (uint64_t)i);
    for (int c = 0; c < CHANNELS; c++)
        l->running[0][c] = 0, l->running[1][c] = 1;
    l->gamma = param(ctx, l->weights[0], ATT_F32, ATT_DIMS(CHANNELS));
    l->beta = param(ctx, l->weights[1], ATT_F32, ATT_DIMS(CHANNELS));
    l->mean = view(l->running[0], ATT_F32, ATT_DIMS(CHANNELS));
    l->variance = view(l->running[1], ATT_F32, ATT_DIMS(CHANNELS));
}

static void layer_close(layer *l)
{
    att_param_free(l->gamma);
    att_param_free(l->beta);
    free(l->weights[0]), free(l->weights[1]);
}

static att_var *apply(att_tape *t, att_var *x, layer *l, const att_batch_norm_options *options)
{
    return att_batch_norm(t, x, l->gamma, l->beta, &l->mean, &l->variance, options);
}

static void compare(const char *name, const float *x, int n, double tolerance)
{
    double expected[COUNT];
    assert_int_equal(golden_line(GOLDEN, name, expected, COUNT), n);
    for (int i = 0; i < n; i++)
        check_near(expected[i], x[i], tolerance, "%s[%d]", name, i);
}

static void two_batches_and_an_evaluation_are_those_of_pytorch(void **state)
{
    (void)state;
    static const double ROUNDED = 4 * FLT_EPSILON; /* numbers up to 4 */
    float *x[] = {check_numbers(COUNT, 1), check_numbers(COUNT, 2)}, *dy = check_numbers(COUNT, 5);
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = recording_tape(ctx);
    layer l;
    layer_open(ctx, &l);
    for (int i = 0; i < 2; i++) {
        att_tape_reset(t);
        att_var *in = input(t, x[i], ATT_DIMS(IMAGES, HEIGHT, WIDTH, CHANNELS)), *y = apply(t, in, &l, &training);
        compare(i ? "training_2" : "training_1", read_floats(t, y), COUNT, ROUNDED);
        compare(i ? "mean_2" : "mean_1", l.running[0], CHANNELS, FLT_EPSILON);
        compare(i ? "variance_2" : "variance_1", l.running[1], CHANNELS, FLT_EPSILON);
        att_tensor slope = view(dy, ATT_F32, ATT_DIMS(IMAGES, HEIGHT, WIDTH, CHANNELS)), dx;
        assert_int_equal(att_tape_backward(t, y, &slope), ATT_OK);
        assert_int_equal(att_var_grad(t, in, &dx), ATT_OK);
        if (i == 1) {
            compare("dx", dx.data, COUNT, ROUNDED);
            compare("dgamma", att_param_grad(l.gamma)->data, CHANNELS, ROUNDED);
            compare("dbeta", att_param_grad(l.beta)->data, CHANNELS, ROUNDED);
        }
        att_param_zero_grad(l.gamma), att_param_zero_grad(l.beta);
    }
    att_tape_reset(t);
    att_var *y = apply(t, input(t, x[0], ATT_DIMS(IMAGES, HEIGHT, WIDTH, CHANNELS)), &l, NULL);
    compare("evaluation", read_floats(t, y), COUNT, ROUNDED);
    compare("mean_2", l.running[0], CHANNELS, FLT_EPSILON); /* unchanged */
    layer_close(&l);
    att_tape_free(t);
    att_close(ctx);
    free(x[0]), free(x[1]), free(dy);
}

/* ---- in any number of threads, and far from 0 */

enum { ROWS = 5000 };

typedef struct pass {
    float y[ROWS * CHANNELS], dx[ROWS * CHANNELS], running[2][CHANNELS], dgamma[CHANNELS], dbeta[CHANNELS];
} pass;

static pass *pass_of(int threads, float *x)
{
    pass *p = calloc(1, sizeof *p); /* compared with its padding */
    att_ctx *ctx = check_open(NULL, threads);
    att_tape *t = recording_tape(ctx);
    layer l;
    layer_open(ctx, &l);
    att_var *in = input(t, x, ATT_DIMS(ROWS, CHANNELS)), *y = apply(t, in, &l, &training);
    att_tensor value, dx;
    assert_int_equal(att_var_value(t, y, &value), ATT_OK);
    memcpy(p->y, value.data, sizeof p->y);
    assert_int_equal(att_tape_backward(t, y, &value), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &dx), ATT_OK);
    memcpy(p->dx, dx.data, sizeof p->dx);
    memcpy(p->running, l.running, sizeof p->running);
    memcpy(p->dgamma, att_param_grad(l.gamma)->data, sizeof p->dgamma);
    memcpy(p->dbeta, att_param_grad(l.beta)->data, sizeof p->dbeta);
    layer_close(&l);
    att_tape_free(t);
    att_close(ctx);
    return p;
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    float *x = check_numbers(ROWS * CHANNELS, 1);
    pass *first = pass_of(1, x);
    for (int threads = 2; threads < 5; threads++) {
        pass *p = pass_of(threads, x);
        assert_memory_equal(p, first, sizeof *p);
        free(p);
    }
    free(first), free(x);
}

/* A mean of 1024 costs no digits: sums are in double. */
static void a_large_mean_does_not_matter(void **state)
{
    (void)state;
    float *x = check_numbers(ROWS * CHANNELS, 1), *far = check_numbers(ROWS * CHANNELS, 1);
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        x[i] = roundf(x[i] * 4096) / 4096;
        far[i] = x[i] + 1024;
    }
    pass *p = pass_of(2, x), *q = pass_of(2, far);
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        check_near((double)p->y[i], q->y[i], 2 * FLT_EPSILON, "y[%d]", i);
        check_near((double)p->dx[i], q->dx[i], 2 * FLT_EPSILON, "dx[%d]", i);
    }
    free(p), free(q), free(x), free(far);
}

/* ---- in att_recompute */

static att_var *normalized(const void *user, att_tape *t, att_var *const *x)
{
    layer *const *l = user;
    return apply(t, x[0], *l, &training);
}

static att_var *normalized_twice(const void *user, att_tape *t, att_var *const *x)
{
    att_var *y = att_recompute(t, normalized, user, sizeof(layer *), x, 1);
    return att_recompute(t, normalized, user, sizeof(layer *), &y, 1);
}

static void a_recomputed_batch_counts_once(void **state)
{
    (void)state;
    float *x = check_numbers(COUNT, 1), running[2][2][CHANNELS];
    for (int again = 0; again < 2; again++) {
        att_ctx *ctx = check_open(NULL, 1);
        att_tape *t = recording_tape(ctx);
        layer l, *user = &l;
        layer_open(ctx, &l);
        att_var *in = input(t, x, ATT_DIMS(COUNT / CHANNELS, CHANNELS)), *y;
        if (again)
            y = att_recompute(t, normalized_twice, &user, sizeof user, &in, 1);
        else
            y = apply(t, apply(t, in, &l, &training), &l, &training);
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        y = apply(t, in, &l, &training); /* counts again after that */
        read_floats(t, y);
        memcpy(running[again], l.running, sizeof l.running);
        layer_close(&l);
        att_tape_free(t);
        att_close(ctx);
    }
    assert_memory_equal(running[0], running[1], sizeof running[0]);
    free(x);
}

/* ---- limits */

static void no_rows_give_none_in_evaluation(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[1];
    layer l;
    layer_open(ctx, &l);
    att_var *y = apply(t, input(t, x, ATT_DIMS(0, 3, 4, CHANNELS)), &l, NULL);
    read_floats(t, y);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_true(((const float *)att_param_grad(l.gamma)->data)[0] == 0);
    layer_close(&l);
    att_tape_free(t);
    att_close(ctx);
}

/* Running statistics are f16 as in the file of a model in f16. */
static void running_statistics_may_be_f16_in_evaluation(void **state)
{
    (void)state;
    static const float statistics[2][CHANNELS] = {{0.5f, -1, 0, 3, 0.25f}, {1, 0.5f, 2, 4, 0.125f}}; /* exact in f16 */
    float *x = check_numbers(COUNT, 1);
    uint16_t half[2][CHANNELS];
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    layer l;
    layer_open(ctx, &l);
    memcpy(l.running, statistics, sizeof statistics);
    att_var *in = input(t, x, ATT_DIMS(IMAGES, HEIGHT, WIDTH, CHANNELS));
    const float *expected = read_floats(t, apply(t, in, &l, NULL));
    const att_tensor mean = l.mean, variance = l.variance;
    l.mean = view(half[0], ATT_F16, ATT_DIMS(CHANNELS));
    l.variance = view(half[1], ATT_F16, ATT_DIMS(CHANNELS));
    assert_int_equal(att_tensor_convert(ctx, &mean, &l.mean), ATT_OK);
    assert_int_equal(att_tensor_convert(ctx, &variance, &l.variance), ATT_OK);
    assert_memory_equal(read_floats(t, apply(t, in, &l, NULL)), expected, COUNT * sizeof *expected);
    assert_error(t, apply(t, in, &l, &training), ATT_ERR_ARGUMENT, "batch_norm: running_mean is f16 but must be f32");
    layer_close(&l);
    att_tape_free(t);
    att_close(ctx);
    free(x);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[20] = {0};
    layer l;
    layer_open(ctx, &l);
    att_tensor four = view(x, ATT_F32, ATT_DIMS(4)), wide = l.mean;
    wide.stride[0] = 2;
#define X input(t, x, ATT_DIMS(2, CHANNELS))
#define REFUSED(call, status, sentence) (assert_error(t, call, status, sentence), att_tape_reset(t))
#define OPTIONS(...) ATT_OPTIONS(att_batch_norm_options, __VA_ARGS__)
    REFUSED(att_batch_norm(t, X, NULL, l.beta, &l.mean, &l.variance, NULL), ATT_ERR_ARGUMENT,
            "batch_norm: gamma is NULL");
    REFUSED(att_batch_norm(t, X, l.gamma, l.beta, &l.mean, NULL, NULL), ATT_ERR_ARGUMENT,
            "batch_norm: running_var is NULL");
    REFUSED(apply(t, input(t, x, ATT_DIMS(5, 4)), &l, NULL), ATT_ERR_SHAPE,
            "batch_norm: x has 4 channels but gamma is [5]");
    REFUSED(att_batch_norm(t, X, l.gamma, l.beta, &four, &l.variance, NULL), ATT_ERR_SHAPE,
            "batch_norm: x has 5 channels but running_mean is [4]");
    REFUSED(att_batch_norm(t, X, l.gamma, l.beta, &wide, &l.variance, NULL), ATT_ERR_SHAPE,
            "batch_norm: running_mean is [5] but not dense");
    REFUSED(apply(t, X, &l, OPTIONS(.momentum = 1.5)), ATT_ERR_ARGUMENT, "batch_norm: momentum is 1.5, not in (0, 1]");
    REFUSED(apply(t, X, &l, OPTIONS(.eps = -1)), ATT_ERR_ARGUMENT, "batch_norm: eps is -1, not above 0");
    REFUSED(apply(t, input(t, x, ATT_DIMS(1, CHANNELS)), &l, &training), ATT_ERR_SHAPE,
            "batch_norm: x is [1, 5], less than 2 values per channel, in training");
#undef X
#undef REFUSED
#undef OPTIONS
    layer_close(&l);
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_batches_and_an_evaluation_are_those_of_pytorch),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(a_large_mean_does_not_matter),
        cmocka_unit_test(a_recomputed_batch_counts_once),
        cmocka_unit_test(no_rows_give_none_in_evaluation),
        cmocka_unit_test(running_statistics_may_be_f16_in_evaluation),
        cmocka_unit_test(wrong_calls_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
