/* The tape: scopes, errors, parameters, and what holds of all operations together. */
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

#include <pthread.h>

/* ---- scopes */

static void a_scope_frees_all_but_one(void **state)
{
    (void)state;
    enum { ROWS = 300, F = 100 };
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(ROWS * F, 1);
    att_var *in = input(t, x, ATT_DIMS(ROWS, F));
    const size_t before = att_arena_mark(&t->arena);
    att_scope s = att_scope_begin(t, "double");
    att_var *y = att_add(t, in, in);
    for (int i = 0; i < 4; i++)
        y = att_add(t, y, in);
    y = att_scope_end(t, s, y);
    const float *sixfold = read_floats(t, y);
    for (int i = 0; i < ROWS * F; i++)
        assert_true(fabsf(sixfold[i] - 6 * x[i]) <= 16 * FLT_EPSILON);
    assert_true(att_arena_mark(&t->arena) - before < ROWS * F * sizeof(float) + 1024);
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

static void a_scope_keeps_what_views_others_and_what_was_made_outside(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[6] = {1, 2, 3, 4, 5, 6};
    att_tensor v;

    att_scope s = att_scope_begin(t, "first"); /* at the very start of the tape */
    att_var *split = att_scope_end(t, s, att_split_heads(t, input(t, x, ATT_DIMS(1, 6)), 2));
    assert_int_equal(att_var_value(t, split, &v), ATT_OK);
    assert_ptr_equal(v.data, x);
    assert_int_equal(v.dim[1], 2);

    att_var *outside = att_add(t, split, split);
    s = att_scope_begin(t, "second");
    att_var *merged = att_merge_heads(t, outside);
    att_add(t, merged, merged);
    merged = att_scope_end(t, s, merged);
    assert_ptr_equal(read_floats(t, merged), read_floats(t, outside));

    s = att_scope_begin(t, "third");
    att_add(t, outside, outside);
    assert_ptr_equal(att_scope_end(t, s, outside), outside);
    assert_true(read_floats(t, outside)[5] == 12);

    s = att_scope_begin(t, "fourth");
    att_add(t, outside, outside);
    merged = att_merge_heads(t, att_add(t, outside, split));
    merged = att_scope_end(t, s, merged);
    att_add(t, outside, outside); /* takes the memory that was freed */
    assert_true(read_floats(t, merged)[0] == 3 && read_floats(t, merged)[5] == 18);
    att_tape_free(t);
    att_close(ctx);
}

static void nested_scopes_move_their_result_down_step_by_step(void **state)
{
    (void)state;
    enum { F = 5000, DEPTH = 12 };
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(F, 1);
    att_scope s[DEPTH];
    att_var *y = input(t, x, ATT_DIMS(1, F));
    for (int i = 0; i < DEPTH; i++) {
        s[i] = att_scope_begin(t, "deeper");
        y = att_add(t, y, y);
    }
    for (int i = DEPTH - 1; i >= 0; i--)
        y = att_scope_end(t, s[i], y);
    for (int i = 0; i < F; i++)
        assert_true(read_floats(t, y)[i] == x[i] * (1 << DEPTH));
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

static void a_scope_that_stays_open_holds_one_result_at_a_time(void **state)
{
    (void)state;
    enum { F = 5000, STEPS = 20 };
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(F, 1);
    att_scope s = att_scope_begin(t, "steps");
    const size_t before = att_arena_mark(&t->arena);
    att_var *y = input(t, x, ATT_DIMS(1, F));
    for (int i = 0; i < STEPS; i++)
        y = att_scope_reset(t, s, att_add(t, y, y));
    assert_true(att_arena_mark(&t->arena) - before < F * sizeof(float) + 1024);
    att_scope inner = att_scope_begin(t, "inner");
    assert_ptr_equal(att_scope_reset(t, inner, y), y); /* made outside: stays where it is */
    att_scope_end(t, inner, NULL);
    y = att_scope_end(t, s, y);
    for (int i = 0; i < F; i++)
        assert_true(read_floats(t, y)[i] == x[i] * (1 << STEPS));
    assert_error(t, att_scope_reset(t, s, y), ATT_ERR_ARGUMENT,
                 "scope_keep: this scope is not the innermost one that is open");
    att_tape_reset(t);
    s = att_scope_begin(t, "outer");
    att_scope_begin(t, "inner");
    assert_error(t, att_scope_reset(t, s, NULL), ATT_ERR_ARGUMENT,
                 "outer/inner: scope_keep: this scope is not the innermost one that is open");
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

static void a_scope_ends_once(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    att_scope s = att_scope_begin(t, "one");
    att_scope_end(t, s, NULL);
    assert_error(t, att_scope_end(t, s, NULL), ATT_ERR_ARGUMENT, "scope_end: this scope has ended already");
    att_tape_free(t);
    att_close(ctx);
}

/* ---- errors */

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float x[64];
    att_param *w, *b; /* [3, 4] and [3] */
    att_var *in;      /* [2, 5] */
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->ctx = check_open(NULL, 1);
    f->t = new_tape(f->ctx);
    f->w = param(f->ctx, f->x, ATT_F32, ATT_DIMS(3, 4));
    f->b = param(f->ctx, f->x, ATT_F32, ATT_DIMS(3));
    f->in = input(f->t, f->x, ATT_DIMS(2, 5));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    att_param_free(f->w);
    att_param_free(f->b);
    att_tape_free(f->t);
    att_close(f->ctx);
    free(f);
    return 0;
}

static void the_first_error_stays_with_its_scope_and_the_rest_is_null(void **state)
{
    fixture *f = *state;
    att_tape *t = f->t;
    att_scope outer = att_scope_begin(t, "encoder"), inner = att_scope_begin(t, "layer.3");
    att_var *y = att_linear(t, f->in, f->w, f->b, ATT_ACTIVATION_RELU, NULL);
    assert_null(y);
    assert_null(att_layer_norm(t, y, f->b, f->b, 1e-5f));
    assert_null(att_add(t, f->in, y));
    assert_null(att_embedding(t, f->w, (const int32_t[]){99}, 1));
    assert_null(att_activate(t, f->in, ATT_ACTIVATION_RELU)); /* after a failure nothing runs */
    y = att_scope_end(t, outer, att_scope_end(t, inner, att_normalize(t, y, 1e-12f)));
    assert_error(t, y, ATT_ERR_SHAPE, "encoder/layer.3: linear: x has 5 features but weight is [3, 4]");
    att_tape_reset(t);
    assert_non_null(input(t, f->x, ATT_DIMS(2, 4)));
    assert_error(t, NULL, ATT_ERR_ARGUMENT, "read: v is NULL, but no operation has failed");
    outer = att_scope_begin(t, "encoder");
    assert_null(att_tape_fail_text(t, ATT_ERR_FORMAT, "100%s of it"));
    assert_null(att_tape_fail_text(t, ATT_ERR_IO, "another"));
    assert_error(t, att_scope_end(t, outer, NULL), ATT_ERR_FORMAT, "encoder: 100%s of it");
}

static void each_operation_names_what_does_not_fit(void **state)
{
    fixture *f = *state;
    att_tape *t = f->t;
    att_var *x4, *x3, *cube;
#define FRESH                                                                                                          \
    (att_tape_reset(t), x4 = input(t, f->x, ATT_DIMS(2, 4)), x3 = input(t, f->x, ATT_DIMS(2, 3)),                      \
     cube = input(t, f->x, ATT_DIMS(2, 3, 4)))
    FRESH;
    assert_error(t, att_linear(t, x4, NULL, NULL, ATT_ACTIVATION_RELU, NULL), ATT_ERR_ARGUMENT,
                 "linear: weight is NULL");
    FRESH;
    assert_error(t, att_linear(t, x4, f->w, NULL, (att_activation)9, NULL), ATT_ERR_ARGUMENT,
                 "linear: 9 is not an activation");
    FRESH;
    assert_error(t, att_linear(t, cube, f->w, NULL, ATT_ACTIVATION_RELU, NULL), ATT_ERR_SHAPE,
                 "linear: x is [2, 3, 4] and weight is [3, 4], not matrices");
    FRESH;
    assert_error(t, att_linear(t, x4, f->w, f->w, ATT_ACTIVATION_RELU, NULL), ATT_ERR_SHAPE,
                 "linear: bias is [3, 4] but weight is [3, 4]: expected [3]");
    FRESH;
    assert_error(t, att_linear(t, x4, f->w, f->b, ATT_ACTIVATION_RELU, x4), ATT_ERR_SHAPE,
                 "linear: residual is [2, 4] but the result is [2, 3]");
    FRESH;
    assert_error(t, att_embedding(t, f->w, (const int32_t[]){2, -1}, 2), ATT_ERR_ARGUMENT,
                 "embedding: ids[1] = -1 but the table has 3 rows");
    FRESH;
    assert_error(t, att_embedding(t, f->w, (const int32_t[]){3}, 1), ATT_ERR_ARGUMENT,
                 "embedding: ids[0] = 3 but the table has 3 rows");
    FRESH;
    assert_error(t, att_embedding(t, NULL, (const int32_t[]){3}, 1), ATT_ERR_ARGUMENT, "embedding: table is NULL");
    FRESH;
    assert_error(t, att_embedding(t, f->b, (const int32_t[]){0}, 1), ATT_ERR_SHAPE,
                 "embedding: table is [3], not a matrix");
    FRESH;
    assert_error(t, att_add(t, x4, x3), ATT_ERR_SHAPE, "add: a is [2, 4] but b is [2, 3]");
    FRESH;
    assert_error(t, att_layer_norm(t, x4, f->b, f->b, 1e-5f), ATT_ERR_SHAPE,
                 "layer_norm: x has 4 features but gamma is [3]");
    FRESH;
    assert_error(t, att_layer_norm(t, x4, NULL, NULL, 1e-5f), ATT_ERR_ARGUMENT, "layer_norm: gamma is NULL");
    FRESH;
    assert_error(t, att_activate(t, x3, (att_activation)-1), ATT_ERR_ARGUMENT, "activate: -1 is not an activation");
    FRESH;
    assert_error(t, att_split_heads(t, x3, 2), ATT_ERR_SHAPE, "split_heads: x is [2, 3], which 2 heads do not divide");
    FRESH;
    assert_error(t, att_merge_heads(t, x3), ATT_ERR_SHAPE, "merge_heads: x is [2, 3], not [tokens, heads, dim]");
    FRESH;
    assert_error(t, att_pool(t, x3, (const int64_t[]){0, 3}, 1, ATT_POOLING_MEAN, 0), ATT_ERR_SHAPE,
                 "pool: offsets go from 0 to 3 but x is [2, 3]");
    FRESH;
    assert_error(t, att_pool(t, x3, (const int64_t[]){0, 2, 1, 2}, 3, ATT_POOLING_MEAN, 0), ATT_ERR_ARGUMENT,
                 "pool: offsets[1] = 2 is above offsets[2] = 1");
    FRESH;
    assert_error(t, att_attend(t, NULL, cube, cube, cube, NULL, NULL), ATT_ERR_ARGUMENT, "attend: plan is NULL");
    FRESH;
    assert_error(t, att_parameter(t, NULL), ATT_ERR_ARGUMENT, "use: p is NULL");
#undef FRESH
}

static void inputs_are_dense_f32(void **state)
{
    fixture *f = *state;
    att_tape *t = f->t;
    att_tensor x;
    assert_int_equal(att_wrap(&x, f->x, ATT_F32, 2, (const int64_t[]){2, 3}, (const int64_t[]){4, 1}), ATT_OK);
    assert_error(t, att_input(t, &x), ATT_ERR_SHAPE, "input: x is not dense: stride[0] = 4, not 3");
    att_tape_reset(t);
    x = view(f->x, ATT_BF16, ATT_DIMS(2, 3));
    assert_error(t, att_input(t, &x), ATT_ERR_DTYPE, "input: x is bf16, not f32");
}

static void parameters_are_floats_of_rank_1_or_more(void **state)
{
    fixture *f = *state;
    att_param *p;
    att_tensor x = view(f->x, ATT_I32, ATT_DIMS(2, 3));
    assert_int_equal(att_param_new(f->ctx, &x, &p), ATT_ERR_DTYPE);
    assert_string_equal(att_error(f->ctx), "value is i32, not f32, f16, bf16, i8 or quantized");
    assert_null(p);
    x = view(f->x, ATT_F32, 0, NULL);
    assert_int_equal(att_param_new(f->ctx, &x, &p), ATT_ERR_SHAPE);
    assert_string_equal(att_error(f->ctx), "value is of rank 0, expected 1 to 6");
}

static void cancelling_ends_a_run_at_the_next_operation(void **state)
{
    (void)state;
    volatile int cancel = 0;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .cancel = &cancel)), ATT_OK);
    att_tape *t = new_tape(ctx);
    float x[4] = {0};
    att_var *v = input(t, x, ATT_DIMS(2, 2));
    v = att_add(t, v, v);
    assert_non_null(v);
    cancel = 1;
    assert_error(t, att_add(t, v, v), ATT_ERR_CANCELLED, "cancelled");
    att_tape_free(t);
    att_close(ctx);
}

