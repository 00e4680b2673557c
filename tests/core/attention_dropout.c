/* Attention with dropout: which weights are dropped, of what that is a matter and of what it is not, and what it leaves
 * on average. That values and gradients are right is tested with all other stages. */
#include "fixtures/cache.h"
#include "attn/reference.h"

#include <math.h>

static const float RATE = 0.3f;
static const uint64_t SEED = 0xfedcba9876543210;

/* Equal weights and values that tell keys apart: out[d] is key d's weight. */
static operands make_visible(shape n)
{
    operands o = make(n);
    memset(o.q, 0, (size_t)(n.batch * n.heads * n.tq * n.head_dim) * sizeof *o.q);
    for (int64_t i = 0; i < n.batch * n.kv_heads * n.tk; i++)
        for (int64_t d = 0; d < n.value_dim; d++)
            o.v[i * n.value_dim + d] = d == i % n.tk;
    o.args.dropout_seed = SEED;
    return o;
}

static void check_dropped(const att_ctx *ctx, const operands *o, const int64_t *starts, const uint32_t *ids)
{
    const shape n = o->n;
    const uint32_t threshold = (uint32_t)llround((double)RATE * 0x1p32);
    for (int64_t i = 0; i < out_count(n); i++) {
        const int64_t k = i % n.value_dim, q = i / n.value_dim % n.tq, row = i / n.value_dim / n.tq;
        const att_dropout_mask d = {SEED, ids[row / n.heads], (uint32_t)(row % n.heads), threshold};
        const bool keep = att_dropout_keep(&d, (uint32_t)(starts[row / n.heads] + q), (uint32_t)k);
        const double expected = keep ? 1 / (1 - (double)RATE) / (double)n.tk : 0; /* sums of ones are exact */
        check_near(expected, o->out[i], 0x1p-22 * expected, "%s: row %d, query %d, key %d", att_isa(ctx), (int)row,
                   (int)q, (int)k);
    }
}

static void each_set_drops_what_the_definition_says(void **state)
{
    (void)state;
    const int64_t starts[3] = {0, 1000, (INT64_C(1) << 32) - 7}; /* positions wrap */
    const uint32_t ids[3] = {9, 0, UINT32_MAX};
    const shape shapes[] = {{3, 4, 2, 70, 300, 8, 300}, {3, 1, 1, 1, 5, 8, 5}, {3, 2, 2, 17, 33, 8, 33}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 3; i++) {
            operands o = make_visible(shapes[i]);
            att_attention_spec s = spec_of(shapes[i]);
            s.dropout = RATE;
            s.align = ATT_ALIGN_STARTS;
            o.args.q_starts = starts;
            o.args.sequence_ids = ids;
            run(ctx, &s, &o.args);
            check_dropped(ctx, &o, starts, ids);
            operands_free(&o);
        }
}

static const shape middle = {3, 4, 2, 83, 300, 40, 24};

