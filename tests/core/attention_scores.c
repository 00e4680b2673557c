/* Scores with parameters, or with rows that are prepared: forward and backward against the definition in double, on
 * every instruction set, and what must hold exactly. */
#include "attention_help.h"
#include "attn/attn.h"
#include "fail_alloc.h"
#include "kernel/kernel.h"
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
    bool projected, any_key_dim;
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

static float *floats(const att_tensor *t) { return t->data; }

/* W, or v, or v, Wq and Wk */
static void make_params(test_call *c)
{
    const sizes n = c->n;
    const int64_t h = c->param_heads;
    att_tensor *p = c->args.score_param;
    const float q_spread = 1 / sqrtf((float)n.head_dim), k_spread = 1 / sqrtf((float)n.key_dim);
    if (c->kind->score == &att_score_general)
        numbers(c, &p[0], ATT_DIMS(h, n.head_dim, n.key_dim), q_spread);
    if (c->kind->score == &att_score_additive)
        numbers(c, &p[0], ATT_DIMS(h, c->kind->projected ? n.score_dim : n.head_dim), 1);
    if (c->kind->projected) {
        numbers(c, &p[1], ATT_DIMS(h, n.score_dim, n.head_dim), q_spread);
        numbers(c, &p[2], ATT_DIMS(h, n.score_dim, n.key_dim), k_spread);
    }
}

