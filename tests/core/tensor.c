/* Views: made, described, checked. */
#include "base/base.h"
#include "fixtures/check.h"
#include "tensor/tensor.h"

/* ---- views */

static void a_view_without_strides_is_dense(void **state)
{
    (void)state;
    float x[24];
    att_tensor t;
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(2, 3, 4), NULL), ATT_OK);
    assert_true(t.data == x && t.rank == 3 && t.stride[0] == 12 && t.stride[1] == 4 && t.stride[2] == 1);
    assert_int_equal(att_count(&t), 24);
    assert_true(att_is_dense(&t));
    assert_string_equal(att_shape_of(&t).text, "[2, 3, 4]");
    assert_int_equal(att_wrap(&t, x, ATT_F32, 0, NULL, NULL), ATT_OK);
    assert_int_equal(att_count(&t), 1);
    assert_string_equal(att_shape_of(&t).text, "[]");
    assert_int_equal(att_wrap(&t, NULL, ATT_I64, ATT_DIMS(5, 0, 2), NULL), ATT_OK);
    assert_int_equal(att_count(&t), 0);
    const int64_t largest = INT64_MAX;
    const att_tensor wide = {.rank = 6, .dim = {largest, largest, largest, largest, largest, largest}};
    assert_int_equal(strlen(att_shape_of(&wide).text), 6 * 19 + 5 * 2 + 2);
}

static void strides_are_taken_as_given(void **state)
{
    (void)state;
    float x[24];
    att_tensor t;
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(4, 6), (const int64_t[]){1, 4}), ATT_OK);
    assert_false(att_is_dense(&t));
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(1, 6), (const int64_t[]){99, 1}), ATT_OK);
    assert_true(att_is_dense(&t)); /* the stride of a single row does not matter */
    assert_int_equal(att_wrap(&t, NULL, ATT_F32, ATT_DIMS(3, 0, 5), NULL), ATT_OK);
    assert_true(att_is_dense(&t)); /* nor does it matter that there is none */
    assert_int_equal(att_wrap(&t, x + 23, ATT_F32, ATT_DIMS(24), (const int64_t[]){-1}), ATT_OK);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(1000, 24), (const int64_t[]){0, 1}), ATT_OK);
}

static void impossible_views_are_refused(void **state)
{
    (void)state;
    float x[8];
    att_tensor t;
    const int64_t big = INT64_MAX / 4, dims[7] = {1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(att_wrap(&t, x, ATT_F32, 7, dims, NULL), ATT_ERR_SHAPE);
    check_message(NULL, "rank = 7");
    assert_null(t.data);
    assert_int_equal(att_wrap(&t, x, ATT_F32, -1, dims, NULL), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(2, -3), NULL), ATT_ERR_SHAPE);
    check_message(NULL, "dim[1] = -3");
    assert_int_equal(att_wrap(&t, x, (att_dtype)77, ATT_DIMS(2), NULL), ATT_ERR_DTYPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(big, 8), NULL), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(0, big, 8), NULL), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(big), NULL), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(3), (const int64_t[]){INT64_MIN}), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, ATT_DIMS(3), (const int64_t[]){INT64_MAX}), ATT_ERR_SHAPE);
    assert_int_equal(att_wrap(&t, x, ATT_F32, 1, NULL, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_wrap(NULL, x, ATT_F32, 0, NULL, NULL), ATT_ERR_ARGUMENT);
}

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    assert_string_equal(att_dtype_name(ATT_BF16), "bf16");
    assert_int_equal(att_dtype_size(ATT_F32), 4);
    assert_int_equal(att_dtype_size(ATT_BOOL), 1);
    assert_int_equal(att_dtype_size((att_dtype)-1), 0);
    assert_non_null(att_dtype_name((att_dtype)99));
}

