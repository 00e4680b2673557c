/* Optimizers: each method against PyTorch, and what a step promises. */
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

#define GOLDEN "tests/golden/optimizer.txt"

/* ---- parameters and their gradients */

/* Adds g, numbers in p's shape, to p's gradient. */
static void set_gradient(att_ctx *ctx, att_param *p, float *g)
{
    const att_tensor *x = att_param_value(p);
    att_tape *t = recording_tape(ctx);
    const att_tensor dy = view(g, ATT_F32, x->rank, x->dim);
    if (att_tape_backward(t, att_parameter(t, p), &dy))
        fail_msg("%s", att_error(ctx));
    att_tape_free(t);
}

static void step(att_ctx *ctx, att_optimizer *o, double rate)
{
    if (att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = rate), NULL))
        fail_msg("%s", att_error(ctx));
}

static att_optimizer *optimizer(att_ctx *ctx, const att_optimizer_config *c)
{
    att_optimizer *o;
    if (att_optimizer_new(ctx, c, &o))
        fail_msg("%s", att_error(ctx));
    return o;
}

static void add(att_ctx *ctx, att_optimizer *o, att_param *p, const att_param_options *l)
{
    if (att_optimizer_add(o, p, l))
        fail_msg("%s", att_error(ctx));
}

/* ---- against PyTorch */

typedef struct golden_case {
    const char *name;
    att_optimizer_config c;
    double rate, clip;
} golden_case;

static const golden_case golden_cases[] = {
    {"adamw", {.weight_decay = 0.01}, 0.01, 0},
    {"adamw_paper", {.beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.1}, 0.01, 0},
    {"adamw_clipped", {.beta2 = 0.98, .eps = 1e-9}, 0.01, 0.5},
    {"adam", {.method = ATT_OPTIMIZER_ADAM, .beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.1}, 0.01, 0},
    {"sgd", {.method = ATT_OPTIMIZER_SGD}, 0.05, 0},
    {"sgd_momentum", {.method = ATT_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.1}, 0.05, 0},
    {"sgd_clipped", {.method = ATT_OPTIMIZER_SGD, .momentum = 0.9}, 0.05, 0.5},
};

static void check_golden(att_ctx *ctx, const golden_case *g)
{
    enum { NUMBERS = 11, STEPS = 10 };
    double expected[NUMBERS];
    assert_int_equal(golden_line(GOLDEN, g->name, expected, NUMBERS), NUMBERS);
    att_optimizer_config c = g->c;
    c.size = sizeof c;
    float *x = check_numbers(NUMBERS, 1);
    att_param *p = param(ctx, x, ATT_F32, ATT_DIMS(NUMBERS, 1));
    att_optimizer *o = optimizer(ctx, &c);
    add(ctx, o, p, NULL);
    for (uint64_t i = 0; i < STEPS; i++) {
        float *gradient = check_numbers(NUMBERS, 100 + i);
        set_gradient(ctx, p, gradient);
        const att_update u = {.size = sizeof u, .rate = g->rate, .clip = g->clip};
        assert_int_equal(att_optimizer_step(o, &u, NULL), ATT_OK);
        free(gradient);
    }
    /* In each step x, below 1, is rounded by half a unit, and what is taken off, some rates, by as many roundings of
     * slope, moments and quotient. PyTorch clips to clip / (norm + 1e-6) with norms above 1. */
    const double tolerance = STEPS * (0.5 + g->rate * 16) * FLT_EPSILON + (g->clip > 0 ? STEPS * g->rate * 1e-6 : 0);
    for (int i = 0; i < NUMBERS; i++)
        check_near(expected[i], x[i], tolerance, "%s %s: x[%d]", att_isa(ctx), g->name, i);
    att_optimizer_free(o);
    att_param_free(p);
    free(x);
}

static void ten_steps_of_each_method_are_those_of_pytorch(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (size_t i = 0; i < sizeof golden_cases / sizeof golden_cases[0]; i++)
            check_golden(ctx, &golden_cases[i]);
}

/* ---- a set of parameters */

