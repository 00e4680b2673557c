/* Attention backward: the reference against finite differences, the kernels against the reference, exact properties. */
// labels: long
#include "fixtures/attention_reference.h"

/* Gradients of an operands, batched and dense. */
typedef struct gradients {
    float *dout, *dlse, *dq, *dk, *dv, *dbias;
    att_attention_grads g;
} gradients;

static int64_t q_count(shape n) { return n.batch * n.heads * n.tq * n.head_dim; }
static int64_t k_count(shape n) { return n.batch * n.kv_heads * n.tk * n.head_dim; }
static int64_t v_count(shape n) { return n.batch * n.kv_heads * n.tk * n.value_dim; }

static int64_t bias_count(shape n) { return n.heads * n.tq * n.tk; }

static gradients make_gradients(const operands *o)
{
    const shape n = o->n;
    gradients r = {check_numbers(out_count(n), 11),      check_numbers(n.batch * n.heads * n.tq, 15),
                   check_numbers(q_count(n), 12),        check_numbers(k_count(n), 13),
                   check_numbers(v_count(n), 14),        check_numbers(bias_count(n), 16),
                   {.size = sizeof(att_attention_grads)}};
    r.g.dout = o->args.out;
    r.g.dq = o->args.q;
    r.g.dk = o->args.k;
    r.g.dv = o->args.v;
    r.g.dout.data = r.dout;
    r.g.dq.data = r.dq;
    r.g.dk.data = r.dk;
    r.g.dv.data = r.dv;
    r.g.dlse = o->args.lse;
    r.g.dlse.data = r.dlse;
    return r;
}

static void gradients_free(gradients *r)
{
    free(r->dout), free(r->dlse), free(r->dbias), free(r->dq), free(r->dk), free(r->dv);
}

/* The bias's gradient too, if the operands have a bias. */
static void want_bias(gradients *r, const operands *o)
{
    for (int i = 0; i < o->args.n_params; i++)
        if (o->args.param[i].data == o->bias) {
            *dparam_at(&r->g, i) = o->args.param[i];
            dparam_at(&r->g, i)->data = r->dbias;
        }
}

/* ---- the reference */

static void the_reference_agrees_with_finite_differences(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const shape n = {1, 1, 1, 5, 7, 6, 4};
    for (unsigned stages = 0; stages <= ALL_STAGES; stages++) {
        if (stages & LENGTHS)
            continue;
        operands o = make(n);
        gradients r = make_gradients(&o);
        att_attention_spec s = spec_of(n);
        int64_t lengths[1];
        choose(stages, &o, &s, lengths);
        char name[20];
        snprintf(name, sizeof name, "stages %u", stages);
        check_reference(ctx, &s, &o.args, &r.g, name);
        gradients_free(&r), operands_free(&o);
    }
    att_close(ctx);
}

/* ---- the kernels */

static void check_all(const att_plan *plan, const operands *o, const gradients *r, const reference *want)
{
    const shape n = o->n;
    const double queries = (double)(n.tq * n.heads / n.kv_heads), p = (double)plan->spec.dropout;
    check_tensor(plan, "dot", "dq", &r->g.dq, want->dq, gradient_tolerance(n, p, 1));
    check_tensor(plan, "dot", "dk", &r->g.dk, want->dk, gradient_tolerance(n, p, sqrt(queries)));
    check_tensor(plan, "dot", "dv", &r->g.dv, want->dv, gradient_tolerance(n, p, sqrt(queries)));
    check_tensor(plan, "dot", "dbias", dparam_of(&r->g, 0), want->dparam[0],
                 gradient_tolerance(n, p, sqrt((double)n.batch)));
}

/* On each set, against one reference: numbers and formulas are the same. */
static void check_combination(att_ctx *const *sets, int n_sets, shape n, unsigned stages)
{
    reference want = {0};
    for (int i = 0; i < n_sets; i++) {
        operands o = make(n);
        gradients r = make_gradients(&o);
        att_attention_spec s = spec_of(n);
        int64_t lengths[4];
        choose(stages, &o, &s, lengths);
        want_bias(&r, &o);
        run_both(sets[i], &s, &o.args, &r.g);
        att_plan *plan = plan_of(sets[i], &s);
        if (i == 0)
            want = reference_of(plan, &o.args, &r.g);
        check_all(plan, &o, &r, &want);
        att_plan_free(plan);
        gradients_free(&r), operands_free(&o);
    }
    reference_free(&want);
}

