/* Broadcasting, sums and transposes at sizes that are divided among threads. Their gradients at small sizes are in
 * gradients.c. */
#include "fixtures/tape.h"

/* The gradients of two inputs after a backward pass. */
typedef struct outcome {
    float *y, *da, *db;
    int64_t n_y, n_a, n_b;
} outcome;

static float *copy_of(const att_tensor *x, int64_t *n)
{
    *n = att_count(x);
    float *y = malloc((size_t)(*n + 1) * sizeof *y);
    if (*n)
        memcpy(y, x->data, (size_t)*n * sizeof *y);
    return y;
}

static void outcome_free(outcome *o) { free(o->y), free(o->da), free(o->db); }

typedef att_var *build(att_tape *t, att_var *a, att_var *b);

/* f of a and b on a number of threads */
static outcome run(build *f, int threads, att_tensor a, att_tensor b)
{
    outcome o;
    att_ctx *ctx = check_open(NULL, threads);
    att_tape *t = recording_tape(ctx);
    att_tensor v;
    att_var *x[] = {att_input(t, &a), att_input(t, &b)}, *y = f(t, x[0], x[1]);
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    o.y = copy_of(&v, &o.n_y);
    v.data = check_numbers(o.n_y, 3);
    assert_int_equal(att_tape_backward(t, y, &v), ATT_OK);
    free(v.data);
    assert_int_equal(att_var_grad(t, x[0], &v), ATT_OK);
    o.da = copy_of(&v, &o.n_a);
    assert_int_equal(att_var_grad(t, x[1], &v), ATT_OK);
    o.db = copy_of(&v, &o.n_b);
    att_tape_free(t);
    att_close(ctx);
    return o;
}

static att_var *all_of(att_tape *t, att_var *a, att_var *b)
{
    att_var *y = att_sub(t, att_mul(t, a, b), att_add(t, b, a));
    att_var *z = att_transpose(t, att_sum(t, att_exp(t, y), -1), 0, 1);
    return att_add(t, att_mean(t, z, 0),
                   att_mean_squared_error(t, y, att_transpose(t, att_transpose(t, y, 0, 2), 2, 0), NULL));
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    enum { A = 67, B = 41, C = 130 };
    float *a = check_numbers(A * C, 1), *b = check_numbers(B * C, 2);
    outcome one = {0};
    for (int threads = 1; threads <= 4; threads++) {
        outcome o = run(all_of, threads, view(a, ATT_F32, ATT_DIMS(A, 1, C)), view(b, ATT_F32, ATT_DIMS(B, C)));
        one = threads == 1 ? o : one;
        assert_int_equal(o.n_y, A);
        assert_memory_equal(o.y, one.y, A * sizeof(float));
        assert_memory_equal(o.da, one.da, A * C * sizeof(float));
        assert_memory_equal(o.db, one.db, B * C * sizeof(float));
        if (threads > 1)
            outcome_free(&o);
    }
    outcome_free(&one);
    free(a), free(b);
}

static att_var *add(att_tape *t, att_var *a, att_var *b) { return att_add(t, a, b); }
static att_var *mul(att_tape *t, att_var *a, att_var *b) { return att_mul(t, a, b); }

static void a_bias_has_the_sum_of_rows_in_ascending_order(void **state)
{
    (void)state;
    enum { ROWS = 400, FEATURES = 97 };
    float *x = check_numbers(ROWS * FEATURES, 1), *bias = check_numbers(FEATURES, 2),
          *dy = check_numbers(ROWS * FEATURES, 3);
    outcome o = run(add, 2, view(x, ATT_F32, ATT_DIMS(4, ROWS / 4, FEATURES)), view(bias, ATT_F32, ATT_DIMS(FEATURES)));
    for (int i = 0; i < FEATURES; i++) {
        float sum = 0;
        for (int r = 0; r < ROWS; r++) {
            sum += dy[r * FEATURES + i];
            assert_true(o.y[r * FEATURES + i] == x[r * FEATURES + i] + bias[i]);
        }
        assert_true(o.db[i] == sum);
    }
    assert_memory_equal(o.da, dy, ROWS * FEATURES * sizeof *dy);
    outcome_free(&o);
    free(x), free(bias), free(dy);
}