enum { PARAMS = 3 };
static const int64_t shape_of_param[PARAMS][2] = {{301, 97}, {64, 33}, {7, 1}};

typedef struct setting {
    att_ctx *ctx;
    float *x[PARAMS];
    att_param *p[PARAMS];
    att_optimizer *o;
} setting;

static int64_t count_of(int i) { return shape_of_param[i][0] * shape_of_param[i][1]; }

static setting open_setting(att_ctx *ctx, const att_optimizer_config *c, const att_param_options *first)
{
    setting s = {.ctx = ctx, .o = optimizer(ctx, c)};
    for (int i = 0; i < PARAMS; i++) {
        s.x[i] = check_numbers(count_of(i), (uint64_t)i + 1);
        s.p[i] = param(ctx, s.x[i], ATT_F32, 2, shape_of_param[i]);
        add(ctx, s.o, s.p[i], i == 0 ? first : NULL);
    }
    return s;
}

static void close_setting(setting *s)
{
    att_optimizer_free(s->o);
    for (int i = 0; i < PARAMS; i++)
        att_param_free(s->p[i]), free(s->x[i]);
}

/* Gradients that follow from `seed`, times `scale`. */
static void set_gradients(const setting *s, uint64_t seed, float scale)
{
    for (int i = 0; i < PARAMS; i++) {
        float *g = check_numbers(count_of(i), seed * PARAMS + (uint64_t)i + 1000);
        for (int64_t j = 0; j < count_of(i); j++)
            g[j] *= scale;
        set_gradient(s->ctx, s->p[i], g);
        free(g);
    }
}

static void same_numbers(const setting *a, const setting *b)
{
    for (int i = 0; i < PARAMS; i++)
        assert_memory_equal(a->x[i], b->x[i], (size_t)count_of(i) * sizeof(float));
}

static const att_optimizer_config decaying = {.size = sizeof decaying, .weight_decay = 0.1};

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    setting s[4];
    double norm[4];
    for (int i = 0; i < 4; i++) {
        s[i] = open_setting(check_open(NULL, threads[i]), &decaying, NULL);
        for (uint64_t t = 0; t < 3; t++) {
            set_gradients(&s[i], t, 1);
            const att_update u = {.size = sizeof u, .rate = 0.01, .clip = 1};
            assert_int_equal(att_optimizer_step(s[i].o, &u, &norm[i]), ATT_OK);
        }
        assert_true(norm[i] == norm[0]);
        same_numbers(&s[i], &s[0]);
    }
    for (int i = 0; i < 4; i++) {
        att_ctx *ctx = s[i].ctx;
        close_setting(&s[i]);
        att_close(ctx);
    }
}

/* Two backwards and half of their sum are one of the mean; the scale is a power of two and changes no bit. */
static void gradients_accumulate_over_backwards(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    setting once = open_setting(ctx, &decaying, NULL), twice = open_setting(ctx, &decaying, NULL);
    double norm[2];
    set_gradients(&once, 5, 1);
    assert_int_equal(att_optimizer_step(once.o, ATT_OPTIONS(att_update, .rate = 0.01), &norm[0]), ATT_OK);
    set_gradients(&twice, 5, 1);
    set_gradients(&twice, 5, 1);
    assert_int_equal(att_optimizer_step(twice.o, ATT_OPTIONS(att_update, .rate = 0.01, .scale = 0.5), &norm[1]),
                     ATT_OK);
    assert_true(norm[0] == norm[1]);
    same_numbers(&once, &twice);
    for (int i = 0; i < PARAMS; i++)
        assert_null(att_param_grad(twice.p[i])->data);
    close_setting(&once);
    close_setting(&twice);
    att_close(ctx);
}

