/* Resampling of images against PyTorch. Gradients are in gradients.c. */
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

enum { HEIGHT = 8, WIDTH = 7, CHANNELS = 2, COUNT = HEIGHT * WIDTH * CHANNELS, MOST = 13 * 15 * CHANNELS };

static void images_are_those_of_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        att_resize_options o;
    } sizes[] = {{"smaller", {.out = {3, 4}}},
                 {"larger", {.out = {13, 15}}},
                 {"both", {.out = {11, 2}}},
                 {"same", {.out = {8, 7}}},
                 {"factor", {.factor = {0.45, 1.3}}}};
    float *x = check_numbers(COUNT, 1);
    double expected[MOST];
    char name[64];
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 20; i++) {
            att_resize_options o = sizes[i / 4].o;
            o.size = sizeof o, o.mode = i & 1 ? ATT_RESIZE_BICUBIC : ATT_RESIZE_BILINEAR, o.antialias = i & 2;
            snprintf(name, sizeof name, "%s%s_%s", i & 1 ? "bicubic" : "bilinear", i & 2 ? "_antialias" : "",
                     sizes[i / 4].name);
            att_tape *t = new_tape(ctx);
            att_tensor y;
            att_var *v = att_resize(t, input(t, x, ATT_DIMS(1, HEIGHT, WIDTH, CHANNELS)), &o);
            if (att_var_value(t, v, &y))
                fail_msg("%s", att_error(ctx));
            assert_int_equal(golden_line("tests/golden/resize.txt", name, expected, MOST), check_count(&y));
            for (int n = 0; n < check_count(&y); n++) /* sums of up to 20 by 20 with weights of sum 1 or 2 */
                check_near(expected[n], ((const float *)y.data)[n], 6 * FLT_EPSILON, "%s[%d]", name, n);
            att_tape_free(t);
        }
    free(x);
}

/* The weights of a size that does not change are 0 and 1; what has the weight 0 is not read. */
static void the_same_size_copies_each_pixel(void **state)
{
    (void)state;
    float *x = check_numbers(COUNT, 1);
    x[5] = NAN, x[40] = INFINITY;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    for (int way = 0; way < 4; way++) {
        const att_resize_options o = {
            .size = sizeof o, .mode = (att_resize_mode)(way & 1), .antialias = way & 2, .out = {HEIGHT, WIDTH}};
        const float *y = read_floats(t, att_resize(t, input(t, x, ATT_DIMS(1, HEIGHT, WIDTH, CHANNELS)), &o));
        for (int i = 0; i < COUNT; i++)
            assert_true(y[i] == x[i] || (isnan(y[i]) && isnan(x[i])));
    }
    att_tape_free(t);
    att_close(ctx);
    free(x);
}

/* ---- large images */

enum { HIGH = 90, WIDE = 70, MANY = 3, IMAGE = HIGH * WIDE * MANY, NEW_HIGH = 40, NEW_WIDE = 160, NEW = 40 * 160 * 3 };

typedef struct pass {
    float y[2 * NEW], dx[2 * IMAGE];
} pass;

static pass *pass_of(int threads, int64_t images, float *x)
{
    pass *p = calloc(1, sizeof *p);
    att_ctx *ctx = check_open(NULL, threads);
    att_tape *t = recording_tape(ctx);
    att_var *in = input(t, x, ATT_DIMS(images, HIGH, WIDE, MANY));
    att_var *y = att_resize(
        t, in,
        ATT_OPTIONS(att_resize_options, .mode = ATT_RESIZE_BICUBIC, .antialias = true, .out = {NEW_HIGH, NEW_WIDE}));
    att_tensor value, dx;
    assert_int_equal(att_var_value(t, y, &value), ATT_OK);
    assert_int_equal(att_tape_backward(t, y, &value), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &dx), ATT_OK);
    memcpy(p->y, value.data, (size_t)(images * NEW) * sizeof *p->y);
    memcpy(p->dx, dx.data, (size_t)(images * IMAGE) * sizeof *p->dx);
    att_tape_free(t);
    att_close(ctx);
    return p;
}