/* A number that all elements share, and one for each row: sums of as many are as exact as those of a few. */
static void sums_of_many_numbers_are_exact(void **state)
{
    (void)state;
    enum { MANY = 1000003 };
    static const int64_t shapes[][2] = {{MANY, 1}, {1, MANY}, {MANY / 7, 7}};
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = new_tape(ctx);
    float *x = malloc(MANY * sizeof *x);
    for (int i = 0; i < MANY; i++)
        x[i] = 0.1f + 0.01f * check_uniform(1, (uint64_t)i);
    for (int s = 0; s < 3; s++)
        for (int dim = 0; dim < 2; dim++) {
            const int64_t n = shapes[s][dim], m = shapes[s][!dim];
            const float *y = read_floats(t, att_sum(t, input(t, x, 2, shapes[s]), dim));
            for (int64_t i = 0; i < m && i < 9; i++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += (double)x[dim ? i * n + j : j * m + i];
                /* 64 rows, then n / 64 sums: half a unit of each partial sum, of both signs; then one number */
                check_near(sum, y[i], sum * FLT_EPSILON * (1 + 2 * sqrt(64 + (double)n / 64)), "sum of %d", (int)n);
            }
        }
    double sum = 0;
    for (int i = 0; i < MANY; i++)
        sum += (double)x[i];
    const float *y = read_floats(t, att_mean(t, input(t, x, ATT_DIMS(MANY)), ATT_ALL_DIMS));
    check_near(sum / MANY, y[0], sum / MANY * FLT_EPSILON * 8,
               "mean"); /* chains of 4096 in lanes, the rest in double */
    att_tape_free(t);
    att_close(ctx);
    free(x);
}

static void a_factor_for_all_has_an_exact_gradient(void **state)
{
    (void)state;
    enum { N = 200000 };
    float *x = check_numbers(N, 1), factor = 0.5f, *dy = check_numbers(N, 3);
    outcome o = run(mul, 3, view(x, ATT_F32, ATT_DIMS(N)), view(&factor, ATT_F32, ATT_DIMS(1)));
    double sum = 0, size = 0;
    for (int i = 0; i < N; i++) {
        assert_true(o.y[i] == x[i] * factor && o.da[i] == dy[i] * factor);
        sum += (double)(x[i] * dy[i]);
        size += fabs((double)(x[i] * dy[i]));
    }
    assert_int_equal(o.n_b, 1);
    check_near(sum, o.db[0], size / N * 4096 * FLT_EPSILON + fabs(sum) * FLT_EPSILON, "gradient of a factor");
    outcome_free(&o);
    free(x), free(dy);
}

static void nothing_has_sums_of_0(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = recording_tape(ctx);
    float none[1], one = 7;
    att_var *x = input(t, none, ATT_DIMS(2, 0, 3)), *b = input(t, &one, ATT_DIMS(1));
    const float *sum = read_floats(t, att_sum(t, x, 1)), *mean = read_floats(t, att_mean(t, x, 1));
    for (int i = 0; i < 6; i++)
        assert_true(sum[i] == 0 && mean[i] == 0);
    assert_true(read_floats(t, att_mean(t, x, ATT_ALL_DIMS))[0] == 0);
    att_var *empty[] = {att_sum(t, x, 0), att_mean(t, x, 2), att_add(t, x, b), att_exp(t, x)};
    for (int i = 0; i < 4; i++)
        assert_int_equal(read_floats(t, empty[i]) ? att_count(&empty[i]->value) : 0, 0);
    assert_true(read_floats(t, att_mean_squared_error(t, x, x, NULL))[0] == 0);
    att_tensor y, grad;
    att_var *last = att_mul(t, att_transpose(t, att_reshape(t, x, ATT_DIMS(0, 5)), 0, 1), b);
    assert_int_equal(att_var_value(t, last, &y), ATT_OK);
    assert_true(y.rank == 2 && y.dim[0] == 5 && y.dim[1] == 0);
    assert_int_equal(att_tape_backward(t, att_sum(t, att_mean(t, last, 1), 0), NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, b, &grad), ATT_OK);
    assert_true(*(const float *)grad.data == 0);
    att_tape_free(t);
    att_close(ctx);
}

static void a_reshape_is_a_view(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(24, 1);
    att_tensor y;
    assert_int_equal(att_var_value(t, att_reshape(t, input(t, x, ATT_DIMS(4, 6)), ATT_DIMS(2, -1, 3)), &y), ATT_OK);
    assert_true(y.data == x && y.rank == 3 && y.dim[0] == 2 && y.dim[1] == 4 && y.dim[2] == 3);
    assert_true(y.stride[0] == 12 && y.stride[1] == 3 && y.stride[2] == 1);
    free(x);
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_bias_has_the_sum_of_rows_in_ascending_order),
        cmocka_unit_test(sums_of_many_numbers_are_exact),
        cmocka_unit_test(a_factor_for_all_has_an_exact_gradient),
        cmocka_unit_test(nothing_has_sums_of_0),
        cmocka_unit_test(a_reshape_is_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