/* 2, 3 and 6 have length 7. */
static void clipping_is_by_the_norm_of_all_gradients(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[] = {0, 0, 0, 0}, g[] = {2, -3, 6, 0};
    att_param *p[] = {param(ctx, x, ATT_F32, ATT_DIMS(1, 1)), param(ctx, x + 1, ATT_F32, ATT_DIMS(3, 1))};
    att_optimizer *o = optimizer(ctx, ATT_OPTIONS(att_optimizer_config, .method = ATT_OPTIMIZER_SGD));
    double norm;
    for (int clip = 0; clip < 3; clip++) { /* none, one that is not reached, one that is */
        for (int i = 0; i < 2; i++) {
            if (!clip)
                add(ctx, o, p[i], NULL);
            set_gradient(ctx, p[i], g + i);
        }
        memset(x, 0, sizeof x);
        const att_update u = {.size = sizeof u, .rate = 1, .clip = clip == 0 ? 0 : clip == 1 ? 7 : 3.5};
        assert_int_equal(att_optimizer_step(o, &u, &norm), ATT_OK);
        assert_true(norm == 7);
        for (int i = 0; i < 4; i++)
            assert_true(x[i] == -g[i] / (clip == 2 ? 2 : 1));
    }
    float huge[] = {3e30f, 4e30f, 0}; /* squares that no float has; 1e-5 of their length is clipped to */
    set_gradient(ctx, p[1], huge);
    memset(x, 0, sizeof x);
    assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1, .clip = 5e25), &norm), ATT_OK);
    check_near(norm / 5e30, 1, FLT_EPSILON, "norm");
    check_near(-3e25, x[1], 3e25 * 3 * FLT_EPSILON, "clipped");
    assert_true(x[0] == 0);
    att_optimizer_free(o);
    att_param_free(p[0]);
    att_param_free(p[1]);
    att_close(ctx);
}

static void what_is_not_finite_is_named_and_nothing_is_done(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    att_ctx *ctx = check_open(NULL, 2);
    setting s = open_setting(ctx, &decaying, NULL), before = open_setting(ctx, &decaying, NULL);
    for (int i = 0; i < 3; i++) {
        set_gradients(&s, 1, 1);
        float *g = (float *)att_param_grad(s.p[1])->data + 1234, norm_before = *g;
        double norm = 0;
        *g = bad[i];
        assert_int_equal(att_optimizer_step(s.o, ATT_OPTIONS(att_update, .rate = 1, .clip = 1), &norm),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, "step: the gradient of parameter 1, [64, 33], has ");
        check_message(ctx, " at 1234");
        assert_false(isfinite(norm));
        same_numbers(&s, &before);
        assert_int_equal(*(int64_t *)att_optimizer_steps(s.o)->data, 0);
        assert_true(*(float *)att_optimizer_moment(s.o, 0, 0)->data == 0);
        *g = norm_before; /* the gradients are there still */
        for (int k = 0; k < PARAMS && i < 2; k++)
            att_param_zero_grad(s.p[k]);
    }
    set_gradients(&before, 1, 1);
    step(ctx, s.o, 0.1);
    step(ctx, before.o, 0.1);
    same_numbers(&s, &before);
    close_setting(&s);
    close_setting(&before);
    att_close(ctx);
}

/* Rows 0, 5 and the last are frozen, one of them of zeros. Neither their gradients nor decay reach them, nor the norm.
 */