static test_call make_call(const kind *kind, sizes n, bool shared)
{
    n.key_dim = kind->any_key_dim ? n.key_dim : n.head_dim;
    test_call c = {.kind = kind, .n = n, .param_heads = shared ? 1 : n.heads};
    c.spec = (att_attention_spec){.size = sizeof c.spec,
                                  .heads = n.heads,
                                  .kv_heads = n.kv_heads,
                                  .head_dim = n.head_dim,
                                  .key_dim = n.key_dim,
                                  .value_dim = n.value_dim,
                                  .score_dim = kind->projected ? n.score_dim : 0,
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

static void run_call(att_ctx *ctx, const test_call *c) { run_both(ctx, &c->spec, &c->args, &c->grads); }

/* ---- the reference of a whole call */

static att_pair pair_of(const test_call *c, const att_site *at, int64_t q, int64_t k)
{
    return (att_pair){.query = (const float *)at->q.at + q * at->q.stride,
                      .key = (const float *)at->k.at + k * at->k.stride,
                      .dim = c->n.head_dim,
                      .key_dim = c->n.key_dim,
                      .param = at->score_param};
}

/* Gradients in double, in the order of att_attention_grads. */
typedef struct reference {
    double *dq, *dk, *dv, *dparam[ATT_MAX_PARAMS];
    double error; /* of any score */
    double slope; /* the steepest of any score, by anything */
} reference;

/* The steepest derivative of a pair's score. */
static double steepest(const att_plan *plan, const att_pair *p)
{
    double *x = calloc((size_t)(p->dim + p->key_dim), sizeof *x), *dparam[ATT_MAX_PARAMS] = {NULL}, most = 1;
    plan->score->derivative(p, 1, x, x + p->dim, dparam);
    for (int64_t i = 0; i < p->dim + p->key_dim; i++)
        most = fmax(most, fabs(x[i]));
    free(x);
    return most;
}

static reference reference_of(const att_plan *plan, const test_call *c)
{
    att_call call;
    reference r = {0};
    double *weights = calloc((size_t)c->n.tk + 1, sizeof *weights), out[MAX_ROW];
    r.dq = calloc((size_t)check_count(&c->args.q) + 1, sizeof *r.dq);
    r.dk = calloc((size_t)check_count(&c->args.k) + 1, sizeof *r.dk);
    r.dv = calloc((size_t)check_count(&c->args.v) + 1, sizeof *r.dv);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        r.dparam[i] = calloc((size_t)check_count(&c->args.score_param[i]) + 1, sizeof *r.dparam[i]);
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
                        p->rank ? r.dparam[i] + (p->dim[0] == 1 ? 0 : h * (check_count(p) / p->dim[0])) : NULL;
                }
                att_ref_attention_row(plan, &at, q, weights, out);
                att_ref_attention_row_backward(plan, &at, q, weights, out,
                                               floats(&c->grads.dout) + row * c->n.value_dim,
                                               floats(&c->grads.dlse)[row], &g);
                for (int64_t k = 0; k < at.place.tk; k++) {
                    const att_pair p = pair_of(c, &at, q, k);
                    r.error = fmax(r.error, c->kind->error(&p));
                    r.slope = fmax(r.slope, q % 7 ? 0 : steepest(plan, &p));
                }
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

/* A chain of n products is off by sqrt(n) + 2 of the sum of their magnitudes: first q W, then the product with k. */
static double general_error(const att_pair *p)
{
    double sum = 0;
    for (int64_t i = 0; i < p->dim; i++)
        for (int64_t j = 0; j < p->key_dim; j++)
            sum += fabs((double)p->query[i] * p->param[0].data[i * p->key_dim + j] * p->key[j]);
    return sum * (sqrt((double)p->dim) + sqrt((double)p->key_dim) + 4);
}

/* Two lengths, roots of chains, then a chain over numbers whose magnitudes add up to 1. */
static double cosine_error(const att_pair *p) { return 2 * sqrt((double)p->dim) + 10; }

/* Additive, of rows whose errors go straight into tanh. */
static double projected_error(const att_pair *p)
{
    const int64_t count = p->param[0].count;
    double sum = 0;
    for (int64_t a = 0; a < count; a++) {
        double q = 0, k = 0;
        for (int64_t i = 0; i < p->dim; i++)
            q += fabs((double)p->param[1].data[a * p->dim + i] * p->query[i]);
        for (int64_t i = 0; i < p->key_dim; i++)
            k += fabs((double)p->param[2].data[a * p->key_dim + i] * p->key[i]);
        q *= sqrt((double)p->dim) + 2;
        k *= sqrt((double)p->key_dim) + 2;
        sum += fabs((double)p->param[0].data[a]) * (24 + sqrt((double)count) + q + k);
    }
    return sum;
}

static const kind kinds[] = {
    {"additive", &att_score_additive, false, false, additive_error},
    {"projected additive", &att_score_additive, true, true, projected_error},
    {"general", &att_score_general, false, true, general_error},
    {"cosine", &att_score_cosine, false, false, cosine_error},
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
                for (int64_t k = 0; k < at.place.tk; k++) {
                    const att_pair p = pair_of(c, &at, q, k);
                    error = fmax(error, c->kind->error(&p));
                }
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
 * to at most `slopes` in magnitude, times the score's own; a gradient gathers those of `rows` rows. */
static void check_gradient(const char *where, const char *name, const att_tensor *t, const double *expected,
                           const reference *r, double value_dim, double rows)
{
    const double error = r->error, slopes = 2 * (1 + sqrt(value_dim)) * r->slope;
    const double limit = 0x1p-24 * (8 + 2 * error + 2 * value_dim) * slopes * (1 + sqrt(rows));
    for (int64_t i = 0; i < check_count(t); i++)
        check_near(expected[i], floats(t)[i], limit, "%s: %s[%d]", where, name, (int)i);
}

static void check_backward(const att_plan *plan, const test_call *c)
{
    char where[100];
    snprintf(where, sizeof where, "%s %s", att_isa(plan->ctx), c->kind->name);
    reference r = reference_of(plan, c);
    const double d = (double)c->n.value_dim, rows = (double)(c->n.tq * c->n.heads / c->n.kv_heads);
    check_gradient(where, "dq", &c->grads.dq, r.dq, &r, d, 1);
    check_gradient(where, "dk", &c->grads.dk, r.dk, &r, d, rows);
    check_gradient(where, "dv", &c->grads.dv, r.dv, &r, d, rows);
    for (int i = 0; i < ATT_MAX_PARAMS; i++)
        check_gradient(where, "dscore_param", &c->grads.dscore_param[i], r.dparam[i], &r, d,
                       (double)(c->n.batch * c->n.heads * c->n.tq));
    drop_reference(&r);
}

static const sizes shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1},       {1, 1, 1, 1, 50, 70, 40, 33, 5},    {2, 2, 1, 5, 33, 16, 24, 20, 8},
    {1, 4, 2, 33, 65, 45, 31, 17, 51}, {1, 3, 1, 17, 260, 64, 20, 16, 16}, {1, 1, 1, 66, 31, 130, 67, 7, 40},
    {1, 2, 2, 3, 40, 300, 10, 129, 9}, {2, 2, 2, 9, 0, 8, 8, 8, 8},        {2, 1, 1, 0, 9, 8, 8, 8, 8},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void every_score_agrees_with_its_definition(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int k = 0; k < N_KINDS; k++)
            for (int i = k % check_step(3); i < N_SHAPES; i += check_step(3))
                for (int shared = 0; shared < 2; shared++) {
                    test_call c = make_call(&kinds[k], shapes[i], shared);
                    if (shared) {
                        c.spec.mask[0] = &att_mask_causal;
                        c.spec.align = ATT_ALIGN_BOTTOM_RIGHT;
                        c.spec.scale = 0.75f;
                    }
                    att_plan *plan = plan_of(ctx, &c.spec);
                    run_call(ctx, &c);
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
    for (int64_t i = 0; i < check_count(t); i++) {
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
    att_ctx *ctx = check_open("scalar", 1);
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){1, 1, 1, 4, 5, 3, 3, 6, 2}, true);
        att_plan *plan = plan_of(ctx, &c.spec);
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

static void assert_same_written(const test_call *a, const test_call *b)
{
    for (int i = 0; i < WRITTEN; i++) {
        const att_tensor *x = written(&a->args, &a->grads, i), *y = written(&b->args, &b->grads, i);
        assert_same_bits(x->data, y->data, check_count(x));
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {2, 4, 2, 83, 300, 40, 40, 24, 24};
            test_call c = make_call(&kinds[k], n, shared);
            check_threads(check_step(5), &c.spec, &c.args, &c.grads);
            drop_call(&c);
        }
}

static void a_row_alone_has_the_bits_that_it_has_among_others(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (int k = 0; k < N_KINDS; k++) {
            const sizes n = {1, 2, 1, 77, 90, 150, 150, 70, 12};
            test_call c = make_call(&kinds[k], n, false);
            att_plan *plan = plan_of(ctx, &c.spec);
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
                run_call(ctx, &clean), run_call(ctx, &c);
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
            run_call(ctx, &clean), run_call(ctx, &c);
            assert_same_written(&clean, &c);
            drop_call(&clean), drop_call(&c);
        }
}

/* Sequences one after the other, or each in a row of its own with NaN behind its end. */
static void ragged_and_padded_give_the_same_bits(void **state)
{
    (void)state;
    static const int64_t lengths[3] = {20, 1, 13}, offsets[4] = {0, 20, 21, 34};
    enum { TOKENS = 34, T = 20, D = 24, DV = 12 };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int kd = 0; kd < N_KINDS; kd++) {
            test_call c = make_call(&kinds[kd], (sizes){3, 1, 1, T, T, D, D, 10, DV}, true);
            test_call r = make_call(&kinds[kd], (sizes){1, 1, 1, TOKENS, TOKENS, D, D, 10, DV}, true);
            memcpy(r.args.score_param, c.args.score_param, sizeof c.args.score_param);
            c.args.q_lengths = c.args.k_lengths = lengths;
            r.args.n_sequences = 3;
            r.args.q_offsets = offsets;
            att_tensor *const a[] = {&c.args.q,   &c.args.k,   &c.args.v,   &c.args.out,   &c.grads.dout,
                                     &c.grads.dq, &c.grads.dk, &c.grads.dv, &c.grads.dlse, &c.args.lse};
            att_tensor *const b[] = {&r.args.q,   &r.args.k,   &r.args.v,   &r.args.out,   &r.grads.dout,
                                     &r.grads.dq, &r.grads.dk, &r.grads.dv, &r.grads.dlse, &r.args.lse};
            for (int i = 0; i < 10; i++) {
                const int64_t dim = i < 8 ? a[i]->dim[3] : 1;
                for (int64_t s = 0; s < 3; s++) {
                    memcpy(floats(b[i]) + offsets[s] * dim, floats(a[i]) + s * T * dim,
                           (size_t)(lengths[s] * dim) * sizeof(float));
                    for (int64_t x = (s * T + lengths[s]) * dim; x < (s + 1) * T * dim; x++)
                        floats(a[i])[x] = NAN;
                }
                att_wrap(b[i], b[i]->data, ATT_F32, i < 8 ? 3 : 2, (const int64_t[]){TOKENS, 1, dim}, NULL);
            }
            run_call(ctx, &c), run_call(ctx, &r);
            for (int i = 3; i < 8; i++)
                for (int64_t s = 0; s < 3 && i != 4; s++)
                    assert_same_bits(floats(a[i]) + s * T * a[i]->dim[3], floats(b[i]) + offsets[s] * a[i]->dim[3],
                                     lengths[s] * a[i]->dim[3]);
            for (int i = 0; i < ATT_MAX_PARAMS; i++)
                assert_same_bits(floats(&c.grads.dscore_param[i]), floats(&r.grads.dscore_param[i]),
                                 check_count(&c.grads.dscore_param[i]));
            drop_call(&c), drop_call(&r);
        }
}

static void accumulating_adds_to_what_is_there(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int k = 0; k < N_KINDS; k++)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {2, 4, 2, 20, 40, 16, 24, 18, 8};
            test_call set = make_call(&kinds[k], n, shared), add = make_call(&kinds[k], n, shared);
            test_call before = make_call(&kinds[k], n, shared);
            add.grads.accumulate = true;
            run_call(ctx, &set), run_call(ctx, &add);
            const att_attention_grads *g[] = {&set.grads, &add.grads, &before.grads};
            for (int t = 0; t < 3 + ATT_MAX_PARAMS; t++) {
                const att_tensor *x[3];
                for (int i = 0; i < 3; i++)
                    x[i] = t == 0 ? &g[i]->dq : t == 1 ? &g[i]->dk : t == 2 ? &g[i]->dv : &g[i]->dscore_param[t - 3];
                for (int64_t i = 0; i < check_count(x[0]); i++) /* a group of heads adds one after the other */
                    check_near((double)floats(x[0])[i] + floats(x[2])[i], floats(x[1])[i],
                               0x1p-23 * (2 + 2 * fabs(floats(x[0])[i])), "%s: gradient %d", kinds[k].name, t);
            }
            drop_call(&set), drop_call(&add), drop_call(&before);
        }
    att_close(ctx);
}

