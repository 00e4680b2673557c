/* The loss of a linear layer without its logits takes the memory of a block of them, whatever there is of classes and
 * rows. What it computes is in linear_cross_entropy.c. */
// labels: slow
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

/* Returns the most bytes at once that forward and backward of a layer allocate. */
static long peak_of(int64_t rows, int64_t features, int64_t classes)
{
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    float *x = check_numbers(rows * features, 1), *weight = check_numbers(classes * features, 2),
          *bias = check_numbers(classes, 3);
    int32_t *targets = malloc((size_t)rows * sizeof *targets);
    for (int64_t i = 0; i < rows; i++)
        targets[i] = i % 4 == 3 ? -1 : (int32_t)(i * 37 % (classes - 1));
    att_tape *t = recording_tape(ctx);
    att_param *w = param(ctx, weight, ATT_F32, ATT_DIMS(classes, features)),
              *b = param(ctx, bias, ATT_F32, ATT_DIMS(classes));
    att_var *loss = att_linear_cross_entropy(t, input(t, x, ATT_DIMS(rows, features)), w, b, targets,
                                             ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0.1f));
    if (att_tape_backward(t, loss, NULL))
        fail_msg("%s", att_error(ctx));
    att_param_free(w), att_param_free(b);
    att_tape_free(t);
    att_close(ctx);
    free(x), free(weight), free(bias), free(targets);
    assert_int_equal(f.live, 0);
    return f.peak;
}

/* Beside dweight, dbias and dx there are blocks of at most [1024, 528] logits, these transposed, 512 weights and 1024
 * rows of x, which an arena has in blocks that may be twice as large as all before. */
static void memory_at_50000_classes_is_that_of_a_block(void **state)
{
    (void)state;
    enum { SOME = 300, FEATURES = 8, MANY = 50000 };
    const long gradients = 4L * MANY * (FEATURES + 1) + 4L * SOME * FEATURES;
    const long blocks = 4L * (2 * SOME * 528 + (512 + SOME + 64) * FEATURES * 2), logits = 4L * SOME * MANY;
    const long once = peak_of(SOME, FEATURES, MANY), twice = peak_of(SOME, FEATURES, 2 * MANY);
    assert_true(logits > 10 * (gradients + 2 * blocks)); /* so that one that stores them is found */
    if (once > gradients + 2 * blocks + (256 << 10))
        fail_msg("%ld bytes, of them %ld of gradients", once, gradients);
    assert_int_equal(twice - once, 4L * MANY * (FEATURES + 1)); /* the gradients of twice the classes */
}

static void memory_does_not_grow_with_rows_times_classes(void **state)
{
    (void)state;
    enum { FEATURES = 4 };
    const int64_t rows = 1024, many = 20000; /* a block, and more than one */
    const long once = peak_of(rows, FEATURES, many), twice = peak_of(2 * rows, FEATURES, many);
    /* a row of dx, a target, a log-sum-exp and a loss, in an arena that may be twice as large */
    assert_in_range(twice - once, 0, 2 * rows * 4 * (FEATURES + 3) + 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_at_50000_classes_is_that_of_a_block),
        cmocka_unit_test(memory_does_not_grow_with_rows_times_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