static void frozen_rows_stay_and_count_for_nothing(void **state)
{
    (void)state;
    static const int64_t rows[] = {0, 5, 300};
    att_ctx *ctx = check_open(NULL, 2);
    const att_param_options l = {.size = sizeof l, .frozen_rows = rows, .n_frozen_rows = 3};
    setting s = open_setting(ctx, &decaying, &l), free_one = open_setting(ctx, &decaying, NULL);
    const int64_t f = shape_of_param[0][1];
    memset(s.x[0] + 5 * f, 0, (size_t)f * sizeof(float));
    float *before = check_numbers(count_of(0), 1);
    memcpy(before, s.x[0], (size_t)count_of(0) * sizeof *before);
    double norm[2];
    for (uint64_t t = 0; t < 3; t++) {
        set_gradients(&s, t, 1);
        set_gradients(&free_one, t, 1);
        for (int i = 0; i < 3; i++) { /* whatever is in there */
            ((float *)att_param_grad(s.p[0])->data)[rows[i] * f + i] = i ? 1e9f : NAN;
            memset((float *)att_param_grad(free_one.p[0])->data + rows[i] * f, 0, (size_t)f * sizeof(float));
        }
        assert_int_equal(att_optimizer_step(s.o, ATT_OPTIONS(att_update, .rate = 0.1), &norm[0]), ATT_OK);
        assert_int_equal(att_optimizer_step(free_one.o, ATT_OPTIONS(att_update, .rate = 0.1), &norm[1]), ATT_OK);
        check_near(norm[1], (float)norm[0], norm[1] * FLT_EPSILON, "norm");
    }
    for (int64_t row = 0; row < shape_of_param[0][0]; row++) {
        const bool frozen = row == 0 || row == 5 || row == 300;
        const float *expected = (frozen ? before : free_one.x[0]) + row * f;
        assert_memory_equal(s.x[0] + row * f, expected, (size_t)f * sizeof(float));
        assert_int_equal(!memcmp(s.x[0] + row * f, before + row * f, (size_t)f * sizeof(float)), frozen);
    }
    close_setting(&s);
    close_setting(&free_one);
    free(before);
    att_close(ctx);
}

static void frozen_parameters_stay_and_others_may_be_kept_from_decay(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[3][2] = {{1, 2}, {1, 2}, {1, 2}}, zero[2] = {0, 0}, one[2] = {1, 1};
    att_param *p[3];
    for (int method = ATT_OPTIMIZER_ADAMW; method <= ATT_OPTIMIZER_SGD; method++) {
        for (int i = 0; i < 3; i++) {
            x[i][0] = 1, x[i][1] = 2;
            p[i] = param(ctx, x[i], ATT_F32, ATT_DIMS(2, 1));
        }
        const att_optimizer_config c = {
            .size = sizeof c, .method = (att_optimizer_method)method, .weight_decay = 0.5, .momentum = 0.5};
        att_optimizer *o = optimizer(ctx, &c);
        att_param_set_frozen(p[0], true);
        add(ctx, o, p[0], NULL);
        att_param_set_frozen(p[0], false); /* too late: it has a gradient now, but no updates */
        add(ctx, o, p[1], ATT_OPTIONS(att_param_options, .no_weight_decay = true));
        add(ctx, o, p[2], NULL);
        set_gradient(ctx, p[0], one);
        set_gradient(ctx, p[1], zero);
        set_gradient(ctx, p[2], zero);
        double norm;
        assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.5), &norm), ATT_OK);
        assert_true(norm == 0);
        assert_null(att_param_grad(p[0])->data);
        assert_null(att_optimizer_moment(o, 0, 0));
        for (int i = 0; i < 2; i++)
            assert_true(x[i][0] == 1 && x[i][1] == 2);
        /* x - rate decay x; Adam goes one rate against the sign of any slope */
        assert_true(x[2][0] < 1 && x[2][1] < 2);
        if (method != ATT_OPTIMIZER_ADAM)
            assert_true(x[2][0] == 0.75f && x[2][1] == 1.5f);
        else
            check_near(0.5, x[2][0], 4 * FLT_EPSILON, "Adam");
        att_optimizer_free(o);
        for (int i = 0; i < 3; i++)
            att_param_free(p[i]);
    }
    att_close(ctx);
}

/* ---- state */