static const shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1},      {1, 1, 1, 7, 5, 3, 2},       {2, 2, 1, 33, 31, 16, 8},    {1, 2, 2, 130, 65, 45, 51},
    {1, 4, 2, 17, 257, 64, 64}, {1, 1, 1, 129, 300, 33, 80}, {1, 1, 1, 200, 17, 96, 128}, {2, 2, 2, 19, 0, 8, 8},
    {2, 1, 1, 0, 9, 8, 8},      {1, 1, 1, 33, 40, 256, 256}, {1, 2, 1, 5, 40, 1000, 700}, {1, 1, 1, 9, 3, 5000, 1},
    {2, 4, 4, 70, 600, 9, 20}, /* two blocks of keys in each task */
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void every_combination_agrees_with_the_reference(void **state)
{
    (void)state;
    att_ctx *sets[CHECK_MOST_SETS];
    const int n_sets = check_open_all(sets, 2);
    int done = 0;
    const int step = check_step(N_SHAPES); /* so that each combination has a shape */
    for (int i = 0; i < N_SHAPES; i++)
        for (unsigned stages = (unsigned)(i % step); stages <= ALL_STAGES; stages += (unsigned)step, done++)
            check_combination(sets, n_sets, shapes[i], stages);
    print_message("%d combinations on %d sets\n", done, n_sets);
    check_close_all(sets, n_sets);
}

static const shape middle = {3, 4, 2, 83, 300, 40, 24};

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    operands o = make(middle);
    gradients r = make_gradients(&o);
    att_attention_spec s = spec_of(middle);
    int64_t lengths[4];
    choose(ALL_STAGES, &o, &s, lengths);
    want_bias(&r, &o);
    check_threads(check_step(15), &s, &o.args, &r.g);
    gradients_free(&r), operands_free(&o);
}

/* With one thread a task takes four blocks of keys, with sixteen one. */
static void however_many_keys_a_task_has_the_bits_are_the_same(void **state)
{
    (void)state;
    static const unsigned stages[] = {0, CAUSAL, CAUSAL | BOOLEAN | BIAS | LENGTHS | DROPOUT};
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        operands o = make((shape){2, 8, 4, 150, 1100, 16, 24});
        gradients r = make_gradients(&o);
        att_attention_spec s = spec_of(o.n);
        int64_t lengths[2];
        choose(stages[i], &o, &s, lengths);
        check_threads(check_step(15), &s, &o.args, &r.g);
        gradients_free(&r), operands_free(&o);
    }
}

/* From each block of queries (several on every instruction set) something is added to the same place,
 * by each head of each sequence and, where keys share the bias too, by each block of them. */
static void a_bias_that_queries_share_has_the_same_gradient_with_any_number_of_threads(void **state)
{
    (void)state;
    static const shape shapes_of_bias[] = {{2, 2, 2, 600, 300, 16, 8}, {1, 1, 1, 600, 300, 16, 8}};
    for (int i = 0; i < 4; i++) {
        operands o = make(shapes_of_bias[i / 2]);
        gradients r = make_gradients(&o);
        att_attention_spec s = spec_of(o.n);
        add_modifier(&s, att_modifier_bias, 0);
        att_wrap(param_at(&o.args, 0), o.bias, ATT_F32, ATT_DIMS(1, 1, 1, i % 2 ? 1 : o.n.tk), NULL);
        want_bias(&r, &o);
        check_threads(check_step(15), &s, &o.args, &r.g);
        gradients_free(&r), operands_free(&o);
    }
}

/* The same numbers, [batch, time, heads, dim] in memory; the caller frees t->data. */
static void lay_apart(att_tensor *t)
{
    const int64_t heads = t->dim[1], time = t->dim[2], dim = t->dim[3];
    const float *from = t->data;
    float *to = check_numbers(check_count(t), 0);
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < time; i++, from += dim)
                memcpy(to + ((b * time + i) * heads + h) * dim, from, (size_t)dim * sizeof *to);
    const int64_t stride[4] = {time * heads * dim, dim, heads * dim, 1};
    memcpy(t->stride, stride, sizeof stride);
    t->data = to;
}

static void keys_that_lie_apart_have_the_same_gradients(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {2, 4, 2, 600, 300, 24, 40};
    operands o = make(n);
    gradients r = make_gradients(&o);
    const att_attention_spec s = spec_of(n);
    run_both(ctx, &s, &o.args, &r.g);
    float *dq = check_numbers(q_count(n), 0);
    memcpy(dq, r.dq, (size_t)q_count(n) * sizeof *dq);
    att_attention_args args = o.args;
    att_attention_grads g = r.g;
    att_tensor *const apart[] = {&args.k, &args.v, &g.dk, &g.dv}; /* the last two: what is expected */
    for (int i = 0; i < 4; i++)
        lay_apart(apart[i]);
    att_attention_grads found = g;
    found.dk.data = check_numbers(k_count(n), 17);
    found.dv.data = check_numbers(v_count(n), 18);
    run_both(ctx, &s, &args, &found);
    assert_same_bits(dq, r.dq, q_count(n));
    assert_same_bits(g.dk.data, found.dk.data, k_count(n));
    assert_same_bits(g.dv.data, found.dv.data, v_count(n));
    for (int i = 0; i < 4; i++)
        free(apart[i]->data);
    free(found.dk.data), free(found.dv.data), free(dq);
    gradients_free(&r), operands_free(&o);
    att_close(ctx);
}