/* Sequence 2 alone is what it is among others, whole or a part of its queries at a time. */
static void a_sequence_drops_the_same_alone_and_in_parts(void **state)
{
    (void)state;
    enum { FIRST = 45, COUNT = 20 };
    att_ctx *ctx = check_open(NULL, 2);
    const uint32_t ids[3] = {10, 11, 12};
    const int64_t starts[3] = {217, 217, 217};
    const shape n = middle, one = {1, n.heads, n.kv_heads, n.tq, n.tk, n.head_dim, n.value_dim};
    operands all = make(n), part = all;
    att_attention_spec s = spec_of(n);
    s.dropout = RATE;
    add_mask(&s, att_mask_causal);
    s.align = ATT_ALIGN_STARTS;
    all.args.sequence_ids = ids;
    all.args.q_starts = starts;
    run(ctx, &s, &all.args);

    float *out = check_numbers(out_count(one), 0);
    part.args.q.data = all.q + 2 * n.heads * n.tq * n.head_dim;
    part.args.k.data = all.k + 2 * n.kv_heads * n.tk * n.head_dim;
    part.args.v.data = all.v + 2 * n.kv_heads * n.tk * n.value_dim;
    part.args.q.dim[0] = part.args.k.dim[0] = part.args.v.dim[0] = 1;
    part.args.lse = (att_tensor){0};
    att_wrap(&part.args.out, out, ATT_F32, ATT_DIMS(1, n.heads, n.tq, n.value_dim), NULL);
    part.args.sequence_ids = ids + 2;
    part.args.q_starts = starts;
    run(ctx, &s, &part.args);
    const float *among = all.out + 2 * out_count(one);
    assert_same_bits(among, out, out_count(one));

    const int64_t later[1] = {starts[2] + FIRST};
    part.args.q.data = all.q + 2 * n.heads * n.tq * n.head_dim + FIRST * n.head_dim;
    part.args.q.dim[2] = part.args.out.dim[2] = COUNT;
    part.args.q_starts = later;
    run(ctx, &s, &part.args);
    for (int64_t h = 0; h < n.heads; h++)
        assert_same_bits(among + (h * n.tq + FIRST) * n.value_dim, out + h * n.tq * n.value_dim, COUNT * n.value_dim);

    part.args.sequence_ids = ids + 1;
    run(ctx, &s, &part.args);
    assert_memory_not_equal(among + FIRST * n.value_dim, out, COUNT * (size_t)n.value_dim * sizeof *out);
    free(out), operands_free(&all);
    att_close(ctx);
}

static void what_is_not_dropped_from_stays(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const uint32_t ids[3] = {1, 2, 3};
    operands o = make(middle), plain = make(middle);
    att_attention_spec s = spec_of(middle);
    run(ctx, &s, &plain.args);

    o.args.sequence_ids = ids; /* a seed and ids, but nothing to drop */
    o.args.dropout_seed = SEED;
    run(ctx, &s, &o.args);
    assert_same_bits(plain.out, o.out, out_count(middle));

    s.dropout = RATE;
    run(ctx, &s, &o.args);
    assert_same_bits(plain.lse, o.lse, middle.batch * middle.heads * middle.tq);

    float *with = check_numbers(middle.tk, 0), *without = check_numbers(middle.tk, 0);
    for (int i = 0; i < 2; i++, s.dropout = 0) {
        att_plan *plan = plan_of(ctx, &s);
        assert_int_equal(att_weights(plan, &o.args, 1, 2, 3, 1, i ? without : with), ATT_OK);
        att_plan_free(plan);
    }
    assert_same_bits(without, with, middle.tk);
    free(with), free(without), operands_free(&o), operands_free(&plain);
    att_close(ctx);
}

/* A probability is kept as round(p 2^32): one that becomes 0 drops nothing, in a full pass, in decoding and from a
 * cache, and scales nothing. */
static void a_probability_that_rounds_to_nothing_drops_nothing(void **state)
{
    (void)state;
    static const float rates[] = {FLT_TRUE_MIN, 1e-11f, 0x1.fffffep-34f};
    static const int64_t queries[] = {1, 2, 70};
    static const uint32_t ids[3] = {1, 2, 3};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 9; i++) {
            const shape n = {3, 4, 2, queries[i % 3], 300, 8, 8};
            operands plain = make(n), o = make(n);
            att_attention_spec s = spec_of(n);
            o.args.sequence_ids = ids;
            o.args.dropout_seed = SEED;
            run(ctx, &s, &plain.args);
            s.dropout = rates[i / 3];
            run(ctx, &s, &o.args);
            assert_same_bits(plain.out, o.out, out_count(n));
            assert_same_bits(plain.lse, o.lse, n.batch * n.heads * n.tq);
            memset(o.out, 0, (size_t)out_count(n) * sizeof *o.out);
            att_plan *plan = plan_of(ctx, &s);
            att_cache *c = cache_of(ctx, plan, n.batch);
            append(ctx, c, &o.args, 0, n.tk);
            const att_attention_args cached = with_cache(o.args, c);
            check_ok(ctx, att_forward(plan, &cached));
            assert_same_bits(plain.out, o.out, out_count(n));
            att_cache_free(c);
            att_plan_free(plan);
            operands_free(&plain), operands_free(&o);
        }
}