static void a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int method = ATT_OPTIMIZER_ADAMW; method <= ATT_OPTIMIZER_SGD; method++) {
        const att_optimizer_config c = {
            .size = sizeof c, .method = (att_optimizer_method)method, .weight_decay = 0.1, .momentum = 0.9};
        setting whole = open_setting(ctx, &c, NULL), first = open_setting(ctx, &c, NULL);
        for (uint64_t t = 0; t < 6; t++) {
            set_gradients(&whole, t, 1);
            step(ctx, whole.o, 0.01);
            set_gradients(&first, t, 1);
            step(ctx, first.o, 0.01);
            setting then = open_setting(ctx, &c, NULL); /* as from a file, after each step */
            memcpy(att_optimizer_steps(then.o)->data, att_optimizer_steps(first.o)->data, sizeof(int64_t));
            for (int i = 0; i < PARAMS; i++) {
                memcpy(then.x[i], first.x[i], (size_t)count_of(i) * sizeof(float));
                const att_tensor *m;
                for (int k = 0; (m = att_optimizer_moment(first.o, i, k)); k++) {
                    assert_true(m->rank == 2 && m->dim[0] == shape_of_param[i][0] && m->stride[0] == m->dim[1]);
                    memcpy(att_optimizer_moment(then.o, i, k)->data, m->data, (size_t)count_of(i) * sizeof(float));
                }
                assert_null(att_optimizer_moment(then.o, i, method == ATT_OPTIMIZER_SGD ? 1 : 2));
            }
            close_setting(&first);
            first = then;
        }
        same_numbers(&whole, &first);
        assert_int_equal(*(int64_t *)att_optimizer_steps(first.o)->data, 6);
        close_setting(&whole);
        close_setting(&first);
    }
    att_close(ctx);
}

static void what_was_packed_of_a_parameter_is_packed_again(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float w[] = {1, 2}, g[] = {1, 1}, in_[] = {1, 10};
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(1, 2));
    att_optimizer *o = optimizer(ctx, ATT_OPTIONS(att_optimizer_config, .method = ATT_OPTIMIZER_SGD));
    add(ctx, o, p, NULL);
    att_tape *t = new_tape(ctx);
    assert_true(*read_floats(t, att_linear(t, input(t, in_, ATT_DIMS(1, 2)), p, NULL, ATT_ACTIVATION_IDENTITY, NULL)) ==
                21);
    set_gradient(ctx, p, g);
    step(ctx, o, 1);
    assert_true(*read_floats(t, att_linear(t, input(t, in_, ATT_DIMS(1, 2)), p, NULL, ATT_ACTIVATION_IDENTITY, NULL)) ==
                10);
    att_tape_free(t);
    att_optimizer_free(o);
    att_param_free(p);
    att_close(ctx);
}

static void a_failing_allocation_adds_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    float x[] = {1, 2, 3};
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_param *a = param(ctx, x, ATT_F32, ATT_DIMS(1)), *b = param(ctx, x + 1, ATT_F32, ATT_DIMS(2, 1));
        att_optimizer *o = NULL;
        f.fail_at = f.calls + at;
        s = att_optimizer_new(ctx, NULL, &o);
        const int made = s ? 0 : (s = att_optimizer_add(o, a, NULL)) ? 1 : (s = att_optimizer_add(o, b, NULL)) ? 2 : 3;
        if (made) { /* what failed can be done again */
            assert_int_equal(made > 1 || !att_optimizer_add(o, a, NULL), true);
            assert_int_equal(made > 2 || !att_optimizer_add(o, b, NULL), true);
            assert_non_null(att_optimizer_moment(o, 1, 1));
            assert_null(att_optimizer_moment(o, 2, 0));
        }
        att_optimizer_free(o);
        att_param_free(a);
        att_param_free(b);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 20);
    }
}

/* ---- refused */

static void refused(att_ctx *ctx, att_status got, att_status expected, const char *sentence)
{
    assert_string_equal(att_error(ctx), sentence);
    assert_int_equal(got, expected);
}

static void wrong_optimizers_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_optimizer *o;
    static const struct {
        att_optimizer_config c;
        const char *sentence;
    } wrong[] = {
        {{.method = (att_optimizer_method)7}, "optimizer.method is 7, which is not an att_optimizer_method"},
        {{.beta1 = 1}, "optimizer.beta1 is 1, not from 0 to below 1"},
        {{.beta2 = -0.5}, "optimizer.beta2 is -0.5, not from 0 to below 1"},
        {{.eps = 1e-60}, "optimizer.eps is 1e-60, not from 1.17549e-38 to below 1"},
        {{.momentum = NAN}, "optimizer.momentum is nan, not from 0 to below 1"},
        {{.weight_decay = -1}, "optimizer.weight_decay is -1, not from 0 to below 3.40282e+38"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_optimizer_config c = wrong[i].c;
        c.size = sizeof c;
        refused(ctx, att_optimizer_new(ctx, &c, &o), ATT_ERR_ARGUMENT, wrong[i].sentence);
        assert_null(o);
    }
    att_close(ctx);
}