static void checks_name_the_argument_and_both_values(void **state)
{
    (void)state;
    float x[24];
    att_tensor t, u;
    att_wrap(&t, x, ATT_F32, ATT_DIMS(4, 6), NULL);
    att_wrap(&u, x, ATT_F32, ATT_DIMS(4, 5), NULL);
    assert_int_equal(att_check(NULL, "q", &t, ATT_F32, 2), ATT_OK);
    assert_int_equal(att_check(NULL, "q", &t, ATT_F16, 2), ATT_ERR_DTYPE);
    check_message(NULL, "q is f32 but must be f16");
    assert_int_equal(att_check(NULL, "q", &t, ATT_F32, 4), ATT_ERR_SHAPE);
    check_message(NULL, "q [4, 6] has 2 dimensions but must have 4");
    assert_int_equal(att_check(NULL, "q", NULL, ATT_F32, 4), ATT_ERR_ARGUMENT);
    check_message(NULL, "q is NULL");
    assert_int_equal(att_check_dim(NULL, "k", &t, 1, "q.dim[1]", 6), ATT_OK);
    assert_int_equal(att_check_dim(NULL, "k", &t, 1, "q.dim[1]", 7), ATT_ERR_SHAPE);
    check_message(NULL, "k.dim[1] = 6 but q.dim[1] = 7");
    assert_int_equal(att_check_same_shape(NULL, "out", &t, "x", &u), ATT_ERR_SHAPE);
    check_message(NULL, "out is [4, 6] but x is [4, 5]");
    att_wrap(&t, x, ATT_F32, ATT_DIMS(4, 6), (const int64_t[]){0, 1});
    assert_int_equal(att_check_output(NULL, "out", &t, ATT_F32, 2), ATT_ERR_SHAPE);
    check_message(NULL, "out.stride[0] = 0");
    att_wrap(&t, x, ATT_F32, ATT_DIMS(4, 6), (const int64_t[]){5, 1});
    assert_int_equal(att_check_output(NULL, "out", &t, ATT_F32, 2), ATT_ERR_SHAPE);
    check_message(
        NULL, "out is written, so its elements must not overlap: out.stride[0] = 5, but the smaller strides reach 5 "
              "elements");
    att_wrap(&t, x, ATT_F32, ATT_DIMS(4, 6), (const int64_t[]){1, 4});
    assert_int_equal(att_check_output(NULL, "out", &t, ATT_F32, 2), ATT_OK);
    att_wrap(&t, NULL, ATT_F32, ATT_DIMS(4, 6), NULL);
    assert_int_equal(att_check(NULL, "q", &t, ATT_F32, 2), ATT_ERR_ARGUMENT);
    check_message(NULL, "q [4, 6] has no memory");
    assert_int_equal(att_check(NULL, "q", &(att_tensor){0}, ATT_F32, 2), ATT_ERR_ARGUMENT);
    check_message(NULL, "q is not set: it has no data and no dimensions");
}

static void overlap_is_seen_in_either_direction(void **state)
{
    (void)state;
    float x[24];
    att_tensor front, back, reversed, empty;
    att_wrap(&front, x, ATT_F32, ATT_DIMS(2, 6), NULL);
    att_wrap(&back, x + 12, ATT_F32, ATT_DIMS(2, 6), NULL);
    att_wrap(&reversed, x + 12, ATT_F32, ATT_DIMS(2), (const int64_t[]){-1});
    att_wrap(&empty, x, ATT_F32, ATT_DIMS(0, 6), NULL);
    assert_false(att_overlap(&front, &back));
    assert_true(att_overlap(&front, &front));
    assert_true(att_overlap(&front, &reversed));
    assert_true(att_overlap(&reversed, &back));
    assert_false(att_overlap(&front, &empty));
    assert_int_equal(att_check_apart(NULL, "out", &front, "q", &reversed), ATT_ERR_ARGUMENT);
    check_message(NULL, "overlap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_without_strides_is_dense),
        cmocka_unit_test(strides_are_taken_as_given),
        cmocka_unit_test(impossible_views_are_refused),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(checks_name_the_argument_and_both_values),
        cmocka_unit_test(overlap_is_seen_in_either_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
