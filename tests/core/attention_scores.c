/* Scores with parameters, or with rows that are prepared: forward and backward against the definition in double, on
 * every instruction set, and what must hold exactly. */
#include "attention_help.h"
#include "attn/attn.h"
#include "fail_alloc.h"
#include "simd/isa.h"

#include <math.h>

/* ---- one call of one score */

typedef struct sizes {
    int64_t batch, heads, kv_heads, tq, tk, head_dim, key_dim, score_dim, value_dim;
} sizes;

enum { MAX_ROW = 1024 };

/* A score as it is tested. */
typedef struct kind {
    const char *name;
    const att_score *score;
    double (*error)(const att_pair *p); /* bound of a score's rounding errors, in units of 2^-24 */
} kind;

typedef struct test_call {
    const kind *kind;
    sizes n;
    int64_t param_heads; /* 1: all heads share the parameters */
    att_attention_spec spec;
    float *data[20]; /* what drop() frees */
    int n_data;
    att_attention_args args;
    att_attention_grads grads;
} test_call;

static float *numbers(test_call *c, att_tensor *t, int rank, const int64_t *dim, float spread)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dim[i];
    float *x = check_numbers(count, (uint64_t)c->n_data);
    check_fill(x, count, (uint64_t)c->n_data, 0, spread);
    att_wrap(t, x, ATT_F32, rank, dim, NULL);
    return c->data[c->n_data++] = x;
}

static int64_t count_of(const att_tensor *t)
{
    int64_t n = t->rank ? 1 : 0;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

static float *floats(const att_tensor *t) { return t->data; }

/* The parameters of additive: v. */
static void make_params(test_call *c)
{
    const int64_t h = c->param_heads;
    numbers(c, &c->args.score_param[0], ATT_DIMS(h, c->n.head_dim), 1);
}

static test_call make_call(const kind *kind, sizes n, bool shared)
{
    test_call c = {.kind = kind, .n = n, .param_heads = shared ? 1 : n.heads};
    c.spec = (att_attention_spec){.size = sizeof c.spec,
                                  .heads = n.heads,
                                  .kv_heads = n.kv_heads,
                                  .head_dim = n.head_dim,
                                  .value_dim = n.value_dim,
                                  .score = kind->score};
    c.args.size = sizeof c.args;
    c.grads.size = sizeof c.grads;
    numbers(&c, &c.args.q, ATT_DIMS(n.batch, n.heads, n.tq, n.head_dim), 2);
    numbers(&c, &c.args.k, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.key_dim), 2);
    numbers(&c, &c.args.v, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.value_dim), 1);
    numbers(&c, &c.args.out, ATT_DIMS(n.batch, n.heads, n.tq, n.value_dim), 1);
    numbers(&c, &c.args.lse, ATT_DIMS(n.batch, n.heads, n.tq), 1);
    numbers(&c, &c.grads.dout, ATT_DIMS(n.batch, n.heads, n.tq, n.value_dim), 1);
    numbers(&c, &c.grads.dlse, ATT_DIMS(n.batch, n.heads, n.tq), 1);
    numbers(&c, &c.grads.dq, 4, c.args.q.dim, 1);
    numbers(&c, &c.grads.dk, 4, c.args.k.dim, 1);
    numbers(&c, &c.grads.dv, 4, c.args.v.dim, 1);
    make_params(&c);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        if (c.args.score_param[i].rank)
            numbers(&c, &c.grads.dscore_param[i], c.args.score_param[i].rank, c.args.score_param[i].dim, 1);
    return c;
}

static void drop_call(test_call *c)
{
    while (c->n_data)
        free(c->data[--c->n_data]);
}

static att_plan *plan_of(att_ctx *ctx, const test_call *c)
{
    att_plan *plan;
    if (att_plan_new(ctx, &c->spec, &plan))
        fail_msg("%s", att_error(ctx));
    return plan;
}

