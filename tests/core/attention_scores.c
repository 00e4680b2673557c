/* Scores with parameters, or with rows that are prepared: forward and backward against the definition in double, on
 * every instruction set, and wrong parameters. What must hold exactly is in attention_scores_exact.c. */
// labels: long
#include "fixtures/attention_reference.h"
#include "fixtures/attention_score.h"

static att_pair pair_of(const test_call *c, const att_head_view *at, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .query = (const float *)at->q_row.at + q * at->q_row.stride,
                      .key = (const float *)at->k_row.at + k * at->k_row.stride,
                      .dim = c->n.head_dim,
                      .key_dim = c->n.key_dim,
                      .param = at->param};
}

/* Returns the steepest derivative of a pair's score. */
static double steepest(const att_plan *plan, const att_pair *p)
{
    double *x = calloc((size_t)(p->dim + p->key_dim), sizeof *x), *dparam[MOST_PARAMS] = {NULL}, most = 1;
    plan->score.derivative(p, 1, x, x + p->dim, dparam);
    for (int64_t i = 0; i < p->dim + p->key_dim; i++)
        most = fmax(most, fabs(x[i]));
    free(x);
    return most;
}

/* Returns the bound of all scores of a query. */
static double score_error(const test_call *c, const att_head_view *at, int64_t q)
{
    double error = 0;
    for (int64_t k = 0; k < at->head.tk; k++) {
        const att_pair p = pair_of(c, at, q, k);
        error = fmax(error, c->kind->error(&p));
    }
    return error;
}

/* What a call gives, by the definition. Of the scores the error of any, and the steepest of every seventh query's, by
 * anything. */
typedef struct expected {
    double *out, *lse, *error; /* [rows, value_dim], and of each row; rows go by site and query */
    double worst_error, slope;
    reference gradients;
} expected;

static expected expected_of(const att_plan *plan, const test_call *c)
{
    const att_call call = call_of(plan, &c->args);
    const int64_t dim = c->n.value_dim;
    const size_t rows = (size_t)(c->n.batch * c->n.heads * c->n.tq) + 1;
    expected e = {calloc(rows * (size_t)dim, sizeof(double)), calloc(rows, sizeof(double)),
                  calloc(rows, sizeof(double)), .gradients = reference_of(plan, &c->args, &c->grads)};
    att_head_view at;
    int64_t row = 0;
    for (int64_t i = 0; next_site(&call, &i, &at);)
        for (int64_t q = 0; q < at.head.tq; q++, row++) {
            e.lse[row] = att_ref_attention_row(plan, &at, q, NULL, e.out + row * dim);
            e.error[row] = score_error(c, &at, q);
            e.worst_error = fmax(e.worst_error, e.error[row]);
            for (int64_t k = 0; q % 7 == 0 && k < at.head.tk; k++) {
                const att_pair p = pair_of(c, &at, q, k);
                e.slope = fmax(e.slope, steepest(plan, &p));
            }
        }
    return e;
}

static void expected_free(expected *e)
{
    free(e->out), free(e->lse), free(e->error);
    reference_free(&e->gradients);
}

static void check_forward(const att_plan *plan, const test_call *c, const expected *e)
{
    const att_call call = call_of(plan, &c->args);
    att_head_view at;
    int64_t row = 0;
    for (int64_t i = 0; next_site(&call, &i, &at);)
        for (int64_t q = 0; q < at.head.tq; q++, row++) {
            /* twice the score's error is a weight's, and again its sum's; weighing is a chain of tk */
            const double units = 8 + 2 * e->error[row] + 2 * sqrt((double)at.head.tk);
            check_row_is(plan, &at, q, e->out + row * c->n.value_dim, e->lse[row], 0x1p-24 * units, c->kind->name);
        }
}

/* The relative error of a slope dS is twice that of its score, and of dP, a chain of value_dim. Slopes of a row add up
 * to at most `slopes` in magnitude, times the score's own; a gradient gathers those of `rows` rows. */
static double gradient_limit(const expected *e, double value_dim, double rows)
{
    const double slopes = 2 * (1 + sqrt(value_dim)) * e->slope;
    return 0x1p-24 * (8 + 2 * e->worst_error + 2 * value_dim) * slopes * (1 + sqrt(rows));
}