/* ---- memory */

static void what_a_tape_has_kept_is_given_back_when_it_is_trimmed(void **state)
{
    (void)state;
    enum { SIDE = 500 };
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    const long before = f.bytes;
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(SIDE * SIDE, 1);
    for (int run = 0; run < 3; run++) {
        att_var *sum = input(t, x, ATT_DIMS(SIDE, SIDE));
        for (int i = 0; i < 4; i++)
            sum = att_add(t, sum, sum);
        assert_non_null(sum);
        assert_int_equal(att_tape_bytes(t), f.bytes - before);
        assert_true(att_tape_bytes(t) > 4 * SIDE * SIDE * sizeof(float));
        att_tape_trim(t); /* of what variables use, nothing */
        assert_true(read_floats(t, sum)[7] == 16 * x[7]);
        att_tape_reset(t);
        assert_int_equal(att_tape_bytes(t), f.bytes - before);
        att_tape_trim(t);
        assert_true(att_tape_bytes(t) < 1000);
        assert_int_equal(att_tape_bytes(t), f.bytes - before);
    }
    att_tape_free(t);
    assert_int_equal(att_tape_bytes(NULL), 0);
    att_close(ctx);
    assert_int_equal(f.live, 0);
    free(x);
}

/* ---- parameters */

static void touching_a_parameter_packs_it_again(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float w[4] = {1, 0, 0, 1}, x[2] = {3, 5};
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(2, 2));
    att_var *in = input(t, x, ATT_DIMS(1, 2));
    assert_true(read_floats(t, att_linear(t, in, p, NULL, ATT_ACTIVATION_IDENTITY, NULL))[0] == 3);
    w[0] = 2;
    att_param_invalidate(p);
    assert_true(read_floats(t, att_linear(t, in, p, NULL, ATT_ACTIVATION_IDENTITY, NULL))[0] == 6);
    att_param_free(p);
    att_tape_free(t);
    att_close(ctx);
}