static void accumulating_adds_to_what_is_there(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {1, 2, 2, 40, 50, 16, 24};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    gradients plain = make_gradients(&o), added = make_gradients(&o);
    added.g.accumulate = true;
    run_both(ctx, &s, &o.args, &plain.g);
    float *before = check_numbers(q_count(n), 12);
    run_both(ctx, &s, &o.args, &added.g);
    for (int64_t i = 0; i < q_count(n); i++)
        assert_true(added.dq[i] == before[i] + plain.dq[i]);
    free(before);
    gradients_free(&plain), gradients_free(&added), operands_free(&o);
    att_close(ctx);
}

static void rows_and_keys_without_a_pair_have_gradient_zero(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {2, 2, 2, 40, 70, 8, 8};
    operands o = make(n);
    gradients r = make_gradients(&o);
    att_attention_spec s = spec_of(n);
    int64_t lengths[4];
    choose(BOOLEAN, &o, &s, lengths);
    memset(o.mask + 5 * 70, 0, 70);
    const int64_t keys[2] = {60, 0}, queries[2] = {33, 40};
    o.args.k_lengths = keys;
    o.args.q_lengths = queries;
    for (int i = 0; i < 8; i++)
        r.dout[5 * 8 + i] = r.dlse[5] = NAN; /* of a row with nothing to attend: must not matter */
    run_both(ctx, &s, &o.args, &r.g);
    for (int64_t row = 0; row < 2 * 2 * 40; row++)
        for (int d = 0; d < 8 && (row >= 80 || row % 40 == 5 || row % 40 >= 33); d++)
            assert_true(r.dq[row * 8 + d] == 0);
    for (int64_t row = 0; row < 2 * 2 * 70; row++)
        for (int d = 0; d < 8; d++) {
            assert_true(isfinite(r.dk[row * 8 + d]) && isfinite(r.dv[row * 8 + d]));
            if (row >= 140 || row % 70 >= 60)
                assert_true(r.dk[row * 8 + d] == 0 && r.dv[row * 8 + d] == 0);
        }
    gradients_free(&r), operands_free(&o);
    att_close(ctx);
}

static void what_is_not_finite_reaches_no_gradient_of_those_who_do_not_attend(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const shape n = {1, 2, 2, 300, 300, 24, 20};
        operands clean = make(n), o = make(n);
        gradients want = make_gradients(&clean), r = make_gradients(&o);
        att_attention_spec s = spec_of(n);
        add_mask(&s, att_mask_causal);
        s.align = ATT_ALIGN_TOP_LEFT;
        for (int h = 0; h < 2; h++) /* nothing flows back from the queries that do attend */
            memset(want.dout + (h * 300 + 270) * 20, 0, 30 * 20 * sizeof *want.dout);
        memcpy(r.dout, want.dout, 2 * 300 * 20 * sizeof *r.dout);
        run_both(ctx, &s, &clean.args, &want.g);
        for (int d = 0; d < 20; d++) {
            o.k[270 * 24 + d] = NAN;
            o.v[(300 + 270) * 20 + d] = d % 2 ? INFINITY : NAN;
        }
        run_both(ctx, &s, &o.args, &r.g);
        for (int h = 0; h < 2; h++)
            assert_same_bits(want.dq + h * 300 * 24, r.dq + h * 300 * 24, 270 * 24);
        gradients_free(&want), gradients_free(&r), operands_free(&clean), operands_free(&o);
    }
}

static void wrong_gradients_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {1, 2, 2, 5, 9, 8, 8};
    operands o = make(n);
    gradients r = make_gradients(&o);
    const att_attention_spec s = spec_of(n);
    att_plan *plan = plan_of(ctx, &s);
    assert_int_equal(att_forward(plan, &o.args), ATT_OK);
    struct {
        const char *words;
        att_attention_args a;
        att_attention_grads g;
    } wrong[] = {{"args.lse is not given", o.args, r.g},
                 {"dout", o.args, r.g},
                 {"dk is [1, 2, 8, 8] but k is", o.args, r.g},
                 {"dq", o.args, r.g},
                 {"dv", o.args, r.g}};
    wrong[0].a.lse = (att_tensor){0};
    wrong[1].g.dout = (att_tensor){0};
    wrong[2].g.dk.dim[2] = 8;
    wrong[3].g.dq.data = o.q;
    wrong[4].g.dv.data = r.dk;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(att_backward(plan, &wrong[i].a, &wrong[i].g) != ATT_OK);
        check_message(ctx, wrong[i].words);
    }
    att_plan_free(plan);
    gradients_free(&r), operands_free(&o);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(every_combination_agrees_with_the_reference),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(however_many_keys_a_task_has_the_bits_are_the_same),
        cmocka_unit_test(a_bias_that_queries_share_has_the_same_gradient_with_any_number_of_threads),
        cmocka_unit_test(keys_that_lie_apart_have_the_same_gradients),
        cmocka_unit_test(accumulating_adds_to_what_is_there),
        cmocka_unit_test(rows_and_keys_without_a_pair_have_gradient_zero),
        cmocka_unit_test(what_is_not_finite_reaches_no_gradient_of_those_who_do_not_attend),
        cmocka_unit_test(wrong_gradients_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