static void check_backward(const att_plan *plan, const test_call *c, const expected *e)
{
    const char *what = c->kind->name;
    const reference *r = &e->gradients;
    const double d = (double)c->n.value_dim, rows = (double)(c->n.tq * c->n.heads / c->n.kv_heads);
    const double all_rows = (double)(c->n.batch * c->n.heads * c->n.tq);
    check_tensor(plan, what, "dq", &c->grads.dq, r->dq, gradient_limit(e, d, 1));
    check_tensor(plan, what, "dk", &c->grads.dk, r->dk, gradient_limit(e, d, rows));
    check_tensor(plan, what, "dv", &c->grads.dv, r->dv, gradient_limit(e, d, rows));
    for (int i = 0; i < c->grads.n_dparams; i++)
        check_tensor(plan, what, "dparam", dparam_of(&c->grads, i), r->dparam[i], gradient_limit(e, d, all_rows));
}

/* A call of a kind and shape, after what `change` does to it, or NULL, on each set against one definition. */
static void check_call(att_ctx *const *sets, int n_sets, const kind *kind, sizes n, bool shared,
                       void (*change)(test_call *c))
{
    expected e = {0};
    for (int i = 0; i < n_sets; i++) {
        test_call c = make_call(kind, n, shared);
        if (change)
            change(&c);
        att_plan *plan = plan_of(sets[i], &c.spec);
        run_call(sets[i], &c);
        if (i == 0)
            e = expected_of(plan, &c);
        check_forward(plan, &c, &e);
        check_backward(plan, &c, &e);
        att_plan_free(plan);
        call_free(&c);
    }
    expected_free(&e);
}

static const sizes shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1},        {1, 1, 1, 1, 50, 70, 40, 33, 5},    {2, 2, 1, 5, 33, 16, 24, 20, 8},
    {1, 4, 2, 33, 65, 45, 31, 17, 51},  {1, 3, 1, 17, 260, 64, 20, 16, 16}, {1, 1, 1, 66, 31, 130, 67, 7, 40},
    {1, 2, 2, 3, 40, 300, 10, 129, 9},  {2, 2, 2, 9, 0, 8, 8, 8, 8},        {2, 1, 1, 0, 9, 8, 8, 8, 8},
    {2, 2, 1, 1, 70, 600, 64, 520, 64},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void make_causal(test_call *c)
{
    add_mask(&c->spec, att_mask_causal);
    c->spec.align = ATT_ALIGN_BOTTOM_RIGHT;
    c->spec.scale = 0.75f;
}

static void every_score_agrees_with_its_definition(void **state)
{
    (void)state;
    att_ctx *sets[CHECK_MOST_SETS];
    const int n_sets = check_open_all(sets, 2);
    for (int k = 0; k < N_KINDS; k++)
        for (int i = k % check_step(5); i < N_SHAPES; i += check_step(5)) {
            check_call(sets, n_sets, &kinds[k], shapes[i], false, NULL);
            check_call(sets, n_sets, &kinds[k], shapes[i], true, make_causal);
        }
    check_close_all(sets, n_sets);
}

static void the_reference_agrees_with_finite_differences(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){1, 1, 1, 4, 5, 3, 3, 6, 2}, true);
        check_reference(ctx, &c.spec, &c.args, &c.grads, c.kind->name);
        call_free(&c);
    }
    att_close(ctx);
}

static void weights_are_those_of_the_definition(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const int k = i / 2;
        test_call c = make_call(&kinds[k], (sizes){2, 4, 2, 40, 33, 20, 28, 18, 8}, i % 2);
        att_plan *plan = plan_of(ctx, &c.spec);
        const att_call call = call_of(plan, &c.args);
        att_head_view at;
        float weights[5 * 33];
        double want[33];
        assert_int_equal(att_weights(plan, &c.args, 1, 3, 30, 5, weights), ATT_OK);
        att_call_head(&call, 1, 3, &at);
        for (int64_t q = 0; q < 5; q++) {
            const double limit = 0x1p-24 * (8 + 2 * score_error(&c, &at, 30 + q));
            att_ref_attention_row(plan, &at, 30 + q, want, NULL);
            for (int64_t key = 0; key < 33; key++)
                check_near(want[key], weights[q * 33 + key], limit, "%s", kinds[k].name);
        }
        att_plan_free(plan);
        call_free(&c);
    }
    att_close(ctx);
}

static void make_large(test_call *c)
{
    for (int64_t i = 0; i < 40 * 150; i++)
        floats(&c->args.q)[i] *= i / 150 % 3 ? 1 : 30; /* up to 60; sums with the keys' are small, or large */
    for (int64_t i = 0; i < 70 * 150; i++)
        floats(&c->args.k)[i] = (i / 150 % 5 ? 1 : -1) * floats(&c->args.q)[i % (3 * 150)] + 0.1f;
}

