/* detect_anomaly: which operation produced the first number that is not finite, where, forward and backward. */
#include "fixtures/tape.h"

static att_tape *anomaly_tape(att_ctx *ctx)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true, .detect_anomaly = true), &t),
                     ATT_OK);
    return t;
}

/* [2, 3] of these */
static att_var *numbers(att_tape *t, float x, float *memory)
{
    for (int i = 0; i < 6; i++)
        memory[i] = x;
    return input(t, memory, ATT_DIMS(2, 3));
}

static void the_operation_that_made_the_first_is_named_with_its_scope(void **state)
{
    (void)state;
    float x[6], bias[3] = {0, 0, 3e38f};
    float w[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = anomaly_tape(ctx);
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(3, 3)), *b = param(ctx, bias, ATT_F32, ATT_DIMS(3));
    att_scope outer = att_scope_begin(t, "model"), inner = att_scope_begin(t, "layer.1");
    att_var *y = att_linear(t, numbers(t, 2e38f, x), p, b, ATT_ACTIVATION_IDENTITY, NULL);
    y = att_scope_end(t, inner, att_activate(t, y, ATT_ACTIVATION_TANH));
    assert_error(t, att_scope_end(t, outer, y), ATT_ERR_ARGUMENT,
                 "model/layer.1: linear made inf from finite numbers: number 2 of its result, [2, 3]");
    att_tape_reset(t); /* which forgets it */
    assert_non_null(att_linear(t, numbers(t, 1, x), p, NULL, ATT_ACTIVATION_IDENTITY, NULL));
    att_param_free(p), att_param_free(b);
    att_tape_free(t);
    att_close(ctx);
}

static void numbers_that_were_not_finite_before_are_told_from_those_that_were_made(void **state)
{
    (void)state;
    float x[6], w[9] = {1, 0, 0, 0, NAN, 0, 0, 0, 1};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = anomaly_tape(ctx);
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(3, 3));
    assert_error(t, att_linear(t, numbers(t, 1, x), p, NULL, ATT_ACTIVATION_IDENTITY, NULL), ATT_ERR_ARGUMENT,
                 "linear was given nan: number 4 of its parameter 0, [3, 3]");
    att_tape_reset(t);
    att_var *v = numbers(t, 1, x);
    x[5] = INFINITY;
    assert_error(t, att_scale(t, v, 2), ATT_ERR_ARGUMENT, "scale was given inf: number 5 of its input 0, [2, 3]");
    att_param_free(p);
    att_tape_free(t);
    att_close(ctx);
}

/* 1e-30 becomes 1e20 in two steps, so the gradient is 1e50. */
static att_var *steep(att_tape *t, att_var *x)
{
    att_scope s = att_scope_begin(t, "first");
    x = att_scope_end(t, s, att_scale(t, x, 1e25f));
    s = att_scope_begin(t, "second");
    return att_scope_end(t, s, att_scale(t, x, 1e25f));
}

static void a_backward_is_named_with_its_scope_and_leaves_gradients_as_they_were(void **state)
{
    (void)state;
    float x[3] = {1e-30f, 1e-30f, 1e-30f};
    att_ctx *ctx = check_open(NULL, 1);
    att_param *p = param(ctx, x, ATT_F32, ATT_DIMS(3));
    att_tape *t = anomaly_tape(ctx);
    assert_int_equal(att_tape_backward(t, steep(t, att_parameter(t, p)), NULL), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx),
                        "first: scale, backward, made inf from finite numbers: number 0 of the gradient "
                        "of its input 0, [3]");
    assert_null(att_param_grad(p)->data);
    att_tape_free(t);
    t = recording_tape(ctx); /* without the check */
    assert_int_equal(att_tape_backward(t, steep(t, att_parameter(t, p)), NULL), ATT_OK);
    assert_true(isinf(((const float *)att_param_grad(p)->data)[0]));
    att_tape_free(t);
    att_param_free(p);
    att_close(ctx);
}

static void a_gradient_of_a_parameter_is_looked_at_too(void **state)
{
    (void)state;
    float x[6], w[3] = {0, 0, 0}, slope[2] = {1e20f, 1e20f};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = anomaly_tape(ctx);
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(1, 3));
    const att_tensor dy = view(slope, ATT_F32, ATT_DIMS(2, 1));
    att_var *y = att_linear(t, numbers(t, 1e20f, x), p, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    assert_int_equal(att_tape_backward(t, y, &dy), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx),
                        "linear, backward, made inf from finite numbers: number 0 of the gradient of its "
                        "parameter 0, [1, 3]");
    att_param_free(p);
    att_tape_free(t);
    att_close(ctx);
}

static att_var *squares(const void *user, att_tape *t, att_var *const *x)
{
    (void)user;
    att_scope s = att_scope_begin(t, "inside");
    att_var *y = att_mul(t, x[0], x[0]);
    return att_scope_end(t, s, att_mul(t, y, y));
}

static void what_is_computed_again_is_looked_at_by_its_own_operations(void **state)
{
    (void)state;
    float x[6];
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = anomaly_tape(ctx);
    att_var *v = numbers(t, 1e15f, x);
    assert_error(t, att_recompute(t, squares, NULL, 0, &v, 1), ATT_ERR_ARGUMENT,
                 "inside: mul made inf from finite numbers: number 0 of its result, [2, 3]");
    att_tape_reset(t);
    v = numbers(t, 1e9f, x); /* to 1e36, whose slope, 4e27, times 1e12 is beyond */
    att_var *y = att_scale(t, att_recompute(t, squares, NULL, 0, &v, 1), 1e-36f);
    float slope[6] = {0, 1e38f};
    const att_tensor dy = view(slope, ATT_F32, ATT_DIMS(2, 3));
    assert_int_equal(att_tape_backward(t, y, &dy), ATT_OK);
    slope[1] = 3e38f;
    att_tape_reset(t);
    v = numbers(t, 1e9f, x);
    y = att_recompute(t, squares, NULL, 0, &v, 1);
    assert_int_equal(att_tape_backward(t, y, &dy), ATT_ERR_ARGUMENT);
    check_message(ctx, "inside: mul, backward, made inf from finite numbers: number 1 of the gradient of its input 0");
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operation_that_made_the_first_is_named_with_its_scope),
        cmocka_unit_test(numbers_that_were_not_finite_before_are_told_from_those_that_were_made),
        cmocka_unit_test(a_backward_is_named_with_its_scope_and_leaves_gradients_as_they_were),
        cmocka_unit_test(a_gradient_of_a_parameter_is_looked_at_too),
        cmocka_unit_test(what_is_computed_again_is_looked_at_by_its_own_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
