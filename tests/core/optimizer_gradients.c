/* att_optimizer_gradients: the gradients of an optimizer's parameters as one buffer. */
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

enum { PARAMS = 4, FROZEN = 1, MAX = 64 * 33 + 7 * 5 + 3 * 2 + 11 };
static const int64_t shape_of_param[PARAMS][2] = {{64, 33}, {7, 5}, {3, 2}, {11, 1}};

typedef struct setting {
    att_ctx *ctx;
    float *x[PARAMS];
    att_param *p[PARAMS];
    att_optimizer *o;
} setting;

static size_t count_of(int i) { return (size_t)(shape_of_param[i][0] * shape_of_param[i][1]); }

static size_t bytes_of(int i) { return count_of(i) * sizeof(float); }

static void add(setting *s, int i)
{
    static const int64_t row = 1;
    const att_param_options how = {.size = sizeof how, .frozen_rows = &row, .n_frozen_rows = i == 2};
    att_param_set_frozen(s->p[i], i == FROZEN);
    assert_int_equal(att_optimizer_add(s->o, s->p[i], &how), ATT_OK);
    att_param_set_frozen(s->p[i], false);
}

static setting open_setting(att_ctx *ctx, int method, int params)
{
    const att_optimizer_config c = {
        .size = sizeof c, .method = (att_optimizer_method)method, .momentum = 0.5, .weight_decay = 0.1};
    setting s = {.ctx = ctx};
    assert_int_equal(att_optimizer_new(ctx, &c, &s.o), ATT_OK);
    for (int i = 0; i < PARAMS; i++) {
        s.x[i] = check_numbers((int64_t)count_of(i), (uint64_t)i + 1);
        s.p[i] = param(ctx, s.x[i], ATT_F32, 2, shape_of_param[i]);
        if (i < params)
            add(&s, i);
    }
    return s;
}

static void close_setting(setting *s)
{
    att_optimizer_free(s->o);
    for (int i = 0; i < PARAMS; i++)
        att_param_free(s->p[i]), free(s->x[i]);
}

static att_status add_gradient(const setting *s, int i, uint64_t seed)
{
    float *g = check_numbers((int64_t)count_of(i), seed * PARAMS + (uint64_t)i + 1000);
    att_tape *t = recording_tape(s->ctx);
    const att_tensor dy = view(g, ATT_F32, 2, shape_of_param[i]);
    const att_status e = att_tape_backward(t, att_parameter(t, s->p[i]), &dy);
    att_tape_free(t);
    free(g);
    return e;
}

static void add_gradients(const setting *s, uint64_t seed)
{
    for (int i = 0; i < PARAMS; i++)
        assert_int_equal(add_gradient(s, i, seed), ATT_OK);
}

static float *gradients(const setting *s, int64_t expected)
{
    float *g;
    int64_t n;
    assert_int_equal(att_optimizer_gradients(s->o, &g, &n), ATT_OK);
    assert_int_equal(n, expected);
    return g;
}

static void take_step(const setting *s)
{
    assert_int_equal(att_optimizer_step(s->o, ATT_OPTIONS(att_update, .rate = 0.1, .clip = 1), NULL), ATT_OK);
}

static void same_numbers(const setting *a, const setting *b)
{
    for (int i = 0; i < PARAMS; i++)
        assert_memory_equal(a->x[i], b->x[i], bytes_of(i));
}

/* Is parameter i's gradient at g + from, with the numbers of b's? */
static void is_at(const setting *a, const setting *b, int i, const float *g, size_t from)
{
    assert_ptr_equal(att_param_grad(a->p[i])->data, g + from);
    assert_memory_equal(g + from, att_param_grad(b->p[i])->data, bytes_of(i));
}

enum { LEARN = MAX - 7 * 5 };

