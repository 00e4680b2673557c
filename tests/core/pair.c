/* The steps to one weight, compared with numbers computed by hand, and with the weights themselves. */
#include "fixtures/attention.h"

#include <math.h>

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, QUERIES = 5, KEYS = 300, DIM = 8, SCORE_DIM = 6 }; /* two blocks of keys */

static att_pair_info describe(const att_plan *plan, const att_attention_args *a, int64_t sequence, int64_t head,
                              int64_t q, int64_t k)
{
    att_pair_info d = {.size = sizeof d};
    if (att_pair_describe(plan, a, sequence, head, q, k, &d))
        fail_msg("%s", att_error(NULL));
    return d;
}

static void is(double got, double expected)
{
    if (!(got == expected || fabs(got - expected) <= 1e-14 * fabs(expected)))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* Two queries at positions 1 and 2 of three keys:
 *     q . k = 11, 2, -1 and 4, 0, 2; halved, less the distance, capped by 3 tanh(s / 3)
 * The causal mask, before the cap, leaves the last key out for the first query; the sink is 1. */
static void a_weight_is_what_its_terms_make_by_hand(void **state)
{
    (void)state;
    float q[] = {1, 2, 0, 1}, k[] = {3, 4, 2, 0, -5, 2}, slope[] = {1}, sink[] = {1};
    static const char *const names[] = {"alibi", "causal", "softcap", "sink"};
    static const double score[2][3] = {{5.5, 1, -0.5}, {2, 0, 1}}, placed[2][3] = {{4.5, 1, -1.5}, {0, -1, 1}};
    att_ctx *ctx = check_open(NULL, 1);
    att_plan *plan = plan_of(
        ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .scale = 0.5f,
                         ATT_STAGES({.modifier = att_modifier_alibi}, {.mask = att_mask_causal},
                                    {.modifier = att_modifier_softcap, .value = {3}}, {.modifier = att_modifier_sink}),
                         .align = ATT_ALIGN_BOTTOM_RIGHT));
    att_tensor param[2];
    att_attention_args a = {.size = sizeof a, .param = param, .n_params = 2};
    assert_int_equal(att_wrap(&param[0], slope, ATT_F32, ATT_DIMS(1), NULL), ATT_OK);
    assert_int_equal(att_wrap(&param[1], sink, ATT_F32, ATT_DIMS(1), NULL), ATT_OK);
    assert_int_equal(att_wrap(&a.q, q, ATT_F32, ATT_DIMS(1, 1, 2, 2), NULL), ATT_OK);
    assert_int_equal(att_wrap(&a.k, k, ATT_F32, ATT_DIMS(1, 1, 3, 2), NULL), ATT_OK);
    for (int i = 0; i < 2; i++) {
        double sum = exp(1);
        for (int j = 0; j < 3 - !i; j++)
            sum += exp(3 * tanh(placed[i][j] / 3));
        for (int j = 0; j < 3; j++) {
            const att_pair_info d = describe(plan, &a, 0, 0, i, j);
            const bool masked = i == 0 && j == 2;
            const double cap = masked ? -INFINITY : 3 * tanh(placed[i][j] / 3);
            assert_int_equal(d.n_stages, 4);
            for (int n = 0; n < 4; n++)
                assert_string_equal(d.stage[n], names[n]);
            is(d.score, score[i][j]);
            is(d.after[0], placed[i][j]);
            is(d.after[1], masked ? -INFINITY : placed[i][j]);
            is(d.after[2], cap);
            is(d.after[3], cap);
            assert_int_equal(d.masked_by, masked ? 1 : -1);
            is(d.log_sum_exp, log(sum));
            is(d.weight, masked ? 0 : exp(cap) / sum);
        }
    }
    att_plan_free(plan);
    att_close(ctx);
}

/* A score, its parameters, and rows of a type, in args whose stages follow */
typedef struct trial {
    operands o;
    att_attention_spec s;
    float *vector, *matrix, slopes[HEADS], *table;
    void *rows[2];
} trial;