static void *ask(void *p) { return (void *)(uintptr_t)att_param_packed(p); }

static void threads_that_ask_at_once_get_one_packed_copy(void **state)
{
    (void)state;
    enum { N = 200, THREADS = 8 };
    fail_alloc f = {0};
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&f))), ATT_OK);
    float *w = check_numbers(N * N, 1);
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(N, N));
    const long before = f.live;
    pthread_t thread[THREADS];
    void *first = NULL;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, p), 0);
    for (int i = 0; i < THREADS; i++) {
        void *copy;
        pthread_join(thread[i], &copy);
        assert_non_null(copy);
        assert_true(!first || copy == first);
        first = copy;
    }
    assert_int_equal(f.live, before + 1);
    att_param_free(p);
    free(w);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

/* ---- a small network, for what holds of all operations together */

enum { ROWS = 331, FEATURES = 72, INNER = 150 };
static const int64_t two[] = {0, 100, ROWS};

typedef struct network {
    float *table, *w1, *w2, *b1, *b2;
    att_param *p[5];
    att_plan *plan;
    int32_t ids[ROWS];
} network;

static void network_numbers(network *n)
{
    n->table = check_numbers(50 * FEATURES, 1);
    n->w1 = check_numbers(INNER * FEATURES, 2);
    n->w2 = check_numbers(FEATURES * INNER, 3);
    n->b1 = check_numbers(INNER, 4);
    n->b2 = check_numbers(FEATURES, 5);
    for (int i = 0; i < ROWS; i++)
        n->ids[i] = i * 7 % 50;
}

