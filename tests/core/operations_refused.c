/* Errors of operations: one sentence with both values. Those of layers are in tape.c. */
// labels: portable
#include "fixtures/tape.h"

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float *x;
    att_var *a, *b, *none; /* [2, 3], [3, 4], NULL */
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->ctx = check_open(NULL, 1);
    f->t = new_tape(f->ctx);
    f->x = check_numbers(24, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    att_tape_free(f->t);
    att_close(f->ctx);
    free(f->x);
    free(f);
    return 0;
}

/* For the next error: only the first stays. */
static att_tape *anew(fixture *f)
{
    att_tape_reset(f->t);
    f->a = input(f->t, f->x, ATT_DIMS(2, 3));
    f->b = input(f->t, f->x, ATT_DIMS(3, 4));
    return f->t;
}

#define REFUSED(call, status, sentence) (anew(f), assert_error(f->t, call, status, sentence))

static void numbers_and_shapes_must_fit(void **state)
{
    fixture *f = *state;
    REFUSED(att_add(f->t, f->a, f->b), ATT_ERR_SHAPE, "add: a is [2, 3] but b is [3, 4]");
    REFUSED(att_add(f->t, input(f->t, f->x, ATT_DIMS(2)), f->a), ATT_ERR_SHAPE, "add: a is [2] but b is [2, 3]");
    REFUSED(att_add(f->t, input(f->t, f->x, ATT_DIMS(0, 3)), f->a), ATT_ERR_SHAPE, "add: a is [0, 3] but b is [2, 3]");
    REFUSED(att_sub(f->t, f->a, f->b), ATT_ERR_SHAPE, "sub: a is [2, 3] but b is [3, 4]");
    REFUSED(att_mul(f->t, f->a, f->b), ATT_ERR_SHAPE, "mul: a is [2, 3] but b is [3, 4]");
    REFUSED(att_matmul(f->t, f->b, f->a, NULL), ATT_ERR_SHAPE, "matmul: a is [3, 4] but b is [2, 3]");
    REFUSED(att_matmul(f->t, f->a, f->b, ATT_OPTIONS(att_matmul_options, .transpose_a = true, .transpose_b = true)),
            ATT_ERR_SHAPE, "matmul: a, transposed, is [2, 3] but b, transposed, is [3, 4]");
    REFUSED(att_matmul(f->t, input(f->t, f->x, ATT_DIMS(3)), f->a, NULL), ATT_ERR_SHAPE,
            "matmul: a is [3] and b is [2, 3], not matrices");
}

static void dimensions_must_be_there(void **state)
{
    fixture *f = *state;
    REFUSED(att_sum(f->t, f->a, 2), ATT_ERR_ARGUMENT, "sum: dim = 2 but x is [2, 3]");
    REFUSED(att_sum(f->t, f->a, -3), ATT_ERR_ARGUMENT, "sum: dim = -3 but x is [2, 3]");
    REFUSED(att_mean(f->t, f->a, 2), ATT_ERR_ARGUMENT, "mean: dim = 2 but x is [2, 3]");
    REFUSED(att_transpose(f->t, f->a, 0, 2), ATT_ERR_ARGUMENT, "transpose: dim1 = 2 but x is [2, 3]");
    REFUSED(att_transpose(f->t, f->a, -3, 2), ATT_ERR_ARGUMENT, "transpose: dim0 = -3 but x is [2, 3]");
#define DOES_NOT_FIT(shape, ...)                                                                                       \
    REFUSED(att_reshape(f->t, f->a, ATT_DIMS(__VA_ARGS__)), ATT_ERR_SHAPE,                                             \
            "reshape: x is [2, 3], whose elements do not fit into " shape)
    DOES_NOT_FIT("[5]", 5);
    DOES_NOT_FIT("[4, -1]", 4, -1);
    DOES_NOT_FIT("[-1, -1]", -1, -1);
    DOES_NOT_FIT("[-2, -3]", -2, -3);
    DOES_NOT_FIT("[0, -1]", 0, -1);
    DOES_NOT_FIT("[9223372036854775807, 3]", INT64_MAX, 3);
#undef DOES_NOT_FIT
    REFUSED(att_reshape(f->t, f->a, 0, (const int64_t[]){6}), ATT_ERR_SHAPE, "reshape: rank = 0 is not from 1 to 6");
    REFUSED(att_reshape(f->t, f->a, 7, (const int64_t[]){6, 1, 1, 1, 1, 1, 1}), ATT_ERR_SHAPE,
            "reshape: rank = 7 is not from 1 to 6");
    REFUSED(att_reshape(f->t, f->a, 1, NULL), ATT_ERR_ARGUMENT, "reshape: dim is NULL");
}