static void run_both(att_ctx *ctx, const test_call *c)
{
    att_plan *plan = plan_of(ctx, c);
    if (att_forward(plan, &c->args) || att_backward(plan, &c->args, &c->grads))
        fail_msg("%s", att_error(ctx));
    att_plan_free(plan);
}

/* ---- the reference of a whole call */

/* Gradients in double, in the order of att_attention_grads. */
typedef struct reference {
    double *dq, *dk, *dv, *dparam[ATT_MAX_PARAMS];
    double error; /* of any score */
} reference;

static reference reference_of(const att_plan *plan, const test_call *c)
{
    att_call call;
    reference r = {0};
    double *weights = calloc((size_t)c->n.tk + 1, sizeof *weights), out[MAX_ROW];
    r.dq = calloc((size_t)count_of(&c->args.q) + 1, sizeof *r.dq);
    r.dk = calloc((size_t)count_of(&c->args.k) + 1, sizeof *r.dk);
    r.dv = calloc((size_t)count_of(&c->args.v) + 1, sizeof *r.dv);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        r.dparam[i] = calloc((size_t)count_of(&c->args.score_param[i]) + 1, sizeof *r.dparam[i]);
    assert_int_equal(att_call_check(plan, &c->args, true, &call), ATT_OK);
    for (int64_t b = 0; b < c->n.batch; b++)
        for (int64_t h = 0; h < c->n.heads; h++) {
            att_site at;
            att_call_site(&call, b, h, &at);
            const int64_t kv = b * c->n.kv_heads + h / (c->n.heads / c->n.kv_heads);
            for (int64_t q = 0; q < at.place.tq; q++) {
                const int64_t row = (b * c->n.heads + h) * c->n.tq + q;
                att_ref_grads g = {.dq = r.dq + row * c->n.head_dim,
                                   .dk = r.dk + kv * c->n.tk * c->n.key_dim,
                                   .dv = r.dv + kv * c->n.tk * c->n.value_dim};
                for (int i = 0; i < ATT_MAX_PARAMS; i++) {
                    const att_tensor *p = &c->args.score_param[i];
                    g.dscore_param[i] =
                        p->rank ? r.dparam[i] + (p->dim[0] == 1 ? 0 : h * (count_of(p) / p->dim[0])) : NULL;
                }
                att_ref_attention_row(plan, &at, q, weights, out);
                att_ref_attention_row_backward(plan, &at, q, weights, out,
                                               floats(&c->grads.dout) + row * c->n.value_dim,
                                               floats(&c->grads.dlse)[row], &g);
                for (int64_t k = 0; k < at.place.tk; k++)
                    r.error =
                        fmax(r.error, c->kind->error(&(att_pair){.query = (const float *)at.q.at + q * at.q.stride,
                                                                 .key = (const float *)at.k.at + k * at.k.stride,
                                                                 .dim = c->n.head_dim,
                                                                 .key_dim = c->n.key_dim,
                                                                 .param = at.score_param}));
            }
        }
    free(weights);
    return r;
}

static void drop_reference(reference *r)
{
    free(r->dq), free(r->dk), free(r->dv);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        free(r->dparam[i]);
}

/* ---- scores and their rounding errors */

/* A tanh is off by 24 at most, see src/attn/score/additive.c; the sum is a chain of partial sums up to the whole. */
static double additive_error(const att_pair *p)
{
    double v = 0;
    for (int64_t a = 0; a < p->param[0].count; a++)
        v += fabs((double)p->param[0].data[a]);
    return v * (24 + sqrt((double)p->param[0].count));
}