static void gradients_are_one_buffer_in_the_order_of_the_parameters_and_steps_have_the_same_bits(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int method = ATT_OPTIMIZER_ADAMW; method <= ATT_OPTIMIZER_SGD; method++) {
        setting one = open_setting(ctx, method, PARAMS), each = open_setting(ctx, method, PARAMS);
        const float *before = NULL;
        for (uint64_t t = 0; t < 4; t++) {
            for (uint64_t k = 0; k < 2; k++) {
                add_gradients(&one, 2 * t + k);
                add_gradients(&each, 2 * t + k);
            }
            const float *g = gradients(&one, LEARN);
            assert_true(t == 0 || g == before);
            before = g;
            is_at(&one, &each, 0, g, 0);
            is_at(&one, &each, 2, g, count_of(0));
            is_at(&one, &each, 3, g, count_of(0) + count_of(2));
            take_step(&one);
            take_step(&each);
            same_numbers(&one, &each);
            for (int i = 0; i < PARAMS; i++)
                assert_null(att_param_grad(one.p[i])->data);
            for (int i = 0; i < LEARN; i++)
                assert_true(g[i] == 0);
        }
        close_setting(&one);
        close_setting(&each);
    }
    att_close(ctx);
}

static void what_the_caller_writes_is_what_the_step_reads(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    setting one = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS), each = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS);
    for (uint64_t t = 0; t < 3; t++) { /* without a backward at first, then instead of another one's gradients */
        add_gradients(&each, t);
        if (t)
            add_gradients(&one, 77);
        float *g = gradients(&one, LEARN);
        for (int i = 0; i < PARAMS; i++)
            if (i != FROZEN) {
                memcpy(g, att_param_grad(each.p[i])->data, bytes_of(i));
                g += count_of(i);
            }
        take_step(&one);
        take_step(&each);
        same_numbers(&one, &each);
    }
    close_setting(&one);
    close_setting(&each);
    att_close(ctx);
}

static void a_parameter_without_a_gradient_gets_zeros_by_the_call_alone(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setting s = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS), same = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS);
    const float *g = gradients(&s, LEARN);
    take_step(&s); /* decays all that learn: 1 - rate decay, rounded, and the product */
    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < count_of(i); k++) {
            const bool frozen = i == FROZEN || (i == 2 && k / 2 == 1);
            const double x = same.x[i][k];
            check_near(x * (frozen ? 1 : 1 - 0.1 * 0.1), s.x[i][k], frozen ? 0 : fabs(x) * 2 * FLT_EPSILON,
                       "%d: x[%zu]", i, k);
        }
    assert_null(att_param_grad(s.p[0])->data);
    assert_int_equal(att_optimizer_step(s.o, ATT_OPTIONS(att_update, .rate = 0.1), NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(add_gradient(&s, 3, 1), ATT_OK);
    att_param_zero_grad(s.p[3]);
    assert_null(att_param_grad(s.p[3])->data);
    for (int i = 0; i < LEARN; i++)
        assert_true(g[i] == 0);
    memcpy(same.x[0], s.x[0], bytes_of(0));
    assert_int_equal(add_gradient(&s, 3, 1), ATT_OK);
    take_step(&s); /* without the call: of what has a gradient only */
    assert_memory_equal(same.x[0], s.x[0], bytes_of(0));
    close_setting(&s);
    close_setting(&same);
    att_close(ctx);
}

/* Its backward fails. */
static att_status copy(const void *user, const att_tensor *x, const att_tensor *y)
{
    (void)user;
    memcpy(y->data, x->data, bytes_of(0));
    return ATT_OK;
}

static att_status no_backward(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                              const att_tensor *dx)
{
    (void)user, (void)x, (void)y, (void)dy, (void)dx;
    return ATT_ERR_ARGUMENT;
}

/* A parameter is read twice: the last read has written the gradient when the backward of the first fails. */
static att_status failing_backward(const setting *s)
{
    static const att_function function = {
        .size = sizeof function, .name = "fail", .forward = copy, .backward = no_backward};
    att_tape *t = recording_tape(s->ctx);
    att_var *x = att_parameter(t, s->p[0]);
    att_var *y = att_apply(t, &function, NULL, 0, &x, 1, 2, shape_of_param[0]);
    const att_status e = att_tape_backward(t, att_sum(t, att_mul(t, y, att_parameter(t, s->p[0])), ATT_ALL_DIMS), NULL);
    att_tape_free(t);
    return e;
}

static void a_backward_that_fails_leaves_the_buffer_unchanged(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    setting s = open_setting(ctx, ATT_OPTIMIZER_ADAM, PARAMS);
    float before[LEARN];
    const float *g = gradients(&s, LEARN);
    take_step(&s);
    for (int had = 0; had < 2; had++) {
        if (had)
            add_gradients(&s, 3);
        memcpy(before, g, sizeof before);
        assert_int_equal(failing_backward(&s), ATT_ERR_ARGUMENT);
        assert_memory_equal(before, g, sizeof before);
        assert_ptr_equal(att_param_grad(s.p[0])->data, had ? g : NULL);
    }
    close_setting(&s);
    att_close(ctx);
}

static void parameters_may_be_added_later_and_the_next_call_has_them(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setting one = open_setting(ctx, ATT_OPTIMIZER_ADAMW, 2), each = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS);
    gradients(&one, (int64_t)count_of(0));
    add(&one, 2);
    add(&one, 3);
    add_gradients(&one, 1); /* of the two that are new: in memory of their own */
    add_gradients(&each, 1);
    const float *g = gradients(&one, LEARN);
    is_at(&one, &each, 0, g, 0);
    is_at(&one, &each, 3, g, count_of(0) + count_of(2));
    take_step(&one);
    take_step(&each);
    same_numbers(&one, &each);
    close_setting(&one);
    close_setting(&each);
    att_close(ctx);
}