static void parts_must_be_there(void **state)
{
    fixture *f = *state;
    att_var *two[2];
#define PAIR (two[0] = f->a, two[1] = f->b, two)
    REFUSED(att_concat(f->t, 2, PAIR, 0), ATT_ERR_SHAPE,
            "concat: x[0] is [2, 3] but x[1] is [3, 4]: only dimension 0 may differ");
    REFUSED(att_concat(f->t, 2, PAIR, 2), ATT_ERR_ARGUMENT, "concat: dim = 2 but x[0] is [2, 3]");
    REFUSED(att_concat(f->t, 2, PAIR, -3), ATT_ERR_ARGUMENT, "concat: dim = -3 but x[0] is [2, 3]");
    REFUSED(att_concat(f->t, 0, PAIR, 0), ATT_ERR_ARGUMENT, "concat: n is 0, less than 1");
    REFUSED(att_concat(f->t, 2, NULL, 0), ATT_ERR_ARGUMENT, "concat: x is NULL, but n is 2");
#undef PAIR
    REFUSED(att_slice(f->t, f->a, 2, 0, 1), ATT_ERR_ARGUMENT, "slice: dim = 2 but x is [2, 3]");
    REFUSED(att_slice(f->t, f->a, -1, 2, 2), ATT_ERR_ARGUMENT, "slice: 2 from 2 on of dimension 1, but x is [2, 3]");
    REFUSED(att_slice(f->t, f->a, 0, -1, 1), ATT_ERR_ARGUMENT, "slice: 1 from -1 on of dimension 0, but x is [2, 3]");
    static const int32_t ids[] = {0, 2};
    REFUSED(att_gather(f->t, f->a, ids, 2), ATT_ERR_ARGUMENT, "gather: ids[1] = 2 but x has 2 rows");
    REFUSED(att_gather(f->t, f->a, NULL, 2), ATT_ERR_ARGUMENT, "gather: ids is NULL, but count is 2");
}

static void losses_and_dropout_need_what_they_are_given(void **state)
{
    fixture *f = *state;
    static const int32_t targets[] = {2, 3}, none[] = {-1, -1};
    static const float halves[] = {0.5f, 1, 0, 2, 1, 1};
    static const int64_t each[] = {0, 1}, offsets[] = {0, 2}, short_offsets[] = {0, 1};
    static const uint32_t ids[] = {7};
#define ENTROPY(...) att_cross_entropy(f->t, f->a, targets, ATT_OPTIONS(att_cross_entropy_options, __VA_ARGS__))
    REFUSED(att_cross_entropy(f->t, f->a, targets, NULL), ATT_ERR_ARGUMENT,
            "cross_entropy: targets[1] = 3 but there are 3 classes");
    REFUSED(ENTROPY(.classes = 2), ATT_ERR_ARGUMENT, "cross_entropy: targets[0] = 2 but there are 2 classes");
    REFUSED(ENTROPY(.classes = 4), ATT_ERR_ARGUMENT, "cross_entropy: classes = 4 but logits are [2, 3]");
    REFUSED(ENTROPY(.label_smoothing = 1), ATT_ERR_ARGUMENT, "cross_entropy: label_smoothing = 1 is not in [0, 1)");
    REFUSED(att_cross_entropy(f->t, f->a, NULL, NULL), ATT_ERR_ARGUMENT, "cross_entropy: targets is NULL");
    REFUSED(att_cross_entropy(f->t, input(f->t, f->x, ATT_DIMS(3)), none, NULL), ATT_ERR_SHAPE,
            "cross_entropy: logits are [3], not [rows, classes]");
#undef ENTROPY
    REFUSED(att_binary_cross_entropy(f->t, f->a, halves, ATT_OPTIONS(att_binary_cross_entropy_options, .sum = true)),
            ATT_ERR_ARGUMENT, "binary_cross_entropy: targets[3] = 2 is above 1");
    REFUSED(att_binary_cross_entropy(f->t, f->a, NULL, ATT_OPTIONS(att_binary_cross_entropy_options, .sum = true)),
            ATT_ERR_ARGUMENT, "binary_cross_entropy: targets is NULL");
    REFUSED(att_mean_squared_error(f->t, f->a, f->b, ATT_OPTIONS(att_mean_squared_error_options, .sum = true)),
            ATT_ERR_SHAPE, "mean_squared_error: a is [2, 3] but b is [3, 4]");
#define DROPOUT(p, residual, sequence_ids, ...)                                                                        \
    att_dropout(f->t, f->a, residual, p, 1, ATT_OPTIONS(att_positions, __VA_ARGS__), sequence_ids)
    REFUSED(DROPOUT(1, NULL, ids, .offsets = offsets, .n = 1), ATT_ERR_ARGUMENT, "dropout: p = 1 is not in [0, 1)");
    REFUSED(DROPOUT(0.5f, f->b, ids, .offsets = offsets, .n = 1), ATT_ERR_SHAPE,
            "dropout: x is [2, 3] but residual is [3, 4]");
    REFUSED(DROPOUT(0.5f, NULL, ids, .position_ids = each), ATT_ERR_ARGUMENT,
            "dropout: positions are given one by one, not by offsets");
    REFUSED(DROPOUT(0.5f, NULL, NULL, .offsets = offsets, .n = 1), ATT_ERR_ARGUMENT,
            "dropout: sequence_ids is NULL, but each of the 1 sequences needs an id");
    REFUSED(DROPOUT(0.5f, NULL, ids, .offsets = short_offsets, .n = 1), ATT_ERR_SHAPE,
            "dropout: offsets go from 0 to 1 but x is [2, 3]");
#undef DROPOUT
    REFUSED(att_rms_norm(f->t, f->a, NULL, 1), ATT_ERR_ARGUMENT, "rms_norm: gamma is NULL");
}

