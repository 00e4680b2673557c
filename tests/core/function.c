/* Operations of the caller's own, and the check of their backward. Gradients are in gradients.c, too. */
// labels: portable
#include "fixtures/gradients_function.h"

/* The deviations of the test's function, which computes y = a b of two inputs of one shape. */
typedef struct behavior {
    bool fails, fails_with_sentence, backward_fails, half, overwrites, leaves_last, counts_calls, wrong_alone;
} behavior;

static int calls;

static att_status product_forward(const void *user, const att_tensor *x, const att_tensor *y)
{
    const behavior *how = user;
    const float *a = x[0].data, *b = x[1].data;
    const int64_t n = check_count(y);
    for (int64_t i = 0; i < n - how->leaves_last; i++)
        ((float *)y->data)[i] = a[i] * b[i] + (how->counts_calls ? (float)calls : 0);
    calls++;
    if (how->fails_with_sentence)
        return att_fail(NULL, ATT_ERR_FORMAT, "a is %d", 7);
    return how->fails ? ATT_ERR_FORMAT : ATT_OK;
}

static void add_product(const behavior *how, const att_tensor *dx, const float *dy, const float *other)
{
    float *to = dx->data;
    for (int64_t i = 0; to && i < check_count(dx); i++) {
        const float d = dy[i] * other[i] * (how->half && i == 3 ? 0.5f : 1);
        to[i] = how->overwrites ? d : to[i] + d;
    }
}

static att_status product_backward(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                                   const att_tensor *dx)
{
    (void)y;
    const behavior *how = user;
    if (how->backward_fails)
        return ATT_ERR_CANCELLED;
    if (how->wrong_alone && !dx[0].data)
        return ATT_OK;
    add_product(how, &dx[0], dy->data, x[1].data);
    add_product(how, &dx[1], dy->data, x[0].data);
    return ATT_OK;
}

static const att_function product = {
    .size = sizeof product, .name = "product", .forward = product_forward, .backward = product_backward};

enum { ROWS = 2, COLUMNS = 3, COUNT = ROWS * COLUMNS };
#define SHAPE ATT_DIMS(ROWS, COLUMNS)

static att_var *product_of(att_tape *t, att_var *a, att_var *b, behavior how)
{
    att_var *const x[] = {a, b};
    att_var *y = att_apply(t, &product, &how, sizeof how, x, 2, SHAPE);
    how.half = true; /* too late: the tape has a copy */
    return y;
}

/* ---- on a tape */

static const char *seen;
static void hook(void *user, const att_tape_event *event)
{
    (void)user;
    seen = event->op;
}

static void it_is_an_operation_of_its_name(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t;
    float a[COUNT] = {1, 2, 3, 4, 5, 6}, b[COUNT] = {7, 8, 9, 10, 11, 12};
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true, .hook = hook), &t), ATT_OK);
    att_var *x = input(t, a, SHAPE), *y = product_of(t, x, att_scale(t, input(t, b, SHAPE), 1), (behavior){0});
    assert_string_equal(seen, "product");
    const float *value = read_floats(t, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(value[i] == a[i] * b[i]);
    att_tensor grad;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, x, &grad), ATT_OK);
    assert_memory_equal(grad.data, b, sizeof b);
    att_tape_free(t);
    att_close(ctx);
}

/* No gradient is wanted for a constant. Both inputs may be one variable; then both gradients are added to its
 * gradient. */
static void an_input_may_be_constant_or_given_twice(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float a[COUNT] = {1, 2, 3, 4, 5, 6};
    const att_tensor constant = view(a, ATT_F32, SHAPE);
    att_tensor grad;
    att_var *x = input(t, a, SHAPE);
    att_var *y =
        att_add(t, product_of(t, att_constant(t, &constant), x, (behavior){0}), product_of(t, x, x, (behavior){0}));
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, x, &grad), ATT_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(((float *)grad.data)[i] == 3 * a[i]);
    att_tape_free(t);
    att_close(ctx);
}

static att_var *squared(const void *user, att_tape *t, att_var *const *x)
{
    return product_of(t, x[0], x[0], *(const behavior *)user);
}

static void it_may_be_recomputed(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float a[COUNT] = {1, 2, 3, 4, 5, 6};
    const behavior how = {0};
    att_tensor grad;
    att_var *x = input(t, a, SHAPE), *y = att_recompute(t, squared, &how, sizeof how, &x, 1);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, x, &grad), ATT_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(((float *)grad.data)[i] == 2 * a[i]);
    att_tape_free(t);
    att_close(ctx);
}

static void an_anomaly_has_its_name(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t;
    float a[COUNT] = {1, 2, 1e30f, 4, 5, 6}, b[COUNT] = {[2] = 1e30f};
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true, .detect_anomaly = true), &t),
                     ATT_OK);
    assert_error(t, product_of(t, input(t, a, SHAPE), input(t, b, SHAPE), (behavior){0}), ATT_ERR_ARGUMENT,
                 "product made inf from finite numbers: number 2 of its result, [2, 3]");
    att_tape_free(t);
    att_close(ctx);
}