static void weights_are_those_of_the_definition(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){2, 4, 2, 40, 33, 20, 28, 18, 8}, false);
        att_plan *plan = plan_of(ctx, &c.spec);
        att_call call;
        att_site at;
        float weights[5 * 33];
        double want[33], error = 0;
        assert_int_equal(att_weights(plan, &c.args, 1, 3, 30, 5, weights), ATT_OK);
        assert_int_equal(att_call_check(plan, &c.args, true, &call), ATT_OK);
        att_call_site(&call, 1, 3, &at);
        for (int64_t q = 0; q < 5; q++) {
            att_ref_attention_row(plan, &at, 30 + q, want, NULL);
            for (int64_t key = 0; key < 33; key++) {
                const att_pair p = pair_of(&c, &at, 30 + q, key);
                error = fmax(error, kinds[k].error(&p));
            }
            for (int64_t key = 0; key < 33; key++)
                check_near(want[key], weights[q * 33 + key], 0x1p-24 * (8 + 2 * error), "%s", kinds[k].name);
        }
        att_plan_free(plan);
        drop_call(&c);
    }
    att_close(ctx);
}

/* The numbers of t, in place, as those of f16 that are nearest. */
static void to_halves(const att_kernels *k, test_call *c, att_tensor *t)
{
    uint16_t *halves = malloc((size_t)(check_count(t) + 1) * sizeof(float));
    k->to_f16(check_count(t), t->data, halves);
    k->from_f16(check_count(t), halves, t->data);
    c->data[c->n_data++] = (float *)(void *)halves;
    t->data = halves;
    t->dtype = ATT_F16;
}