/* Rows that the exponentials of src/attn/score/additive.c cannot hold. */
static void additive_is_right_for_large_rows(void **state)
{
    (void)state;
    att_ctx *sets[CHECK_MOST_SETS];
    const int n_sets = check_open_all(sets, 1);
    check_call(sets, n_sets, &kinds[0], (sizes){1, 1, 1, 40, 70, 150, 150, 0, 12}, true, make_large);
    check_close_all(sets, n_sets);
}

static void make_gaps(test_call *c)
{
    static uint8_t mask[300];
    for (int k = 0; k < 300; k++)
        mask[k] = k % 3 > 0 && (k < 64 || k >= 128);
    add_mask(&c->spec, att_mask_boolean);
    att_wrap(param_at(&c->args, c->args.n_params), mask, ATT_BOOL, ATT_DIMS(1, 1, 1, 300), NULL);
    for (int64_t k = 0; k < 300; k += 7)
        floats(&c->args.k)[k * c->n.head_dim + 37 * k % c->n.head_dim] *= 50;
}

/* A single query leaves for its backward what it has made of each key: of whole vectors of features or not, of large
 * ones among them, and not of keys that it does not attend to. */
static void additive_of_one_query_is_right(void **state)
{
    (void)state;
    static const int64_t dims[] = {150, 192, 5};
    att_ctx *sets[CHECK_MOST_SETS];
    const int n_sets = check_open_all(sets, 1);
    for (int i = 0; i < 3; i++)
        check_call(sets, n_sets, &kinds[0], (sizes){2, 2, 2, 1, 300, dims[i], dims[i], 0, 12}, true, make_gaps);
    check_close_all(sets, n_sets);
}

static void wrong_parameters_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const sizes n = {1, 2, 2, 5, 9, 8, 10, 6, 8};
    const struct {
        int kind, param; /* whose dimension or existence is wrong */
        int dim;         /* -1: it is not given, -2: it is, and should not be */
        const char *words;
    } wrong[] = {{0, 0, -1, "args.param[0] is not given: the v of \"additive\""},
                 {0, 0, 1, "v.dim[1] = 99 but spec.head_dim = 8"},
                 {0, 0, 0, "v.dim[0] = 99, expected 1 or spec.heads = 2"},
                 {0, 1, -2, "args.n_params is 2, but the plan has 1: v of \"additive\""},
                 {1, 2, -1, "args.param[2] is not given: the Wk of \"additive\""},
                 {1, 0, 1, "v.dim[1] = 99 but spec.score_dim = 6"},
                 {1, 1, 1, "Wq.dim[1] = 99 but spec.score_dim = 6"},
                 {1, 1, 2, "Wq.dim[2] = 99 but spec.head_dim = 8"},
                 {1, 2, 2, "Wk.dim[2] = 99 but spec.key_dim = 10"},
                 {2, 0, 2, "W.dim[2] = 99 but spec.key_dim = 10"},
                 {3, 0, -2, "args.n_params is 1, but the plan has 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_call c = make_call(&kinds[wrong[i].kind], n, false);
        att_plan *plan = plan_of(ctx, &c.spec);
        att_tensor *p = param_at(&c.args, wrong[i].param);
        if (wrong[i].dim == -1)
            *p = (att_tensor){0};
        else if (wrong[i].dim == -2)
            *p = c.args.q;
        else
            p->dim[wrong[i].dim] = 99;
        assert_true(att_forward(plan, &c.args) != ATT_OK);
        check_message(ctx, wrong[i].words);
        att_plan_free(plan);
        call_free(&c);
    }
    att_close(ctx);
}

static void wrong_dimensions_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_plan *plan;
    const struct {
        const att_score *const score;
        int64_t key_dim, score_dim;
        const char *words;
    } wrong[] = {{att_score_dot, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: dot needs them equal"},
                 {att_score_cosine, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: cosine needs them equal"},
                 {att_score_additive, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: additive needs them equal"},
                 {att_score_additive, 9, -1, "spec.score_dim is -1, expected 1.."},
                 {att_score_general, 9, 4, "spec.score_dim is 4, but \"general\" projects nothing to it"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const att_attention_spec s = {.size = sizeof s,
                                      .heads = 1,
                                      .head_dim = 8,
                                      .key_dim = wrong[i].key_dim,
                                      .score_dim = wrong[i].score_dim,
                                      .score = wrong[i].score};
        assert_true(att_plan_new(ctx, &s, &plan) != ATT_OK);
        check_message(ctx, wrong[i].words);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_score_agrees_with_its_definition),
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(weights_are_those_of_the_definition),
        cmocka_unit_test(additive_is_right_for_large_rows),
        cmocka_unit_test(additive_of_one_query_is_right),
        cmocka_unit_test(wrong_parameters_are_named),
        cmocka_unit_test(wrong_dimensions_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