static void the_loss_of_a_linear_layer_is_refused_as_its_two_parts_are(void **state)
{
    fixture *f = *state;
    static const int32_t targets[] = {2, 4}, none[] = {-1, -1};
    att_param *const weight = param(f->ctx, f->x, ATT_F32, ATT_DIMS(4, 3));
    att_param *const other = param(f->ctx, f->x, ATT_F32, ATT_DIMS(3, 4));
    att_param *const bias = param(f->ctx, f->x, ATT_F32, ATT_DIMS(3));
#define LOSS(...) att_linear_cross_entropy(f->t, f->a, __VA_ARGS__)
#define OPTIONS(...) ATT_OPTIONS(att_cross_entropy_options, __VA_ARGS__)
    REFUSED(LOSS(NULL, NULL, targets, NULL), ATT_ERR_ARGUMENT, "linear_cross_entropy: weight is NULL");
    REFUSED(LOSS(other, NULL, none, NULL), ATT_ERR_SHAPE,
            "linear_cross_entropy: x has 3 features but weight is [3, 4]");
    REFUSED(LOSS(bias, NULL, none, NULL), ATT_ERR_SHAPE,
            "linear_cross_entropy: x is [2, 3] and weight is [3], not matrices");
    REFUSED(LOSS(weight, bias, none, NULL), ATT_ERR_SHAPE,
            "linear_cross_entropy: bias is [3] but weight is [4, 3]: expected [4]");
    REFUSED(LOSS(weight, NULL, NULL, NULL), ATT_ERR_ARGUMENT, "linear_cross_entropy: targets is NULL");
    REFUSED(LOSS(weight, NULL, targets, NULL), ATT_ERR_ARGUMENT,
            "linear_cross_entropy: targets[1] = 4 but there are 4 classes");
    REFUSED(LOSS(weight, NULL, targets, OPTIONS(.classes = 2)), ATT_ERR_ARGUMENT,
            "linear_cross_entropy: targets[0] = 2 but there are 2 classes");
    REFUSED(LOSS(weight, NULL, none, OPTIONS(.classes = 5)), ATT_ERR_ARGUMENT,
            "linear_cross_entropy: classes = 5 but logits are [2, 4]");
    REFUSED(LOSS(weight, NULL, none, OPTIONS(.label_smoothing = -0.5f)), ATT_ERR_ARGUMENT,
            "linear_cross_entropy: label_smoothing = -0.5 is not in [0, 1)");
    assert_null(att_linear_cross_entropy(anew(f), f->none, weight, NULL, none, NULL));
    assert_int_equal(f->t->status, ATT_OK);
#undef OPTIONS
#undef LOSS
    att_param_free(weight), att_param_free(other), att_param_free(bias);
}

static void what_was_not_made_gives_nothing(void **state)
{
    fixture *f = *state;
    att_var *const two[] = {anew(f) ? f->a : NULL, NULL};
    assert_null(att_mul(f->t, f->a, f->none));
    assert_null(att_sub(f->t, f->none, f->a));
    assert_null(att_scale(f->t, f->none, 2));
    assert_null(att_sum(f->t, f->none, 0));
    assert_null(att_mean(f->t, f->none, ATT_ALL_DIMS));
    assert_null(att_exp(f->t, f->none));
    assert_null(att_log(f->t, f->none));
    assert_null(att_reshape(f->t, f->none, 1, NULL));
    assert_null(att_transpose(f->t, f->none, 9, 9));
    assert_null(att_mean_squared_error(f->t, f->a, f->none, NULL));
    assert_null(att_matmul(f->t, f->none, f->a, NULL));
    assert_null(att_concat(f->t, 2, two, 0));
    assert_null(att_slice(f->t, f->none, 0, 0, 1));
    assert_null(att_gather(f->t, f->none, NULL, 0));
    assert_int_equal(f->t->status, ATT_OK); /* they are not errors: there must have been one before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_and_shapes_must_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dimensions_must_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_must_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(losses_and_dropout_need_what_they_are_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_loss_of_a_linear_layer_is_refused_as_its_two_parts_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_made_gives_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