static const kind kinds[] = {
    {"additive", &att_score_additive, additive_error},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- tests */

static void check_forward(const att_plan *plan, const test_call *c)
{
    att_call call;
    assert_int_equal(att_call_check(plan, &c->args, true, &call), ATT_OK);
    for (int64_t b = 0; b < c->n.batch; b++)
        for (int64_t h = 0; h < c->n.heads; h++) {
            att_site at;
            att_call_site(&call, b, h, &at);
            for (int64_t q = 0; q < at.place.tq; q++) {
                double out[MAX_ROW], error = 0;
                for (int64_t k = 0; k < at.place.tk; k++)
                    error = fmax(error, c->kind->error(&(att_pair){.query = (const float *)at.q.at + q * at.q.stride,
                                                                   .key = (const float *)at.k.at + k * at.k.stride,
                                                                   .dim = c->n.head_dim,
                                                                   .key_dim = c->n.key_dim,
                                                                   .param = at.score_param}));
                /* twice the score's error is a weight's, and again its sum's; weighing is a chain of tk */
                const double limit = 0x1p-24 * (8 + 2 * error + 2 * sqrt((double)at.place.tk));
                const double lse = att_ref_attention_row(plan, &at, q, NULL, out);
                for (int64_t d = 0; d < c->n.value_dim; d++)
                    check_near(out[d], ((const float *)at.out.at)[q * at.out.stride + d], limit,
                               "%s %s: out[%d] of query %d", att_isa(plan->ctx), c->kind->name, (int)d, (int)q);
                check_near(lse, at.lse[q * at.lse_stride], limit + 0x1p-23 * fabs(lse), "%s %s: lse of query %d",
                           att_isa(plan->ctx), c->kind->name, (int)q);
            }
        }
}

/* The relative error of a slope dS is twice that of its score, and of dP, a chain of value_dim. Slopes of a row add up
 * to at most `slopes` in magnitude; a gradient gathers those of `rows` rows times derivatives up to 1 or so. */
static void check_gradient(const char *where, const char *name, const att_tensor *t, const double *expected,
                           double error, double value_dim, double rows)
{
    const double slopes = 2 * (1 + sqrt(value_dim));
    const double limit = 0x1p-24 * (8 + 2 * error + 2 * value_dim) * slopes * (1 + sqrt(rows));
    for (int64_t i = 0; i < count_of(t); i++)
        check_near(expected[i], floats(t)[i], limit, "%s: %s[%d]", where, name, (int)i);
}

static void check_backward(const att_plan *plan, const test_call *c)
{
    char where[100];
    snprintf(where, sizeof where, "%s %s", att_isa(plan->ctx), c->kind->name);
    reference r = reference_of(plan, c);
    const double d = (double)c->n.value_dim, rows = (double)(c->n.tq * c->n.heads / c->n.kv_heads);
    check_gradient(where, "dq", &c->grads.dq, r.dq, r.error, d, 1);
    check_gradient(where, "dk", &c->grads.dk, r.dk, r.error, d, rows);
    check_gradient(where, "dv", &c->grads.dv, r.dv, r.error, d, rows);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        check_gradient(where, "dscore_param", &c->grads.dscore_param[i], r.dparam[i], r.error, d,
                       (double)(c->n.batch * c->n.heads * c->n.tq));
    drop_reference(&r);
}

static const sizes shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1},         {1, 1, 1, 1, 50, 70, 70, 33, 5},    {2, 2, 1, 5, 33, 16, 16, 20, 8},
    {1, 4, 2, 33, 65, 45, 45, 64, 51},   {1, 3, 1, 17, 260, 64, 64, 80, 16}, {1, 1, 1, 66, 31, 130, 130, 7, 40},
    {1, 2, 2, 3, 300, 300, 300, 129, 9}, {2, 2, 2, 9, 0, 8, 8, 8, 8},        {2, 1, 1, 0, 9, 8, 8, 8, 8},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void every_score_agrees_with_its_definition(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int k = 0; k < N_KINDS; k++)
            for (int i = 0; i < N_SHAPES; i++)
                for (int shared = 0; shared < 2; shared++) {
                    test_call c = make_call(&kinds[k], shapes[i], shared);
                    if (shared) {
                        c.spec.mask[0] = &att_mask_causal;
                        c.spec.align = ATT_ALIGN_BOTTOM_RIGHT;
                        c.spec.scale = 0.75f;
                    }
                    att_plan *plan = plan_of(ctx, &c);
                    run_both(ctx, &c);
                    check_forward(plan, &c);
                    check_backward(plan, &c);
                    att_plan_free(plan);
                    drop_call(&c);
                }
}