static void network_free(network *n)
{
    for (int i = 0; i < 5; i++)
        att_param_free(n->p[i]);
    att_plan_free(n->plan);
}

static att_status network_open(att_ctx *ctx, network *n)
{
    const att_tensor v[5] = {view(n->table, ATT_F32, ATT_DIMS(50, FEATURES)),
                             view(n->w1, ATT_F32, ATT_DIMS(INNER, FEATURES)),
                             view(n->w2, ATT_F32, ATT_DIMS(FEATURES, INNER)), view(n->b1, ATT_F32, ATT_DIMS(INNER)),
                             view(n->b2, ATT_F32, ATT_DIMS(FEATURES))};
    memset(n->p, 0, sizeof n->p);
    n->plan = NULL;
    att_status s = att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 4, .head_dim = FEATURES / 4), &n->plan);
    for (int i = 0; !s && i < 5; i++)
        s = att_param_new(ctx, &v[i], &n->p[i]);
    return s;
}

/* embedding, attention, two linear layers, norm, pool, normalize -> y [2, FEATURES] */
static att_status network_run(att_tape *t, const network *n, float *y)
{
    att_attention_args args = {.size = sizeof args, .n_sequences = 2, .q_offsets = two};
    att_scope s = att_scope_begin(t, "network");
    att_var *x = att_embedding(t, n->p[0], n->ids, ROWS);
    att_var *h = att_split_heads(t, x, 4);
    x = att_add(t, x, att_merge_heads(t, att_attend(t, n->plan, h, h, h, &args, NULL)));
    att_scope inner = att_scope_begin(t, "feed_forward");
    h = att_linear(t, x, n->p[1], n->p[3], ATT_ACTIVATION_GELU_ERF, NULL);
    x = att_scope_end(t, inner, att_linear(t, h, n->p[2], n->p[4], ATT_ACTIVATION_IDENTITY, x));
    x = att_activate(t, att_layer_norm(t, x, n->p[4], n->p[4], 1e-5f), ATT_ACTIVATION_TANH);
    x = att_scope_end(t, s, att_normalize(t, att_pool(t, x, two, 2, ATT_POOLING_MEAN, 0), 1e-12f));
    att_tensor v;
    const att_status status = att_var_value(t, x, &v);
    if (!status)
        memcpy(y, v.data, 2 * FEATURES * sizeof *y);
    return status;
}