static void its_errors_are_those_of_the_tape(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float a[COUNT] = {0};
    att_fail(ctx, ATT_ERR_MEMORY, "an older sentence");
    assert_error(t, product_of(t, input(t, a, SHAPE), input(t, a, SHAPE), (behavior){.fails = true}), ATT_ERR_FORMAT,
                 "product: forward: a file's content is damaged or not what it should be");
    att_tape_reset(t);
    att_scope_begin(t, "layer");
    assert_error(t, product_of(t, input(t, a, SHAPE), input(t, a, SHAPE), (behavior){.fails_with_sentence = true}),
                 ATT_ERR_FORMAT, "layer: product: forward: a is 7");
    att_tape_reset(t);
    att_param *w = param(ctx, a, ATT_F32, SHAPE);
    att_var *y = product_of(t, input(t, a, SHAPE), att_parameter(t, w), (behavior){.backward_fails = true});
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_ERR_CANCELLED);
    assert_string_equal(att_error(ctx), "product: backward: cancelled");
    assert_null(att_param_grad(w)->data);
    att_param_free(w);
    att_tape_free(t);
    att_close(ctx);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float a[COUNT] = {0};
    const behavior how = {0};
    att_var *x[] = {input(t, a, SHAPE), input(t, a, SHAPE)};
    att_function without = product;
#define REFUSED(call, sentence) (assert_error(t, call, ATT_ERR_ARGUMENT, sentence), att_tape_reset(t))
    without.backward = NULL;
    REFUSED(att_apply(t, &without, &how, sizeof how, x, 2, SHAPE), "apply: function.backward is NULL");
    REFUSED(att_apply(t, NULL, &how, sizeof how, x, 2, SHAPE), "apply: function is NULL");
    REFUSED(att_apply(t, &product, NULL, 1, x, 2, SHAPE), "product: user is NULL, but user_bytes is 1");
    REFUSED(att_apply(t, &product, &how, sizeof how, x, 0, SHAPE), "product: n is 0, less than 1");
    REFUSED(att_apply(t, &product, &how, sizeof how, x, 2, 0, NULL), "product: rank is 0, less than 1");
    REFUSED(att_apply(t, &product, &how, sizeof how, x, 2, 1, NULL), "att_wrap: dim is NULL but rank = 1");
#undef REFUSED
    att_tape_free(t);
    att_close(ctx);
}

/* ---- att_verify_function */

static att_status verified(att_ctx *ctx, behavior how)
{
    float *a = check_numbers(COUNT, 1), *b = check_numbers(COUNT, 2);
    const att_tensor x[] = {view(a, ATT_F32, SHAPE), view(b, ATT_F32, SHAPE)};
    const att_status s = att_verify_function(ctx, &product, &how, x, 2, SHAPE);
    free(a), free(b);
    return s;
}

static void what_is_right_is_accepted(void **state)
{
    (void)state;
    enum { MANY = 200, FEW = 5 };
    att_ctx *ctx = check_open(NULL, 1);
    const float factor = 1.5f;
    float *a = check_numbers(MANY * FEW, 1), *b = check_numbers(FEW, 2);
    const att_tensor x[] = {view(a, ATT_F32, ATT_DIMS(MANY, FEW)), view(b, ATT_F32, ATT_DIMS(FEW))};
    assert_int_equal(verified(ctx, (behavior){0}), ATT_OK);
    assert_int_equal(att_verify_function(ctx, &weighted_squares, &factor, x, 2, ATT_DIMS(MANY)), ATT_OK);
    free(a), free(b);
    att_close(ctx);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        behavior how;
        att_status status;
        const char *begin; /* of the sentence */
    } wrong[] = {
        {{.half = true}, ATT_ERR_ARGUMENT, "product: backward gives "},
        {{.overwrites = true}, ATT_ERR_ARGUMENT, "product: backward, which overwrites, but should add, gives "},
        {{.leaves_last = true}, ATT_ERR_ARGUMENT, "product: forward gives nan for y[5], then 0: it does not write it"},
        {{.counts_calls = true}, ATT_ERR_ARGUMENT, "product: forward gives "},
        {{.wrong_alone = true}, ATT_ERR_ARGUMENT, "product: backward gives 0 for dx[1][0] if only dx[1] is wanted"},
        {{.fails = true}, ATT_ERR_FORMAT, "product: forward: a file's content is damaged or not what it should be"},
        {{.backward_fails = true}, ATT_ERR_CANCELLED, "product: backward: cancelled"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(verified(ctx, wrong[i].how), wrong[i].status);
        if (strncmp(att_error(ctx), wrong[i].begin, strlen(wrong[i].begin)) != 0)
            fail_msg("\"%s\", not \"%s...\"", att_error(ctx), wrong[i].begin);
    }
    assert_int_equal(verified(ctx, (behavior){.half = true}), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "for dx[0][3], but differences of forward "));
    att_close(ctx);
}

static void wrong_tensors_to_verify_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float a[COUNT] = {0};
    att_tensor x[] = {view(a, ATT_F32, SHAPE), view(a, ATT_F32, SHAPE)};
    const behavior how = {0};
    x[1].stride[0] = 7;
    assert_int_equal(att_verify_function(ctx, &product, &how, x, 2, SHAPE), ATT_ERR_SHAPE);
    assert_string_equal(att_error(ctx), "verify_function: x[1] is [2, 3]: not dense, or of rank 0");
    x[1].dtype = ATT_BF16;
    assert_int_equal(att_verify_function(ctx, &product, &how, x, 2, SHAPE), ATT_ERR_DTYPE);
    assert_int_equal(att_verify_function(ctx, &product, &how, x, 0, SHAPE), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "verify_function: n is 0, less than 1");
    att_close(ctx);
}

static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        f.fail_at = f.calls + at;
        s = verified(ctx, (behavior){0});
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_an_operation_of_its_name),
        cmocka_unit_test(an_input_may_be_constant_or_given_twice),
        cmocka_unit_test(it_may_be_recomputed),
        cmocka_unit_test(an_anomaly_has_its_name),
        cmocka_unit_test(its_errors_are_those_of_the_tape),
        cmocka_unit_test(wrong_calls_are_named),
        cmocka_unit_test(what_is_right_is_accepted),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(wrong_tensors_to_verify_are_named),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