/* sum(dout out) + sum(dlse lse) of the only head */
static double objective(const att_plan *plan, const test_call *c)
{
    att_call call;
    att_site at;
    double sum = 0, out[MAX_ROW];
    assert_int_equal(att_call_check(plan, &c->args, true, &call), ATT_OK);
    att_call_site(&call, 0, 0, &at);
    for (int64_t q = 0; q < c->n.tq; q++) {
        sum += floats(&c->grads.dlse)[q] * att_ref_attention_row(plan, &at, q, NULL, out);
        for (int64_t d = 0; d < c->n.value_dim; d++)
            sum += floats(&c->grads.dout)[q * c->n.value_dim + d] * out[d];
    }
    return sum;
}

/* Steps of 2^-8 in float are exact enough where x is a multiple of 2^-12; the error of the difference is its third
 * derivative, at most some tens here, times step^2 / 6. */
static void agrees_with_differences(const att_plan *plan, const test_call *c, const att_tensor *t, const double *want,
                                    const char *name)
{
    for (int64_t i = 0; i < count_of(t); i++) {
        float *x = floats(t) + i;
        const float middle = *x;
        *x = middle + 0x1p-8f;
        const double up = objective(plan, c), x_up = *x;
        *x = middle - 0x1p-8f;
        const double slope = (up - objective(plan, c)) / (x_up - *x);
        *x = middle;
        if (!(fabs(slope - want[i]) <= 50 * 0x1p-16 / 6))
            fail_msg("%s: %s[%d]: differences give %.9g, the reference %.9g", c->kind->name, name, (int)i, slope,
                     want[i]);
    }
}

static void the_reference_agrees_with_finite_differences(void **state)
{
    (void)state;
    att_ctx *ctx = open_isa("scalar", 1);
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){1, 1, 1, 4, 5, 3, 3, 6, 2}, true);
        att_plan *plan = plan_of(ctx, &c);
        reference r = reference_of(plan, &c);
        agrees_with_differences(plan, &c, &c.args.q, r.dq, "q");
        agrees_with_differences(plan, &c, &c.args.k, r.dk, "k");
        agrees_with_differences(plan, &c, &c.args.v, r.dv, "v");
        for (int i = 0; i < ATT_MAX_PARAMS; i++)
            agrees_with_differences(plan, &c, &c.args.score_param[i], r.dparam[i], "score_param");
        drop_reference(&r);
        att_plan_free(plan);
        drop_call(&c);
    }
    att_close(ctx);
}

static void same_gradients(const test_call *a, const test_call *b)
{
    assert_same_bits(floats(&a->args.out), floats(&b->args.out), count_of(&a->args.out));
    assert_same_bits(floats(&a->grads.dq), floats(&b->grads.dq), count_of(&a->grads.dq));
    assert_same_bits(floats(&a->grads.dk), floats(&b->grads.dk), count_of(&a->grads.dk));
    assert_same_bits(floats(&a->grads.dv), floats(&b->grads.dv), count_of(&a->grads.dv));
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        assert_same_bits(floats(&a->grads.dscore_param[i]), floats(&b->grads.dscore_param[i]),
                         count_of(&a->grads.dscore_param[i]));
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {2, 4, 2, 83, 300, 40, 40, 24, 24};
            test_call first = make_call(&kinds[k], n, shared), c = make_call(&kinds[k], n, shared);
            for (int threads = 1; threads <= 16; threads++) {
                att_ctx *ctx = open_isa(NULL, threads);
                run_both(ctx, threads == 1 ? &first : &c);
                if (threads > 1)
                    same_gradients(&first, &c);
                att_close(ctx);
            }
            drop_call(&first), drop_call(&c);
        }
}

