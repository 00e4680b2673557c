/* Convolution and pooling of images, against PyTorch. Gradients are in gradients.c. */
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

#define GOLDEN "tests/golden/conv.txt"

enum { IMAGES = 2, HEIGHT = 7, WIDTH = 6, IN = 3, OUT = 4, COUNT = IMAGES * HEIGHT * WIDTH * IN, MOST = 400 };

static void compare(att_ctx *ctx, att_tape *t, const char *name, att_var *y, double tolerance)
{
    double expected[MOST];
    att_tensor x;
    if (att_var_value(t, y, &x))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(golden_line(GOLDEN, name, expected, MOST), check_count(&x));
    for (int i = 0; i < check_count(&x); i++)
        check_near(expected[i], ((const float *)x.data)[i], tolerance, "%s %s[%d]", att_isa(ctx), name, i);
}

static void convolutions_are_those_of_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t kernel[2];
        att_conv_options o;
    } cases[] = {{"conv_3x3", {3, 3}, {.padding = {1, 1}}},
                 {"conv_3x2", {3, 2}, {.stride = {2, 3}, .padding = {0, 1}}},
                 {"conv_1x1", {1, 1}, {.size = 0}},
                 {"conv_7x6", {7, 6}, {.stride = {7, 6}}}};
    float *x = check_numbers(COUNT, 1), *b = check_numbers(OUT, 3);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const int64_t terms = IN * cases[i].kernel[0] * cases[i].kernel[1];
            float *w = check_numbers(OUT * terms, 2);
            att_conv_options o = cases[i].o;
            o.size = sizeof o;
            att_tape *t = new_tape(ctx);
            att_param *weight = param(ctx, w, ATT_F32, ATT_DIMS(OUT, IN, cases[i].kernel[0], cases[i].kernel[1]));
            att_param *bias = param(ctx, b, ATT_F32, ATT_DIMS(OUT));
            att_var *y = att_conv2d(t, input(t, x, ATT_DIMS(IMAGES, HEIGHT, WIDTH, IN)), weight, bias, &o);
            /* sums of that number of products below 1, one chain */
            compare(ctx, t, cases[i].name, y, (double)(terms + 1) * FLT_EPSILON);
            att_tape_free(t);
            att_param_free(weight);
            att_param_free(bias);
            free(w);
        }
    free(x), free(b);
}

static void poolings_are_those_of_pytorch(void **state)
{
    (void)state;
    float *x = check_numbers(COUNT, 1);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        att_tape *t = new_tape(ctx);
        att_var *in = input(t, x, ATT_DIMS(IMAGES, HEIGHT, WIDTH, IN));
        const att_pool_options o = {.size = sizeof o, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
        const att_pool_options plain = {.size = sizeof plain, .kernel = {2, 3}};
        compare(ctx, t, "max", att_pool2d(t, in, ATT_POOLING_MAX, &o), FLT_EPSILON / 2);   /* the file's digits */
        compare(ctx, t, "mean", att_pool2d(t, in, ATT_POOLING_MEAN, &o), 8 * FLT_EPSILON); /* sums of six */
        compare(ctx, t, "mean_2x3", att_pool2d(t, in, ATT_POOLING_MEAN, &plain), 8 * FLT_EPSILON);
        att_tape_free(t);
    }
    free(x);
}

static void weights_may_lie_in_any_way_and_be_short(void **state)
{
    (void)state;
    enum { N = 2, C = 3, H = 2, W = 2, ALL = N * C * H * W };
    float w[ALL], turned[ALL], *x = check_numbers(COUNT, 1);
    uint16_t small[ALL];
    att_tensor v[3];
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int k = 0; k < H * W; k++) {
                const int i = (n * C + c) * H * W + k;
                w[i] = (float)(i - 10); /* whole numbers, which bf16 has */
                turned[(n * H * W + k) * C + c] = w[i];
                small[i] = (uint16_t)(check_float_bits(w[i]) >> 16);
            }
    v[0] = view(w, ATT_F32, ATT_DIMS(N, C, H, W));
    v[1] = view(small, ATT_BF16, ATT_DIMS(N, C, H, W));
    assert_int_equal(att_wrap(&v[2], turned, ATT_F32, 4, v[0].dim, (const int64_t[]){C * H * W, 1, W * C, C}), ATT_OK);
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    const float *y[3];
    att_param *p[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(att_param_new(ctx, &v[i], &p[i]), ATT_OK);
        y[i] = read_floats(t, att_conv2d(t, input(t, x, ATT_DIMS(IMAGES, HEIGHT, WIDTH, IN)), p[i], NULL, NULL));
        assert_memory_equal(y[i], y[0], IMAGES * (HEIGHT - 1) * (WIDTH - 1) * N * sizeof *y[i]);
    }
    for (int i = 0; i < 3; i++)
        att_param_free(p[i]);
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

/* Images whose patches are not made all at once. */
enum { HIGH = 150, WIDE = 90, CHANNELS = 9, FILTERS = 5 };

typedef struct pass {
    float *y, *dx, dweight[FILTERS * CHANNELS * 9], dbias[FILTERS];
} pass;