/* Rows in f16 give what the same numbers give in f32, rounded; gradients also know only the rounded output. */
static void rows_in_f16_are_computed_in_f32(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int kd = 0; kd < N_KINDS; kd++)
            for (int shared = 0; shared < 2; shared++) {
                test_call c = make_call(&kinds[kd], (sizes){2, 4, 2, 40, 33, 20, 28, 18, 8}, shared), half = c;
                half.n_data = 0;
                half.spec.dtype = ATT_F16;
                att_tensor *const rows[] = {&half.args.q,     &half.args.k,   &half.args.v,   &half.args.out,
                                            &half.grads.dout, &half.grads.dq, &half.grads.dk, &half.grads.dv};
                att_tensor *const same[] = {&c.args.q,     &c.args.k,   &c.args.v,   &c.args.out,
                                            &c.grads.dout, &c.grads.dq, &c.grads.dk, &c.grads.dv};
                const att_kernels *k = att_kernels_of(att_isa_find(att_isa(ctx)));
                for (int i = 0; i < 8; i++)
                    to_halves(k, &half, rows[i]);
                run_call(ctx, &half);
                float *dparam[ATT_MAX_PARAMS]; /* a copy, for the f32 call writes there as well */
                for (int i = 0; i < ATT_MAX_PARAMS; i++) {
                    const att_tensor *t = &half.grads.dscore_param[i];
                    dparam[i] = check_numbers(check_count(t), 0);
                    if (t->data)
                        memcpy(dparam[i], t->data, (size_t)check_count(t) * sizeof(float));
                }
                run_call(ctx, &c);
                for (int i = 0; i < 8; i++) {
                    float *x = check_numbers(check_count(rows[i]), 0);
                    k->from_f16(check_count(rows[i]), rows[i]->data, x);
                    for (int64_t j = 0; j < check_count(rows[i]); j++)
                        check_near(floats(same[i])[j], x[j],
                                   0x1p-11 * (fabs(floats(same[i])[j]) + (i > 4 ? 2 : 0x1p-14)), "%s %s: tensor %d[%d]",
                                   att_isa(ctx), kinds[kd].name, i, (int)j);
                    free(x);
                }
                /* a row's slopes are off by 2^-11 or so, of its output, times numbers up to 4; 320 rows add up */
                for (int i = 0; i < ATT_MAX_PARAMS; i++) {
                    for (int64_t j = 0; j < check_count(&c.grads.dscore_param[i]); j++)
                        check_near(floats(&c.grads.dscore_param[i])[j], dparam[i][j], 0x1p-11 * 4 * sqrt(320),
                                   "%s: parameter %d[%d]", kinds[kd].name, i, (int)j);
                    free(dparam[i]);
                }
                drop_call(&half), drop_call(&c);
            }
}