static void a_gradient_is_in_the_buffer_that_was_asked_for_last(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setting a = open_setting(ctx, ATT_OPTIMIZER_ADAMW, PARAMS), b = open_setting(ctx, ATT_OPTIMIZER_SGD, 0);
    assert_int_equal(att_optimizer_add(b.o, a.p[0], NULL), ATT_OK);
    const float *of_a = gradients(&a, LEARN);
    assert_int_equal(add_gradient(&a, 0, 1), ATT_OK);
    const float *of_b = gradients(&b, (int64_t)count_of(0));
    assert_memory_equal(of_a, of_b, bytes_of(0));
    assert_ptr_equal(att_param_grad(a.p[0])->data, of_b);
    assert_ptr_equal(gradients(&a, LEARN), of_a);
    assert_ptr_equal(att_param_grad(a.p[0])->data, of_a);
    gradients(&b, (int64_t)count_of(0));
    att_optimizer_free(a.o); /* leaves b's */
    a.o = NULL;
    assert_ptr_equal(att_param_grad(a.p[0])->data, of_b);
    assert_null(att_param_grad(a.p[3])->data);
    att_optimizer_free(b.o);
    b.o = NULL;
    assert_null(att_param_grad(a.p[0])->data);
    assert_int_equal(add_gradient(&a, 0, 1), ATT_OK); /* in memory of its own again */
    assert_non_null(att_param_grad(a.p[0])->data);
    close_setting(&a);
    close_setting(&b);
    att_close(ctx);
}

static void the_buffer_replaces_the_memory_of_the_parameters(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    setting s = open_setting(ctx, ATT_OPTIMIZER_ADAM, PARAMS);
    add_gradients(&s, 1);
    const long before = f.bytes;
    f.fail_at = f.calls + 1;
    float *g = s.x[0];
    int64_t n = -1;
    assert_int_equal(att_optimizer_gradients(s.o, &g, &n), ATT_ERR_MEMORY);
    assert_null(g);
    assert_int_equal(f.bytes, before);
    assert_non_null(att_param_grad(s.p[0])->data);
    gradients(&s, LEARN);
    assert_int_equal(f.bytes, before);
    const long calls = f.calls;
    gradients(&s, LEARN);
    assert_int_equal(f.calls, calls);
    close_setting(&s);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void an_optimizer_without_parameters_has_no_gradients(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setting s = open_setting(ctx, ATT_OPTIMIZER_ADAM, 0);
    assert_non_null(gradients(&s, 0));
    close_setting(&s);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_one_buffer_in_the_order_of_the_parameters_and_steps_have_the_same_bits),
        cmocka_unit_test(what_the_caller_writes_is_what_the_step_reads),
        cmocka_unit_test(a_parameter_without_a_gradient_gets_zeros_by_the_call_alone),
        cmocka_unit_test(a_backward_that_fails_leaves_the_buffer_unchanged),
        cmocka_unit_test(parameters_may_be_added_later_and_the_next_call_has_them),
        cmocka_unit_test(a_gradient_is_in_the_buffer_that_was_asked_for_last),
        cmocka_unit_test(the_buffer_replaces_the_memory_of_the_parameters),
        cmocka_unit_test(an_optimizer_without_parameters_has_no_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