static void a_row_alone_has_the_bits_that_it_has_among_others(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (int k = 0; k < N_KINDS; k++) {
            const sizes n = {1, 2, 1, 77, 90, 150, 150, 70, 12};
            test_call c = make_call(&kinds[k], n, false);
            att_plan *plan = plan_of(ctx, &c);
            assert_int_equal(att_forward(plan, &c.args), ATT_OK);
            for (int64_t first = 0; first < n.tq; first += 19)
                for (int64_t count = 1; count <= 17 && first + count <= n.tq; count += 8) {
                    float *out = check_numbers(2 * count * 12, 0);
                    att_attention_args a = c.args;
                    a.lse = (att_tensor){0};
                    att_wrap(&a.q, floats(&c.args.q) + first * 150, ATT_F32, ATT_DIMS(1, 2, count, 150),
                             c.args.q.stride);
                    att_wrap(&a.out, out, ATT_F32, ATT_DIMS(1, 2, count, 12), NULL);
                    assert_int_equal(att_forward(plan, &a), ATT_OK);
                    for (int64_t h = 0; h < 2; h++)
                        assert_same_bits(floats(&c.args.out) + (h * 77 + first) * 12, out + h * count * 12, count * 12);
                    free(out);
                }
            att_plan_free(plan);
            drop_call(&c);
        }
}

/* The key is NaN or infinite, or so are parts of it; nobody attends to it, one query in the tile does. */
static void what_is_not_finite_reaches_only_those_who_attend_to_it(void **state)
{
    (void)state;
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, 30};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (int k = 0; k < N_KINDS; k++)
            for (int i = 0; i < 5; i++) {
                const sizes n = {1, 1, 1, 70, 70, 40, 40, 24, 12};
                test_call clean = make_call(&kinds[k], n, true), c = make_call(&kinds[k], n, true);
                clean.spec.mask[0] = c.spec.mask[0] = &att_mask_causal;
                clean.spec.align = c.spec.align = ATT_ALIGN_TOP_LEFT;
                for (int64_t d = 45 * 12; d < 70 * 12; d++) /* nothing flows back from those who do attend */
                    floats(&clean.grads.dout)[d] = floats(&c.grads.dout)[d] = 0;
                for (int64_t q = 45; q < 70; q++)
                    floats(&clean.grads.dlse)[q] = floats(&c.grads.dlse)[q] = 0;
                for (int64_t d = 0; d < 40; d += 7)
                    floats(&c.args.k)[45 * 40 + d] = strange[i];
                run_both(ctx, &clean), run_both(ctx, &c);
                assert_same_bits(floats(&clean.args.out), floats(&c.args.out), 45 * 12);
                assert_same_bits(floats(&clean.args.lse), floats(&c.args.lse), 45);
                assert_same_bits(floats(&clean.grads.dq), floats(&c.grads.dq), 45 * 40);
                for (int64_t d = 45 * 12; i == 0 && d < 70 * 12; d++)
                    assert_true(isnan(floats(&c.args.out)[d]));
                drop_call(&clean), drop_call(&c);
            }
}

/* No query attends to the last key, which is NaN: all that is asked for stays as it is without that key. */
static void a_masked_key_that_is_nan_reaches_nothing(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int k = 0; k < N_KINDS; k++) {
            const sizes n = {1, 2, 2, 33, 40, 36, 36, 24, 12};
            test_call clean = make_call(&kinds[k], n, true), c = make_call(&kinds[k], n, true);
            uint8_t mask[40];
            memset(mask, 1, sizeof mask);
            mask[39] = 0;
            test_call *const calls[] = {&clean, &c};
            for (int i = 0; i < 2; i++) {
                calls[i]->spec.mask[0] = &att_mask_boolean;
                att_wrap(&calls[i]->args.mask, mask, ATT_BOOL, ATT_DIMS(1, 1, 1, 40), NULL);
            }
            for (int64_t h = 0; h < 2; h++)
                for (int64_t d = 0; d < 36; d++)
                    floats(&c.args.k)[(h * 40 + 39) * 36 + d] = NAN;
            run_both(ctx, &clean), run_both(ctx, &c);
            same_gradients(&clean, &c);
            drop_call(&clean), drop_call(&c);
        }
}

