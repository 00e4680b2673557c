/* Rows whose scores are all far from 0, as masks that are added make them: outputs and gradients against the
 * definition, on every instruction set. */
#include "fixtures/attention_reference.h"

/* What is added to the scores of a row. Queries and keys are multiples of 1/4, so with the smaller ones, up to 2^18,
 * all scores are floats; with the others queries are 0, so all scores of a row are equal. */
static const float added[] = {0, -1e4f, -65504, 2e5f, -1e9f, -1e9f - 64, 1e9f, -1e10f, -1e30f, -3.402823466e38f, 1e38f};
enum { ADDED = sizeof added / sizeof added[0] };
static float added_to(int64_t row) { return added[row % ADDED]; }

typedef struct large {
    operands o;
    att_attention_spec spec;
    float *numbers[6], *sinks; /* of the gradients; sinks [heads] */
    att_attention_grads g;
} large;

static void make_gradient(large *l, int i, const att_tensor *like, att_tensor *t)
{
    *t = *like;
    t->data = l->numbers[i] = check_numbers(check_count(like), 10 + (uint64_t)i);
}

static float to_quarters(float x) { return roundf(4 * x) / 4; }

/* Makes a call with a bias, and with a sink if its score is not NaN. */
static large make_large(shape n, float sink)
{
    large l = {.o = make(n), .spec = spec_of(n), .g.size = sizeof l.g};
    l.spec.scale = 1;
    for (int64_t i = 0; i < n.batch * n.heads * n.tq * n.head_dim; i++)
        l.o.q[i] = fabsf(added_to(i / n.head_dim)) > 0x1p18f ? 0 : to_quarters(l.o.q[i]);
    for (int64_t i = 0; i < n.batch * n.kv_heads * n.tk * n.head_dim; i++)
        l.o.k[i] = to_quarters(l.o.k[i]);
    for (int64_t i = 0; i < n.heads * n.tq * n.tk; i++)
        l.o.bias[i] = added_to(i / n.tk);
    add_modifier(&l.spec, att_modifier_bias, 0);
    att_wrap(param_at(&l.o.args, 0), l.o.bias, ATT_F32, ATT_DIMS(1, n.heads, n.tq, n.tk), NULL);
    make_gradient(&l, 0, &l.o.args.out, &l.g.dout);
    make_gradient(&l, 1, &l.o.args.lse, &l.g.dlse);
    make_gradient(&l, 2, &l.o.args.q, &l.g.dq);
    make_gradient(&l, 3, &l.o.args.k, &l.g.dk);
    make_gradient(&l, 4, &l.o.args.v, &l.g.dv);
    make_gradient(&l, 5, &l.o.args.param[0], dparam_at(&l.g, 0));
    l.sinks = check_numbers(2 * n.heads, 0);
    for (int64_t h = 0; h < n.heads; h++)
        l.sinks[h] = sink;
    if (!isnan(sink)) {
        add_modifier(&l.spec, att_modifier_sink, 0);
        att_wrap(param_at(&l.o.args, 1), l.sinks, ATT_F32, ATT_DIMS(n.heads), NULL);
        att_wrap(dparam_at(&l.g, 1), l.sinks + n.heads, ATT_F32, ATT_DIMS(n.heads), NULL);
    }
    return l;
}

static void large_free(large *l)
{
    for (int i = 0; i < 6; i++)
        free(l->numbers[i]);
    free(l->sinks);
    operands_free(&l->o);
}

/* Scores are exact and the rest is as usual, so the tolerance of the gradients of usual scores suffices. A row's output
 * is a mean of values of at most 1, whose weights and their sum are each a chain of tk roundings and an exponential off
 * by four. */
static void check_large(att_ctx *ctx, const large *l)
{
    const shape n = l->o.n;
    att_plan *plan = plan_of(ctx, &l->spec);
    const double limit = 0x1p-24 * (8 + 2 * (double)n.tk), queries = (double)(n.tq * n.heads / n.kv_heads);
    run_both(ctx, &l->spec, &l->o.args, &l->g);
    const att_call call = call_of(plan, &l->o.args);
    att_head_view at;
    for (int64_t site = 0; next_site(&call, &site, &at);)
        for (int64_t q = 0; q < at.head.tq; q++)
            check_row(plan, &at, q, limit, "large scores");
    reference want = reference_of(plan, &l->o.args, &l->g);
    check_tensor(plan, "large scores", "dq", &l->g.dq, want.dq, gradient_tolerance(n, 0, 1));
    check_tensor(plan, "large scores", "dk", &l->g.dk, want.dk, gradient_tolerance(n, 0, sqrt(queries)));
    check_tensor(plan, "large scores", "dv", &l->g.dv, want.dv, gradient_tolerance(n, 0, sqrt(queries)));
    for (int i = 0; i < l->g.n_dparams; i++)
        check_tensor(plan, "large scores", i ? "dsinks" : "dbias", dparam_of(&l->g, i), want.dparam[i],
                     gradient_tolerance(n, 0, i ? (double)n.tq : 1));
    reference_free(&want);
    att_plan_free(plan);
}

static const shape shapes[] = {
    {1, 2, 2, 2 * ADDED, 300, 8, 20},
    {2, 2, 1, ADDED, 40, 8, 16},
    {1, 1, 1, 70, 130, 4, 64},
    {1, 2, 1, 3, 1500, 8, 8}, /* decoding, two segments of keys */
};

static void outputs_and_gradients_are_those_of_the_definition(void **state)
{
    (void)state;
    static const float sinks[] = {NAN, 5, -65504, -1e9f, 1e9f};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (size_t k = 0; k < sizeof sinks / sizeof sinks[0]; k++) {
                large l = make_large(shapes[i], sinks[k]);
                check_large(ctx, &l);
                large_free(&l);
            }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    large l = make_large(shapes[0], NAN);
    check_threads(check_step(15), &l.spec, &l.o.args, &l.g);
    large_free(&l);
}

/* The rows of a head are the same whether the other rows of their tile are large or not. */
static void usual_rows_have_the_same_bits_beside_large_ones(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const shape n = {1, 1, 1, 24, 300, 8, 20};
        large among = make_large(n, NAN), alone = make_large(n, NAN);
        for (int64_t i = 0; i < n.tq * n.tk; i++)
            alone.o.bias[i] = 0;
        run_both(ctx, &among.spec, &among.o.args, &among.g);
        run_both(ctx, &alone.spec, &alone.o.args, &alone.g);
        for (int64_t q = 0; q < n.tq; q += ADDED) {
            assert_same_bits(among.o.out + q * n.value_dim, alone.o.out + q * n.value_dim, n.value_dim);
            assert_same_bits(among.o.lse + q, alone.o.lse + q, 1);
            assert_same_bits(among.numbers[2] + q * n.head_dim, alone.numbers[2] + q * n.head_dim, n.head_dim);
        }
        large_free(&among), large_free(&alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_and_gradients_are_those_of_the_definition),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(usual_rows_have_the_same_bits_beside_large_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
