/* The reference of attention against finite differences, each stage alone, and stages against what defines them. */
#include "attention_trial.h"

/* sum(dout * out) + sum(dlse * lse) of the one head that there is */
static double loss(const att_plan *plan, const att_site *at, const trial *t)
{
    const int64_t value_dim = plan->spec.value_dim;
    const float *dout = t->grads.dout.data, *dlse = t->grads.dlse.data;
    double sum = 0, out[8];
    for (int64_t q = 0; q < at->place.tq; q++) {
        const double lse = att_ref_attention_row(plan, at, q, NULL, out);
        sum += lse > -INFINITY ? dlse[q] * lse : 0;
        for (int64_t d = 0; d < value_dim; d++)
            sum += dout[q * value_dim + d] * out[d];
    }
    return sum;
}

/* Central differences of step h are off by h^2 / 6 third derivatives, here up to some thousands, and by a rounding of
 * 1e-16 / h in double: with h = 2^-14 that is less than 1e-5. */
static void agree_with_differences(const att_plan *plan, const att_site *at, const trial *t, const char *what,
                                   const att_tensor *x, const double *gradient)
{
    const float h = 0x1p-14f;
    float *number = x->data;
    for (int64_t i = 0; i < check_count(x); i++) {
        const float before = number[i];
        number[i] = before + h;
        const double up = loss(plan, at, t), x_up = number[i];
        number[i] = before - h;
        const double down = loss(plan, at, t), x_down = number[i];
        number[i] = before;
        if (!(fabs((up - down) / (x_up - x_down) - gradient[i]) <= 1e-5))
            fail_msg("%s\n%s, element %d: differences give %.9g, the reference %.9g", name_of(t->c), what, (int)i,
                     (up - down) / (x_up - x_down), gradient[i]);
    }
}

static void check_reference(att_ctx *ctx, trial *t)
{
    enum { ALL_PARAMS = ATT_MAX_PARAMS + ATT_MAX_STAGES };
    const shape n = shapes[t->c->of[SHAPE]];
    double *param[ALL_PARAMS], *weights = new_numbers(t, n.tk), *out = new_numbers(t, n.value_dim);
    double *dq = new_numbers(t, n.tq * n.head_dim), *dk = new_numbers(t, n.tk * n.head_dim);
    att_ref_grads g = {.dk = dk, .dv = new_numbers(t, n.tk * n.value_dim)};
    att_plan *plan;
    att_call call;
    att_site at;
    if (att_plan_new(ctx, &t->spec, &plan) || att_call_check(plan, &t->args, true, &call))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    att_call_site(&call, 0, 0, &at);
    for (int i = 0; i < ALL_PARAMS; i++) {
        param[i] = new_numbers(t, check_count(param_of(&t->args, i)));
        *(i < ATT_MAX_PARAMS ? &g.dscore_param[i] : &g.dmodifier_param[i - ATT_MAX_PARAMS]) = param[i];
    }
    for (int64_t q = 0; q < at.place.tq; q++) {
        g.dq = dq + q * n.head_dim;
        att_ref_attention_row(plan, &at, q, weights, out);
        att_ref_attention_row_backward(plan, &at, q, weights, out, (float *)t->grads.dout.data + q * n.value_dim,
                                       ((const float *)t->grads.dlse.data)[q], &g);
    }
    agree_with_differences(plan, &at, t, "q", &t->args.q, dq);
    agree_with_differences(plan, &at, t, "k", &t->args.k, dk);
    agree_with_differences(plan, &at, t, "v", &t->args.v, g.dv);
    for (int i = 0; i < ALL_PARAMS; i++)
        agree_with_differences(plan, &at, t, "a parameter", param_of(&t->args, i), param[i]);
    att_plan_free(plan);
}

