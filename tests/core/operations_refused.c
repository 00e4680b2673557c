/* What operations refuse, in one sentence with both values. Those of layers are in tape.c. */
#include "tape_help.h"

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
    REFUSED(att_add(f->t, input(f->t, f->x, ATT_DIMS(3)), f->a), ATT_ERR_SHAPE, "add: a is [3] but b is [2, 3]");
    REFUSED(att_mul(f->t, f->a, f->b), ATT_ERR_SHAPE, "mul: a is [2, 3] but b is [3, 4]");
    REFUSED(att_tape_matmul(f->t, f->b, f->a, false, false), ATT_ERR_SHAPE, "matmul: a is [3, 4] but b is [2, 3]");
    REFUSED(att_tape_matmul(f->t, f->a, f->b, true, true), ATT_ERR_SHAPE,
            "matmul: a, transposed, is [2, 3] but b, transposed, is [3, 4]");
    REFUSED(att_tape_matmul(f->t, input(f->t, f->x, ATT_DIMS(3)), f->a, false, false), ATT_ERR_SHAPE,
            "matmul: a is [3] and b is [2, 3], not matrices");
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
    REFUSED(att_concat(f->t, 0, PAIR, 0), ATT_ERR_ARGUMENT, "concat: n = 0 with these variables");
    REFUSED(att_concat(f->t, 2, NULL, 0), ATT_ERR_ARGUMENT, "concat: n = 2 with no variables");
#undef PAIR
    REFUSED(att_tape_slice(f->t, f->a, 2, 0, 1), ATT_ERR_ARGUMENT, "slice: dim = 2 but x is [2, 3]");
    REFUSED(att_tape_slice(f->t, f->a, -1, 2, 2), ATT_ERR_ARGUMENT,
            "slice: 2 from 2 on of dimension 1, but x is [2, 3]");
    REFUSED(att_tape_slice(f->t, f->a, 0, -1, 1), ATT_ERR_ARGUMENT,
            "slice: 1 from -1 on of dimension 0, but x is [2, 3]");
    static const int32_t ids[] = {0, 2};
    REFUSED(att_gather(f->t, f->a, ids, 2), ATT_ERR_ARGUMENT, "gather: ids[1] = 2 but x has 2 rows");
    REFUSED(att_gather(f->t, f->a, NULL, 2), ATT_ERR_ARGUMENT, "gather: count = 2 with no ids");
}

static void what_was_not_made_gives_nothing(void **state)
{
    fixture *f = *state;
    att_var *const two[] = {anew(f) ? f->a : NULL, NULL};
    assert_null(att_mul(f->t, f->a, f->none));
    assert_null(att_scale(f->t, f->none, 2));
    assert_null(att_tape_matmul(f->t, f->none, f->a, false, false));
    assert_null(att_concat(f->t, 2, two, 0));
    assert_null(att_tape_slice(f->t, f->none, 0, 0, 1));
    assert_null(att_gather(f->t, f->none, NULL, 0));
    assert_int_equal(f->t->status, ATT_OK); /* they are no errors: there must have been one before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_and_shapes_must_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_must_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_made_gives_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