static void a_row_of_zeros_has_cosine_0_and_no_gradient(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    test_call c = make_call(&kinds[3], (sizes){1, 1, 1, 3, 4, 20, 20, 0, 8}, true);
    memset(c.args.q.data, 0, 20 * sizeof(float));
    memset(c.args.k.data, 0, 20 * sizeof(float));
    run_call(ctx, &c);
    assert_true(fabsf(floats(&c.args.lse)[0] - logf(4)) < 1e-6f);
    for (int i = 0; i < 20; i++)
        assert_true(floats(&c.grads.dq)[i] == 0 && floats(&c.grads.dk)[i] == 0);
    drop_call(&c);
    att_close(ctx);
}

static void describing_counts_the_prepared_rows(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    test_call c = make_call(&kinds[1], (sizes){2, 3, 1, 10, 20, 8, 9, 32, 8}, true);
    att_plan *plan = plan_of(ctx, &c.spec);
    att_plan_info before = {.size = sizeof before}, info = {.size = sizeof info};
    assert_int_equal(att_plan_describe(plan, NULL, &before), ATT_OK);
    assert_int_equal(att_plan_describe(plan, &c.args, &info), ATT_OK);
    assert_int_equal(info.workspace - before.workspace, (2 * 3 * 10 + 2 * 1 * 20) * 32 * sizeof(float));
    att_plan_free(plan);
    drop_call(&c);
    att_close(ctx);
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
        att_plan *plan = plan_of(ctx, &c.spec);
        run_call(ctx, &c);
        check_forward(plan, &c);
        check_backward(plan, &c);
        att_plan_free(plan);
        drop_call(&c);
    }
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
    } wrong[] = {{0, 0, -1, "args.score_param[0] is not given: the v of \"additive\""},
                 {0, 0, 1, "score_param[0].dim[1] = 99 but spec.head_dim = 8"},
                 {0, 0, 0, "score_param[0].dim[0] = 99, expected 1 or spec.heads = 2"},
                 {0, 1, -2, "args.score_param[1] is given, but \"additive\" has no such parameter"},
                 {1, 2, -1, "args.score_param[2] is not given: the Wk of \"additive\""},
                 {1, 0, 1, "score_param[0].dim[1] = 99 but spec.score_dim = 6"},
                 {1, 1, 1, "score_param[1].dim[1] = 99 but spec.score_dim = 6"},
                 {1, 1, 2, "score_param[1].dim[2] = 99 but spec.head_dim = 8"},
                 {1, 2, 2, "score_param[2].dim[2] = 99 but spec.key_dim = 10"},
                 {2, 0, 2, "score_param[0].dim[2] = 99 but spec.key_dim = 10"},
                 {3, 0, -2, "args.score_param[0] is given, but \"cosine\" has no such parameter"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_call c = make_call(&kinds[wrong[i].kind], n, false);
        att_plan *plan = plan_of(ctx, &c.spec);
        att_tensor *p = &c.args.score_param[wrong[i].param];
        if (wrong[i].dim == -1)
            *p = (att_tensor){0};
        else if (wrong[i].dim == -2)
            *p = c.args.q;
        else
            p->dim[wrong[i].dim] = 99;
        assert_true(att_forward(plan, &c.args) != ATT_OK);
        check_says(ctx, wrong[i].words);
        att_plan_free(plan);
        drop_call(&c);
    }
    att_close(ctx);
}