static void the_reference_agrees_with_finite_differences_for_each_stage(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    static const int factors[] = {SCORE, MODIFIER_1, MASK_1};
    for (int f = 0; f < COUNT(factors); f++)
        for (int level = 0; level < levels(factors[f]); level++) {
            choice c = {.of = {[SHAPE] = SMALL_SHAPE, [PLACE] = STARTS}};
            c.of[factors[f]] = level;
            trial t;
            make_trial(&t, &c, 100 + (uint64_t)level);
            check_reference(ctx, &t);
            drop_trial(&t);
        }
    att_close(ctx);
}

/* The weights of both are the same but for rounding, at most 8 units for each of 9 + 1 terms. */
static void a_sink_is_a_key_whose_score_is_the_sink_and_whose_value_is_zero(void **state)
{
    (void)state;
    const shape n = {1, 2, 2, 5, 9, 8, 8}, more = {1, 2, 2, 5, 10, 8, 8};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        operands o = make(n), p = make(more);
        att_attention_spec s = spec_of(n), with_key = spec_of(more);
        float sinks[2] = {0.3f, -1.7f};
        s.modifier[0] = &att_modifier_sink;
        att_wrap(&o.args.modifier_param[0], sinks, ATT_F32, ATT_DIMS(2), NULL);
        with_key.modifier[0] = &att_modifier_bias;
        att_wrap(&p.args.modifier_param[0], p.bias, ATT_F32, ATT_DIMS(1, 2, 1, 10), NULL);
        for (int h = 0; h < 2; h++) {
            memset(p.bias + h * 10, 0, 9 * sizeof *p.bias);
            p.bias[h * 10 + 9] = sinks[h];
            memcpy(p.k + h * 80, o.k + h * 72, 72 * sizeof *p.k);
            memcpy(p.v + h * 80, o.v + h * 72, 72 * sizeof *p.v);
            memset(p.k + h * 80 + 72, 0, 8 * sizeof *p.k);
            memset(p.v + h * 80 + 72, 0, 8 * sizeof *p.v);
        }
        memcpy(p.q, o.q, 80 * sizeof *p.q);
        run(ctx, &s, &o.args);
        run(ctx, &with_key, &p.args);
        for (int i = 0; i < 80; i++)
            check_near(p.out[i], o.out[i], 80 * UNIT, "out[%d]", i);
        for (int i = 0; i < 10; i++)
            check_near(p.lse[i], o.lse[i], 80 * UNIT, "lse[%d]", i);
        drop(&o), drop(&p);
    }
}

/* Lines of the file: "both" or "causal", buckets, greatest distance, then FIRST:BUCKET where the bucket changes, from
 * distance FIRST on, and one past the last distance. */
static void relative_positions_have_the_buckets_of_t5(void **state)
{
    (void)state;
    enum { MOST = 512 };
    float table[MOST];
    char kind[8];
    int buckets, greatest, from, bucket, checked = 0;
    FILE *f = fopen("tests/golden/relative_buckets.txt", "r");
    assert_non_null(f);
    for (int i = 0; i < MOST; i++)
        table[i] = (float)i;
    while (fscanf(f, "%7s %d %d", kind, &buckets, &greatest) == 3) {
        const att_modifier *m = strcmp(kind, "both") ? &att_modifier_relative_causal : &att_modifier_relative;
        const att_operand param = {.data = table, .count = buckets};
        const att_place at = {0};
        att_pair p = {.at = &at, .param = &param, .value = (float)greatest};
        for (int n = fscanf(f, " %d:%d", &from, &bucket), last, next; n == 2; from = last, bucket = next) {
            n = fscanf(f, " %d:%d", &last, &next);
            for (p.k = from; p.k < last; p.k++, checked++)
                if (m->set[0]->formula(&p, 0) != bucket)
                    fail_msg("%s, %d buckets up to %d: distance %d has bucket %g, expected %d", kind, buckets, greatest,
                             (int)p.k, m->set[0]->formula(&p, 0), bucket);
        }
    }
    assert_true(feof(f) && checked > 1000);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_agrees_with_finite_differences_for_each_stage),
        cmocka_unit_test(a_sink_is_a_key_whose_score_is_the_sink_and_whose_value_is_zero),
        cmocka_unit_test(relative_positions_have_the_buckets_of_t5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