static trial trial_of(const att_score *score, att_dtype type, att_ctx *ctx)
{
    trial t = {.o = make((shape){BATCH, HEADS, KV_HEADS, QUERIES, KEYS, DIM, DIM}),
               .vector = check_numbers(HEADS * SCORE_DIM, 11),
               .matrix = check_numbers(HEADS * DIM * DIM, 12),
               .table = check_numbers(HEADS * 9, 13)};
    t.s = spec_of(t.o.n);
    t.s.score = score;
    t.s.dtype = type;
    t.s.align = ATT_ALIGN_BOTTOM_RIGHT;
    att_attention_args *a = &t.o.args;
    att_tensor *rows[] = {&a->q, &a->k};
    for (int i = 0; i < 2; i++) {
        att_tensor x = *rows[i];
        t.rows[i] = malloc((size_t)att_count(&x) * sizeof(float));
        x.data = t.rows[i], x.dtype = type;
        assert_int_equal(att_tensor_convert(ctx, rows[i], &x), ATT_OK);
        *rows[i] = x;
    }
    if (score == att_score_general)
        att_wrap(param_at(a, 0), t.matrix, ATT_F32, ATT_DIMS(HEADS, DIM, DIM), NULL);
    if (score == att_score_additive) {
        t.s.score_dim = SCORE_DIM;
        att_wrap(param_at(a, 0), t.vector, ATT_F32, ATT_DIMS(HEADS, SCORE_DIM), NULL);
        att_wrap(param_at(a, 1), t.matrix, ATT_F32, ATT_DIMS(HEADS, SCORE_DIM, DIM), NULL);
        att_wrap(param_at(a, 2), t.matrix, ATT_F32, ATT_DIMS(1, SCORE_DIM, DIM), NULL);
    }
    return t;
}

static void trial_free(trial *t)
{
    operands_free(&t->o);
    free(t->vector), free(t->matrix), free(t->table), free(t->rows[0]), free(t->rows[1]);
}

/* Makes a plan with a mask before a modifier, a mask over pairs, and a modifier with a table. */
static att_plan *with_stages(att_ctx *ctx, trial *t)
{
    const int64_t pairs[] = {BATCH, 1, QUERIES, KEYS};
    add_window(&t->s, 280, -1);
    add_stage(&t->s, (att_stage){.modifier = att_modifier_relative, .value = {64}});
    att_wrap(param_at(&t->o.args, t->o.args.n_params), t->table, ATT_F32, ATT_DIMS(1, 8), NULL);
    add_mask(&t->s, att_mask_boolean);
    att_wrap(param_at(&t->o.args, t->o.args.n_params), t->o.mask, ATT_BOOL, 4, pairs, NULL);
    return plan_of(ctx, &t->s);
}

/* All weights of a head of a sequence, within `near`, which are as many times f32's rounding as scores have products */
static void weights_are(const att_plan *plan, const att_attention_args *a, int64_t sequence, int64_t head,
                        int64_t queries, int64_t keys, double near)
{
    static float weights[QUERIES * KEYS];
    int masked[2] = {0};
    assert_int_equal(att_weights(plan, a, sequence, head, 0, queries, weights), ATT_OK);
    for (int64_t q = 0; q < queries; q++)
        for (int64_t k = q; k < keys; k += 13) {
            const att_pair_info d = describe(plan, a, sequence, head, q, k);
            const float w = weights[q * keys + k];
            check_near(d.weight, w, near * d.weight, "weight of query %d, key %d", (int)q, (int)k);
            assert_int_equal(d.n_stages, 3);
            assert_true((d.masked_by < 0) == (w > 0));
            assert_true(d.masked_by < 0 || d.masked_by == 0 || d.masked_by == 2);
            assert_true((d.after[2] == -INFINITY) == (d.masked_by >= 0));
            masked[d.masked_by == 2] += d.masked_by >= 0;
            assert_true((d.after[1] == -INFINITY) == (d.masked_by == 0));
        }
    assert_true(masked[0] && masked[1]);
}