static void wrong_dimensions_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_plan *plan;
    const struct {
        const att_score *score;
        int64_t key_dim, score_dim;
        const char *words;
    } wrong[] = {{&att_score_dot, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: dot needs them equal"},
                 {&att_score_cosine, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: cosine needs them equal"},
                 {&att_score_additive, 9, 0, "spec.key_dim = 9 but spec.head_dim = 8: additive needs them equal"},
                 {&att_score_additive, 9, -1, "spec.score_dim is -1, expected 1.."},
                 {&att_score_general, 9, 4, "spec.score_dim is 4, but \"general\" projects nothing to it"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const att_attention_spec s = {.size = sizeof s,
                                      .heads = 1,
                                      .head_dim = 8,
                                      .key_dim = wrong[i].key_dim,
                                      .score_dim = wrong[i].score_dim,
                                      .score = wrong[i].score};
        assert_true(att_plan_new(ctx, &s, &plan) != ATT_OK);
        check_says(ctx, wrong[i].words);
    }
    att_close(ctx);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){2, 2, 1, 9, 20, 12, 12, 10, 8}, false);
        c.grads.accumulate = true;
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
        cmocka_unit_test(ragged_and_padded_give_the_same_bits),
        cmocka_unit_test(accumulating_adds_to_what_is_there),
        cmocka_unit_test(weights_are_those_of_the_definition),
        cmocka_unit_test(rows_in_f16_are_computed_in_f32),
        cmocka_unit_test(a_row_of_zeros_has_cosine_0_and_no_gradient),
        cmocka_unit_test(describing_counts_the_prepared_rows),
        cmocka_unit_test(additive_is_right_for_large_rows),
        cmocka_unit_test(wrong_parameters_are_named),
        cmocka_unit_test(wrong_dimensions_are_named),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