static pass pass_of(int threads, int64_t images, float *x, float *w)
{
    const int64_t count = images * HIGH * WIDE;
    att_ctx *ctx = check_open(NULL, threads);
    att_tape *t = recording_tape(ctx);
    att_param *weight = param(ctx, w, ATT_F32, ATT_DIMS(FILTERS, CHANNELS, 3, 3));
    att_param *bias = param(ctx, w, ATT_F32, ATT_DIMS(FILTERS));
    att_var *in = input(t, x, ATT_DIMS(images, HIGH, WIDE, CHANNELS));
    att_var *y = att_conv2d(t, in, weight, bias, ATT_OPTIONS(att_conv_options, .padding = {1, 1}));
    att_tensor v, g;
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    assert_int_equal(att_tape_backward(t, y, &v), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &g), ATT_OK);
    pass p = {.y = malloc((size_t)(count * FILTERS) * sizeof *p.y),
              .dx = malloc((size_t)(count * CHANNELS) * sizeof *p.dx)};
    memcpy(p.y, v.data, (size_t)(count * FILTERS) * sizeof *p.y);
    memcpy(p.dx, g.data, (size_t)(count * CHANNELS) * sizeof *p.dx);
    memcpy(p.dweight, att_param_grad(weight)->data, sizeof p.dweight);
    memcpy(p.dbias, att_param_grad(bias)->data, sizeof p.dbias);
    att_tape_free(t);
    att_param_free(weight);
    att_param_free(bias);
    att_close(ctx);
    return p;
}

static double product(int64_t n, const float *a, const float *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* y = W x + b, and dy = y: y.y = x.dx + b.db, and x.dx = w.dw */
static void gradients_of_large_images_are_adjoint(void **state)
{
    (void)state;
    const int64_t y_count = 2 * HIGH * WIDE * FILTERS, x_count = 2 * HIGH * WIDE * CHANNELS;
    float *x = check_numbers(x_count, 1), *w = check_numbers(FILTERS * CHANNELS * 9, 2);
    pass p = pass_of(2, 2, x, w);
    const double squares = product(y_count, p.y, p.y), by_x = product(x_count, x, p.dx);
    /* Sums of order 10^6 of numbers with some 100 roundings, which are of both signs. */
    const double tolerance = squares * 100 * FLT_EPSILON;
    check_near(squares, (float)(by_x + product(FILTERS, w, p.dbias)), tolerance, "dx and dbias");
    check_near(by_x, (float)product(FILTERS * CHANNELS * 9, w, p.dweight), tolerance, "dweight");
    free(p.y), free(p.dx), free(x), free(w);
}

static void bits_depend_neither_on_threads_nor_on_other_images(void **state)
{
    (void)state;
    const int64_t y_count = HIGH * WIDE * FILTERS, x_count = HIGH * WIDE * CHANNELS;
    float *x = check_numbers(2 * x_count, 1), *w = check_numbers(FILTERS * CHANNELS * 9, 2);
    pass first = pass_of(1, 2, x, w);
    for (int threads = 2; threads < 5; threads++) {
        pass p = pass_of(threads, 2, x, w);
        assert_memory_equal(p.y, first.y, (size_t)(2 * y_count) * sizeof *p.y);
        assert_memory_equal(p.dx, first.dx, (size_t)(2 * x_count) * sizeof *p.dx);
        assert_memory_equal(p.dweight, first.dweight, sizeof p.dweight);
        assert_memory_equal(p.dbias, first.dbias, sizeof p.dbias);
        free(p.y), free(p.dx);
    }
    pass alone = pass_of(2, 1, x + x_count, w);
    assert_memory_equal(alone.y, first.y + y_count, (size_t)y_count * sizeof *alone.y);
    assert_memory_equal(alone.dx, first.dx + x_count, (size_t)x_count * sizeof *alone.dx);
    free(alone.y), free(alone.dx), free(first.y), free(first.dx), free(x), free(w);
}

static void a_maximum_is_nan_where_one_is_and_its_gradient_goes_there(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[] = {1, 5, NAN, 5, 7, 7, 2, 3};
    att_var *in = input(t, x, ATT_DIMS(1, 1, 8, 1));
    att_var *y = att_pool2d(t, in, ATT_POOLING_MAX, ATT_OPTIONS(att_pool_options, .kernel = {1, 4}));
    const float *top = read_floats(t, y);
    assert_true(isnan(top[0]) && top[1] == 7);
    att_tensor g;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &g), ATT_OK);
    for (int i = 0; i < 8; i++) /* of likes, the first */
        assert_true(((const float *)g.data)[i] == (i == 2 || i == 4));
    att_tape_free(t);
    att_close(ctx);
}