static void bits_depend_neither_on_threads_nor_on_other_images(void **state)
{
    (void)state;
    float *x = check_numbers(2 * IMAGE, 1);
    pass *first = pass_of(1, 2, x), *alone = pass_of(2, 1, x + IMAGE);
    for (int threads = 2; threads < 5; threads++) {
        pass *p = pass_of(threads, 2, x);
        assert_memory_equal(p, first, sizeof *p);
        free(p);
    }
    assert_memory_equal(alone->y, first->y + NEW, NEW * sizeof *alone->y);
    assert_memory_equal(alone->dx, first->dx + IMAGE, IMAGE * sizeof *alone->dx);
    free(first), free(alone), free(x);
}

static void no_images_give_none(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[1];
    att_tensor y;
    att_var *v = att_resize(t, input(t, x, ATT_DIMS(0, 3, 4, 2)), ATT_OPTIONS(att_resize_options, .out = {5, 2}));
    assert_int_equal(att_var_value(t, v, &y), ATT_OK);
    assert_true(y.dim[0] == 0 && y.dim[1] == 5 && y.dim[2] == 2 && y.dim[3] == 2);
    assert_int_equal(att_tape_backward(t, v, NULL), ATT_OK);
    att_tape_free(t);
    att_close(ctx);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[24] = {0};
#define REFUSED(call, status, sentence) (assert_error(t, call, status, sentence), att_tape_reset(t))
#define RESIZE(...) att_resize(t, input(t, x, ATT_DIMS(1, 3, 4, 2)), ATT_OPTIONS(att_resize_options, __VA_ARGS__))
    REFUSED(att_resize(t, input(t, x, ATT_DIMS(1, 3, 4, 2)), NULL), ATT_ERR_ARGUMENT,
            "resize: options is NULL, but options.out or .factor is needed");
    REFUSED(att_resize(t, input(t, x, ATT_DIMS(3, 4)), ATT_OPTIONS(att_resize_options, .out = {2, 2})), ATT_ERR_SHAPE,
            "resize: x is [3, 4], not [images, height, width, channels]");
    REFUSED(att_resize(t, input(t, x, ATT_DIMS(1, 3, 0, 2)), ATT_OPTIONS(att_resize_options, .out = {2, 2})),
            ATT_ERR_SHAPE, "resize: x is [1, 3, 0, 2]: a width not from 1 to 2147483647");
    REFUSED(RESIZE(.mode = (att_resize_mode)2, .out = {2, 2}), ATT_ERR_ARGUMENT,
            "resize: mode is 2, neither ATT_RESIZE_BILINEAR nor ATT_RESIZE_BICUBIC");
    REFUSED(RESIZE(.out = {2}), ATT_ERR_ARGUMENT, "resize: width: neither out nor factor is given");
    REFUSED(RESIZE(.out = {2}, .factor = {2}), ATT_ERR_ARGUMENT, "resize: height: both out and factor are given");
    REFUSED(RESIZE(.factor = {0.3, 1}), ATT_ERR_ARGUMENT,
            "resize: height: 3 inputs by out = 0, factor = 0.3: not from 1 to 2147483647");
    REFUSED(RESIZE(.factor = {1, NAN}), ATT_ERR_ARGUMENT,
            "resize: width: 4 inputs by out = 0, factor = nan: not from 1 to 2147483647");
    REFUSED(RESIZE(.out = {-1, 2}), ATT_ERR_ARGUMENT,
            "resize: height: 3 inputs by out = -1, factor = 0: not from 1 to 2147483647");
#undef REFUSED
#undef RESIZE
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_those_of_pytorch),
        cmocka_unit_test(the_same_size_copies_each_pixel),
        cmocka_unit_test(bits_depend_neither_on_threads_nor_on_other_images),
        cmocka_unit_test(no_images_give_none),
        cmocka_unit_test(wrong_calls_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