/* An output element is a sum of independent terms w v x / (1 - p), x = 1 with probability 1 - p: its variance is
 * p / (1 - p) times the sum of (w v)^2, that of a mean over N seeds 1 / N of it. Six deviations are exceeded once in
 * 5e8. Rounding adds 2^-20 at most. */
static void the_expected_output_is_that_without_dropout(void **state)
{
    (void)state;
    enum { N = 3000 };
    const shape n = {1, 2, 1, 6, 37, 8, 5};
    const float rates[] = {0.1f, 0.5f, 0.9f};
    att_ctx *ctx = check_open(NULL, 1);
    for (int r = 0; r < 3; r++) {
        const double p = (double)rates[r];
        const uint32_t id = 0;
        operands o = make(n), plain = make(n);
        att_attention_spec s = spec_of(n);
        run(ctx, &s, &plain.args);
        s.dropout = rates[r];
        o.args.sequence_ids = &id;
        att_plan *plan = plan_of(ctx, &s);
        double mean[2 * 6 * 5] = {0};
        for (o.args.dropout_seed = 0; o.args.dropout_seed < N; o.args.dropout_seed++) {
            assert_int_equal(att_forward(plan, &o.args), ATT_OK);
            for (int i = 0; i < 2 * 6 * 5; i++)
                mean[i] += (double)o.out[i] / N;
        }
        float weights[37];
        for (int i = 0; i < 2 * 6 * 5; i++) {
            double squares = 0;
            assert_int_equal(att_weights(plan, &o.args, 0, i / 5 / 6, i / 5 % 6, 1, weights), ATT_OK);
            for (int k = 0; k < 37; k++)
                squares += pow((double)weights[k] * (double)o.v[k * 5 + i % 5], 2);
            check_near(mean[i], plain.out[i], 6 * sqrt(p / (1 - p) * squares / N) + 0x1p-20, "mean of out[%d], p %g", i,
                       p);
        }
        att_plan_free(plan);
        operands_free(&o), operands_free(&plain);
    }
    att_close(ctx);
}

/* The gradient of v shows the backward's choice as the output shows the forward's: with dout = 1 in query q alone,
 * dv[k] is the weight of q and k. */
static void backward_drops_the_same_weights(void **state)
{
    (void)state;
    enum { T = 90, D = 8 };
    const uint32_t id = 77;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int q = 0; q < T; q += 11) {
            operands o = make_visible((shape){1, 1, 1, T, T, D, T});
            att_attention_spec s = spec_of(o.n);
            s.dropout = RATE;
            o.args.sequence_ids = &id;
            float *dout = calloc(T * T, sizeof *dout), *dv = calloc(T * T, sizeof *dv);
            for (int d = 0; d < T; d++)
                dout[q * T + d] = 1;
            att_attention_grads g = {.size = sizeof g, .dout = o.args.out, .dv = o.args.v};
            g.dout.data = dout;
            g.dv.data = dv;
            att_plan *plan = plan_of(ctx, &s);
            assert_int_equal(att_forward(plan, &o.args), ATT_OK);
            assert_int_equal(att_backward(plan, &o.args, &g), ATT_OK);
            for (int k = 0; k < T; k++)
                check_near((double)o.out[q * T + k], dv[k * T], 0x1p-20, "%s: query %d, key %d", att_isa(ctx), q, k);
            att_plan_free(plan);
            free(dout), free(dv), operands_free(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_set_drops_what_the_definition_says),
        cmocka_unit_test(a_sequence_drops_the_same_alone_and_in_parts),
        cmocka_unit_test(what_is_not_dropped_from_stays),
        cmocka_unit_test(a_probability_that_rounds_to_nothing_drops_nothing),
        cmocka_unit_test(the_expected_output_is_that_without_dropout),
        cmocka_unit_test(backward_drops_the_same_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