static void wrong_parameters_and_steps_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t outside[] = {0, 3}, twice[] = {1, 1};
    att_param *p = param(ctx, x, ATT_F32, ATT_DIMS(3, 2)), *half = param(ctx, x, ATT_F16, ATT_DIMS(2));
    att_tensor turned;
    assert_int_equal(att_wrap(&turned, x, ATT_F32, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2}), ATT_OK);
    att_param *q;
    assert_int_equal(att_param_new(ctx, &turned, &q), ATT_OK);
    att_optimizer *o = optimizer(ctx, NULL);
#define ROWS(list, n) ATT_OPTIONS(att_param_options, .frozen_rows = list, .n_frozen_rows = n)
    refused(ctx, att_optimizer_add(o, NULL, NULL), ATT_ERR_ARGUMENT, "att_optimizer_add: param is NULL");
    refused(ctx, att_optimizer_add(o, half, NULL), ATT_ERR_DTYPE, "optimizer: parameter 0 is f16, not f32");
    refused(ctx, att_optimizer_add(o, q, NULL), ATT_ERR_SHAPE, "optimizer: parameter 0, [2, 3], is not dense");
    refused(ctx, att_optimizer_add(o, p, ROWS(outside, 2)), ATT_ERR_ARGUMENT,
            "optimizer: frozen_rows[1] = 3 but the parameter has 3 rows");
    refused(ctx, att_optimizer_add(o, p, ROWS(twice, 2)), ATT_ERR_ARGUMENT,
            "optimizer: frozen_rows[1] = 1 does not ascend from 1");
    refused(ctx, att_optimizer_add(o, p, ROWS(NULL, 2)), ATT_ERR_ARGUMENT,
            "optimizer: n_frozen_rows = 2 with no frozen_rows");
#undef ROWS
    add(ctx, o, p, NULL);
    refused(ctx, att_optimizer_add(o, p, NULL), ATT_ERR_ARGUMENT,
            "optimizer: parameter 1 is there already, as parameter 0");
    refused(ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1), NULL), ATT_ERR_ARGUMENT,
            "step: none of 1 parameters has a gradient: call att_tape_backward first, for a variable that depends on "
            "one that is not frozen");
    set_gradient(ctx, p, x);
    refused(ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = -1), NULL), ATT_ERR_ARGUMENT,
            "step: rate is -1, not a rate");
    refused(ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1, .scale = NAN), NULL), ATT_ERR_ARGUMENT,
            "step: scale is nan, not above 0");
    refused(ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1, .clip = -1), NULL), ATT_ERR_ARGUMENT,
            "step: clip is -1, not a norm");
    *(int64_t *)att_optimizer_steps(o)->data = -3;
    refused(ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1), NULL), ATT_ERR_ARGUMENT,
            "step: -3 steps were taken before");
    assert_true(x[0] == 1);
    att_optimizer_free(o);
    att_param_free(p);
    att_param_free(q);
    att_param_free(half);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_steps_of_each_method_are_those_of_pytorch),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(gradients_accumulate_over_backwards),
        cmocka_unit_test(clipping_is_by_the_norm_of_all_gradients),
        cmocka_unit_test(what_is_not_finite_is_named_and_nothing_is_done),
        cmocka_unit_test(frozen_rows_stay_and_count_for_nothing),
        cmocka_unit_test(frozen_parameters_stay_and_others_may_be_kept_from_decay),
        cmocka_unit_test(a_resumed_run_has_the_bits_of_one_that_was_not_interrupted),
        cmocka_unit_test(what_was_packed_of_a_parameter_is_packed_again),
        cmocka_unit_test(a_failing_allocation_adds_nothing_and_leaks_nothing),
        cmocka_unit_test(wrong_optimizers_are_named),
        cmocka_unit_test(wrong_parameters_and_steps_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