static void weights_are_described_for_each_score_type_and_layout(void **state)
{
    (void)state;
    static const int64_t q_offsets[] = {0, 2, QUERIES}, k_offsets[] = {0, KEYS - 290, KEYS};
    static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
    att_ctx *ctx = check_open(NULL, 2);
    for (int score = 0; att_score_name(score); score++)
        for (int type = 0; type < 3; type++) {
            const att_score *of;
            assert_int_equal(att_score_find(att_score_name(score), &of), ATT_OK);
            trial t = trial_of(of, types[type], ctx);
            att_plan *plan = with_stages(ctx, &t);
            const double near = 64 * FLT_EPSILON;
            for (int64_t h = 0; h < HEADS; h += 3)
                weights_are(plan, &t.o.args, 1, h, QUERIES, KEYS, near);
            att_attention_args ragged = t.o.args;
            att_tensor *rows[] = {&ragged.q, &ragged.k};
            for (int i = 0; i < 2; i++)
                assert_int_equal(att_wrap(rows[i], rows[i]->data, types[type],
                                          ATT_DIMS(i ? KEYS : QUERIES, i ? KV_HEADS : HEADS, DIM), NULL),
                                 ATT_OK);
            ragged.n_sequences = 2;
            ragged.q_offsets = q_offsets, ragged.k_offsets = k_offsets;
            const int64_t longest[] = {2, 1, 3, 290};
            att_wrap(param_at(&ragged, ragged.n_params - 1), t.o.mask, ATT_BOOL, 4, longest, NULL);
            weights_are(plan, &ragged, 1, 3, 3, 290, near);
            att_plan_free(plan);
            trial_free(&t);
        }
    att_close(ctx);
}

static void keys_may_be_in_a_cache(void **state)
{
    (void)state;
    static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
    att_ctx *ctx = check_open(NULL, 1);
    for (int type = 0; type < 3; type++) {
        trial t = trial_of(att_score_dot, types[type], ctx);
        att_plan *plan = with_stages(ctx, &t);
        att_cache *cache;
        att_attention_args a = t.o.args;
        a.k = a.v = (att_tensor){0};
        assert_int_equal(att_cache_new(plan, BATCH, &cache), ATT_OK);
        assert_int_equal(att_cache_append(cache, ATT_ALL_SEQUENCES, &t.o.args.k, &t.o.args.k), ATT_OK);
        a.cache = cache;
        for (int64_t k = 0; k < KEYS; k += 7) {
            const att_pair_info d = describe(plan, &t.o.args, 1, 3, 2, k), in_cache = describe(plan, &a, 1, 3, 2, k);
            assert_memory_equal(&d, &in_cache, sizeof d);
        }
        att_cache_free(cache);
        att_plan_free(plan);
        trial_free(&t);
    }
    att_close(ctx);
}

static void a_query_that_attends_to_nothing_has_no_weights(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    trial t = trial_of(att_score_cosine, ATT_F32, ctx);
    att_plan *plan = with_stages(ctx, &t);
    memset(t.o.mask, 0, BATCH * QUERIES * KEYS);
    const att_pair_info d = describe(plan, &t.o.args, 0, 0, 4, 299);
    assert_true(d.weight == 0 && d.log_sum_exp == -INFINITY && d.masked_by == 2 && isfinite(d.after[1]));
    att_plan_free(plan);
    trial_free(&t);
    att_close(ctx);
}

static void refuse(const att_plan *plan, const att_attention_args *a, const int64_t at[4], const char *words)
{
    att_pair_info d = {.size = sizeof d, .weight = 7};
    assert_int_equal(att_pair_describe(plan, a, at[0], at[1], at[2], at[3], &d), ATT_ERR_ARGUMENT);
    assert_true(d.weight == 7);
    check_message(NULL, words);
}

static void errors_name_what_is_out_of_range(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    trial t = trial_of(att_score_dot, ATT_F32, ctx);
    att_plan *plan = with_stages(ctx, &t);
    refuse(plan, &t.o.args, (const int64_t[]){BATCH, 0, 0, 0}, "sequence is 2, but there are 2");
    refuse(plan, &t.o.args, (const int64_t[]){0, HEADS, 0, 0}, "head is 4, but there are 4");
    refuse(plan, &t.o.args, (const int64_t[]){0, 0, -1, 0}, "q is -1, but the sequence has 5 queries");
    refuse(plan, &t.o.args, (const int64_t[]){0, 0, 0, KEYS}, "k is 300, but the sequence has 300 keys");
    t.o.args.n_params = 1;
    refuse(plan, &t.o.args, (const int64_t[]){0, 0, 0, 0}, "args.n_params is 1, but the plan has 2");
    att_plan_free(plan);
    trial_free(&t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_is_what_its_terms_make_by_hand),
        cmocka_unit_test(weights_are_described_for_each_score_type_and_layout),
        cmocka_unit_test(keys_may_be_in_a_cache),
        cmocka_unit_test(a_query_that_attends_to_nothing_has_no_weights),
        cmocka_unit_test(errors_name_what_is_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