static void no_images_give_none(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float w[9] = {1};
    att_tensor v;
    att_param *weight = param(ctx, w, ATT_F32, ATT_DIMS(1, 1, 3, 3));
    att_var *y = att_conv2d(t, input(t, w, ATT_DIMS(0, 5, 6, 1)), weight, NULL, NULL);
    y = att_pool2d(t, y, ATT_POOLING_MEAN, ATT_OPTIONS(att_pool_options, .kernel = {2, 2}));
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    assert_true(v.dim[0] == 0 && v.dim[1] == 1 && v.dim[2] == 2 && v.dim[3] == 1);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_true(((const float *)att_param_grad(weight)->data)[0] == 0);
    att_tape_free(t);
    att_param_free(weight);
    att_close(ctx);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[200] = {0};
    att_param *w = param(ctx, x, ATT_F32, ATT_DIMS(4, 3, 2, 2)), *flat = param(ctx, x, ATT_F32, ATT_DIMS(4, 12));
#define IMAGE input(t, x, ATT_DIMS(1, 5, 4, 3))
#define REFUSED(call, status, sentence) (assert_error(t, call, status, sentence), att_tape_reset(t))
#define CONV(...) att_conv2d(t, IMAGE, w, NULL, ATT_OPTIONS(att_conv_options, __VA_ARGS__))
#define POOL(...) att_pool2d(t, IMAGE, ATT_POOLING_MAX, ATT_OPTIONS(att_pool_options, __VA_ARGS__))
    REFUSED(att_conv2d(t, IMAGE, NULL, NULL, NULL), ATT_ERR_ARGUMENT, "conv2d: weight is NULL");
    REFUSED(att_conv2d(t, IMAGE, flat, NULL, NULL), ATT_ERR_SHAPE,
            "conv2d: x is [1, 5, 4, 3] and weight [4, 12], not [images, height, width, in] and [out, in, height, "
            "width]");
    REFUSED(att_conv2d(t, input(t, x, ATT_DIMS(1, 5, 4, 2)), w, NULL, NULL), ATT_ERR_SHAPE,
            "conv2d: x is [1, 5, 4, 2] and weight [4, 3, 2, 2], not [images, height, width, in] and [out, in, height, "
            "width]");
    REFUSED(att_conv2d(t, IMAGE, w, flat, NULL), ATT_ERR_SHAPE,
            "conv2d: bias is [4, 12] but weight is [4, 3, 2, 2]: expected [4]");
    REFUSED(CONV(.stride = {1, -1}), ATT_ERR_ARGUMENT, "conv2d: width: stride is -1, less than 1");
    REFUSED(CONV(.padding = {2, 0}), ATT_ERR_ARGUMENT,
            "conv2d: height: padding is 2, not from 0 to below the kernel's 2");
    REFUSED(att_conv2d(t, input(t, x, ATT_DIMS(1, 5, 1, 3)), w, NULL, NULL), ATT_ERR_SHAPE,
            "conv2d: width: a kernel of 2 is larger than x, [1, 5, 1, 3], with a padding of 0");
    REFUSED(att_pool2d(t, IMAGE, ATT_POOLING_CLS, NULL), ATT_ERR_ARGUMENT,
            "pool2d: 1 is neither ATT_POOLING_MAX nor ATT_POOLING_MEAN");
    REFUSED(POOL(.kernel = {0, 1}), ATT_ERR_ARGUMENT, "pool2d: height: kernel is 0, not from 1 to 2147483647");
    REFUSED(
        att_pool2d(t, input(t, x, ATT_DIMS(5, 4)), ATT_POOLING_MAX, ATT_OPTIONS(att_pool_options, .kernel = {1, 1})),
        ATT_ERR_SHAPE, "pool2d: x is [5, 4], not [images, height, width, channels]");
#undef IMAGE
#undef REFUSED
#undef CONV
#undef POOL
    att_param_free(w);
    att_param_free(flat);
    att_tape_free(t);
    att_close(ctx);
}

static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static float x[2 * HIGH * WIDE * CHANNELS], w[FILTERS * CHANNELS * 9];
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_param *weight = param(ctx, w, ATT_F32, ATT_DIMS(FILTERS, CHANNELS, 3, 3));
        att_tape *t = recording_tape(ctx);
        att_tensor v;
        f.fail_at = f.calls + at;
        att_var *y = att_conv2d(t, input(t, x, ATT_DIMS(2, HIGH, WIDE, CHANNELS)), weight, NULL, NULL);
        y = att_pool2d(t, y, ATT_POOLING_MAX, ATT_OPTIONS(att_pool_options, .kernel = {2, 2}));
        s = att_var_value(t, y, &v);
        s = s ? s : att_tape_backward(t, y, NULL);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        assert_true(!s == (att_param_grad(weight)->data != NULL));
        att_tape_free(t);
        att_param_free(weight);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_those_of_pytorch),
        cmocka_unit_test(poolings_are_those_of_pytorch),
        cmocka_unit_test(weights_may_lie_in_any_way_and_be_short),
        cmocka_unit_test(gradients_of_large_images_are_adjoint),
        cmocka_unit_test(bits_depend_neither_on_threads_nor_on_other_images),
        cmocka_unit_test(a_maximum_is_nan_where_one_is_and_its_gradient_goes_there),
        cmocka_unit_test(no_images_give_none),
        cmocka_unit_test(wrong_calls_are_named),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
