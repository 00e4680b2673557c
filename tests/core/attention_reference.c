/* The reference of attention against finite differences, each stage alone, and stages against what defines them. */
#include "fixtures/attention_reference.h"
#include "fixtures/attention_trial.h"

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
            check_reference(ctx, &t.spec, &t.args, &t.grads, name_of(&c));
            trial_free(&t);
        }
    att_close(ctx);
}

/* The weights of both are the same up to rounding, at most 8 units for each of 9 + 1 terms. */
static void a_sink_is_a_key_whose_score_is_the_sink_and_whose_value_is_zero(void **state)
{
    (void)state;
    const shape n = {1, 2, 2, 5, 9, 8, 8}, more = {1, 2, 2, 5, 10, 8, 8};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        operands o = make(n), p = make(more);
        att_attention_spec s = spec_of(n), with_key = spec_of(more);
        float sinks[2] = {0.3f, -1.7f};
        add_modifier(&s, att_modifier_sink, 0);
        att_wrap(param_at(&o.args, 0), sinks, ATT_F32, ATT_DIMS(2), NULL);
        add_modifier(&with_key, att_modifier_bias, 0);
        att_wrap(param_at(&p.args, 0), p.bias, ATT_F32, ATT_DIMS(1, 2, 1, 10), NULL);
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
        operands_free(&o), operands_free(&p);
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
        const att_modifier *m = strcmp(kind, "both") ? att_modifier_relative_causal : att_modifier_relative;
        const att_param_view param = {.data = table, .count = buckets};
        const att_head at = {0};
        const double value[2] = {greatest};
        att_pair p = {.size = sizeof p, .head = &at, .param = &param, .value = value};
        for (int n = fscanf(f, " %d:%d", &from, &bucket), last, next; n == 2; from = last, bucket = next) {
            n = fscanf(f, " %d:%d", &last, &next);
            for (p.k = from; p.k < last; p.k++, checked++)
                if (m->formula(&p, 0) != bucket)
                    fail_msg("%s, %d buckets up to %d: distance %d has bucket %g, expected %d", kind, buckets, greatest,
                             (int)p.k, m->formula(&p, 0), bucket);
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