static void network_forget(network *n) { free(n->table), free(n->w1), free(n->w2), free(n->b1), free(n->b2); }

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    network n;
    float expected[2 * FEATURES], y[2 * FEATURES];
    network_numbers(&n);
    for (int i = 0; i < 4; i++) {
        att_ctx *ctx = check_open(NULL, threads[i]);
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        att_tape *t = new_tape(ctx);
        assert_int_equal(network_run(t, &n, i ? y : expected), ATT_OK);
        if (i)
            assert_memory_equal(y, expected, sizeof y);
        att_tape_free(t);
        network_free(&n);
        att_close(ctx);
    }
    network_forget(&n);
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    network n;
    network_numbers(&n);
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at += check_step(3)) {
        fail_alloc f = {.fail_at = at};
        att_ctx *ctx = NULL;
        att_tape *t = NULL;
        float y[2 * FEATURES];
        s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&f)));
        if (!s && !(s = network_open(ctx, &n)) && !(s = att_tape_new(ctx, NULL, &t)))
            s = network_run(t, &n, y);
        if (s) {
            assert_int_equal(s, ATT_ERR_MEMORY);
            assert_true(f.calls >= at);
        }
        if (t) { /* the tape works again once there is memory */
            f.fail_at = 0;
            att_tape_reset(t);
            assert_int_equal(network_run(t, &n, y), ATT_OK);
        }
        att_tape_free(t);
        if (ctx)
            network_free(&n);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    network_forget(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_frees_all_but_one),
        cmocka_unit_test(a_scope_keeps_what_views_others_and_what_was_made_outside),
        cmocka_unit_test(nested_scopes_move_their_result_down_step_by_step),
        cmocka_unit_test(a_scope_that_stays_open_holds_one_result_at_a_time),
        cmocka_unit_test(a_scope_ends_once),
        cmocka_unit_test_setup_teardown(the_first_error_stays_with_its_scope_and_the_rest_is_null, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_operation_names_what_does_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(inputs_are_dense_f32, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_are_floats_of_rank_1_or_more, set_up, tear_down),
        cmocka_unit_test(cancelling_ends_a_run_at_the_next_operation),
        cmocka_unit_test(what_a_tape_has_kept_is_given_back_when_it_is_trimmed),
        cmocka_unit_test(touching_a_parameter_packs_it_again),
        cmocka_unit_test(threads_that_ask_at_once_get_one_packed_copy),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