/* Rows that the exponentials of src/attn/score/additive.c cannot hold. */
static void additive_is_right_for_large_rows(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        test_call c = make_call(&kinds[0], (sizes){1, 1, 1, 40, 70, 150, 150, 0, 12}, true);
        for (int64_t i = 0; i < 40 * 150; i++)
            floats(&c.args.q)[i] *= i / 150 % 3 ? 1 : 30; /* up to 60; sums with the keys' are small, or large */
        for (int64_t i = 0; i < 70 * 150; i++)
            floats(&c.args.k)[i] = (i / 150 % 5 ? 1 : -1) * floats(&c.args.q)[i % (3 * 150)] + 0.1f;
        att_plan *plan = plan_of(ctx, &c);
        run_both(ctx, &c);
        check_forward(plan, &c);
        check_backward(plan, &c);
        att_plan_free(plan);
        drop_call(&c);
    }
}

static void wrong_parameters_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = open_isa(NULL, 1);
    const sizes n = {1, 2, 2, 5, 9, 8, 8, 6, 8};
    test_call c = make_call(&kinds[0], n, false);
    att_plan *plan = plan_of(ctx, &c);
    struct {
        const char *words;
        att_attention_args a;
    } wrong[] = {{"args.score_param[0] is not given: the v of \"additive\"", c.args},
                 {"score_param[0].dim[1] = 7 but spec.head_dim = 8", c.args},
                 {"score_param[0].dim[0] = 3, expected 1 or spec.heads = 2", c.args},
                 {"args.score_param[1] is given, but \"additive\" has no such parameter", c.args}};
    wrong[0].a.score_param[0] = (att_tensor){0};
    wrong[1].a.score_param[0].dim[1] = 7;
    wrong[2].a.score_param[0].dim[0] = 3;
    wrong[3].a.score_param[1] = c.args.score_param[0];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(att_forward(plan, &wrong[i].a) != ATT_OK);
        if (!strstr(att_error(ctx), wrong[i].words))
            fail_msg("\"%s\" is not in \"%s\"", wrong[i].words, att_error(ctx));
    }
    att_plan_free(plan);
    drop_call(&c);
    att_close(ctx);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){2, 2, 1, 9, 20, 12, 12, 10, 8}, false);
        bool done = false;
        for (long n = 1; !done; n++) {
            fail_alloc f = {0};
            att_ctx *ctx = fail_open(&f);
            f.fail_at = f.calls + n;
            att_plan *plan = NULL;
            att_status e = att_plan_new(ctx, &c.spec, &plan);
            e = e ? e : att_forward(plan, &c.args);
            e = e ? e : att_backward(plan, &c.args, &c.grads);
            done = f.calls < f.fail_at;
            assert_int_equal(e, done ? ATT_OK : ATT_ERR_MEMORY);
            att_plan_free(plan);
            att_close(ctx);
            assert_int_equal(f.live, 0);
        }
        drop_call(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_score_agrees_with_its_definition),
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_row_alone_has_the_bits_that_it_has_among_others),
        cmocka_unit_test(what_is_not_finite_reaches_only_those_who_attend_to_it),
        cmocka_unit_test(a_masked_key_that_is_nan_reaches_nothing),
        cmocka_unit_test(additive_is_right_for_large_rows),
        cmocka_unit_test(wrong_parameters_are_named),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
