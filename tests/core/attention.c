/* Attention forward against its definition in double, on every instruction set, and what must hold exactly. */
#include "fixtures/attention_reference.h"

/* Rounding, in units of 2^-24: a score is a chain of head_dim products, off by sqrt(head_dim) + 2 of the sum of their
 * magnitudes; that is the relative error of a weight, and again of their sum; weighing is a chain of tk. Dropout makes
 * weights, with their errors, 1 / (1 - p) times as much. */
static double tolerance(const att_plan *plan, const att_head_view *at, int64_t q)
{
    double most = 0;
    for (int64_t k = 0; k < at->head.tk; k++) {
        double s = 0;
        for (int64_t d = 0; d < plan->spec.head_dim; d++)
            s += fabs((double)((const float *)at->q_row.at)[q * at->q_row.stride + d] *
                      ((const float *)at->k_row.at)[k * at->k_row.stride + d]);
        most = fmax(most, s * plan->spec.scale + 1);
    }
    const double units = 4 + 2 * (sqrt((double)plan->spec.head_dim) + 2) * most + 2 * sqrt((double)at->head.tk);
    return 0x1p-24 * units / (1 - (double)plan->spec.dropout);
}

/* On each set, against one definition. */
static void check_combination(att_ctx *const *sets, int n_sets, shape n, unsigned stages)
{
    operands o[CHECK_MOST_SETS];
    att_plan *plan[CHECK_MOST_SETS];
    att_call call[CHECK_MOST_SETS] = {{0}};
    int64_t lengths[4];
    for (int i = 0; i < n_sets; i++) {
        att_attention_spec s = spec_of(n);
        o[i] = make(n);
        choose(stages, &o[i], &s, lengths);
        plan[i] = plan_of(sets[i], &s);
        if (att_forward(plan[i], &o[i].args))
            fail_msg("%s", att_error(sets[i]));
        call[i] = call_of(plan[i], &o[i].args);
    }
    att_head_view at;
    double out[MAX_VALUE_DIM];
    for (int64_t site = 0; next_site(&call[0], &site, &at);)
        for (int64_t q = 0; q < at.head.tq; q += 1 + at.head.tq / 13) {
            const double lse = att_ref_attention_row(plan[0], &at, q, NULL, out), limit = tolerance(plan[0], &at, q);
            for (int i = 0; i < n_sets; i++) {
                att_head_view own;
                att_call_head(&call[i], (site - 1) / n.heads, (site - 1) % n.heads, &own);
                check_row_is(plan[i], &own, q, out, lse, limit, "dot");
            }
        }
    for (int i = 0; i < n_sets; i++) {
        att_plan_free(plan[i]);
        operands_free(&o[i]);
    }
}

static const shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1},       {1, 1, 1, 1, 7, 3, 5},      {2, 2, 1, 5, 3, 2, 1},       {1, 2, 2, 31, 33, 16, 8},
    {1, 1, 1, 32, 32, 32, 32},   {3, 4, 2, 33, 65, 45, 51},  {1, 3, 1, 17, 255, 64, 64},  {1, 1, 1, 65, 257, 80, 40},
    {2, 2, 2, 16, 256, 7, 64},   {1, 2, 1, 3, 1023, 64, 64}, {1, 1, 1, 40, 1025, 33, 17}, {1, 1, 1, 2, 2500, 128, 96},
    {2, 2, 2, 19, 0, 8, 8},      {2, 1, 1, 0, 9, 8, 8},      {0, 2, 2, 4, 4, 8, 8},       {1, 1, 1, 9, 513, 256, 256},
    {1, 2, 1, 5, 40, 1000, 700}, {1, 1, 1, 9, 3, 5000, 1},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void every_combination_agrees_with_the_definition(void **state)
{
    (void)state;
    att_ctx *sets[CHECK_MOST_SETS];
    const int n_sets = check_open_all(sets, 2);
    int done = 0;
    for (int i = 0; i < N_SHAPES; i++)
        for (unsigned stages = 0; stages <= ALL_STAGES; stages += (unsigned)check_step(5), done++)
            check_combination(sets, n_sets, shapes[i], stages);
    print_message("%d shapes, %d combinations on %d sets\n", N_SHAPES, done, n_sets);
    check_close_all(sets, n_sets);
}

static const shape middle = {3, 4, 2, 83, 300, 40, 24};

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    operands o = make(middle);
    att_attention_spec s = spec_of(middle);
    int64_t lengths[4];
    choose(ALL_STAGES, &o, &s, lengths);
    check_threads(check_step(15), &s, &o.args, NULL);
    operands_free(&o);
}

static void ragged_and_alone_give_the_same_bits_as_a_padded_batch(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {3, 4, 2, 70, 70, 24, 16};
    const int64_t lengths[3] = {70, 1, 33}, offsets[4] = {0, 70, 71, 104};
    operands o = make(n);
    att_attention_spec s = spec_of(n);
    add_mask(&s, att_mask_causal);
    s.align = ATT_ALIGN_TOP_LEFT;
    o.args.q_lengths = o.args.k_lengths = lengths;
    run(ctx, &s, &o.args);

    /* the same tokens, [tokens, heads, dim] */
    float *q = check_numbers(104 * 4 * 24, 0), *k = check_numbers(104 * 2 * 24, 0), *v = check_numbers(104 * 2 * 16, 0),
          *out = check_numbers(104 * 4 * 16, 0);
    for (int b = 0; b < 3; b++)
        for (int64_t t = 0; t < lengths[b]; t++) {
            for (int h = 0; h < 4; h++)
                memcpy(q + ((offsets[b] + t) * 4 + h) * 24, o.q + ((b * 4 + h) * 70 + t) * 24, 24 * sizeof *q);
            for (int h = 0; h < 2; h++) {
                memcpy(k + ((offsets[b] + t) * 2 + h) * 24, o.k + ((b * 2 + h) * 70 + t) * 24, 24 * sizeof *k);
                memcpy(v + ((offsets[b] + t) * 2 + h) * 16, o.v + ((b * 2 + h) * 70 + t) * 16, 16 * sizeof *v);
            }
        }
    att_attention_args a = {.size = sizeof a, .n_sequences = 3, .q_offsets = offsets};
    att_wrap(&a.q, q, ATT_F32, ATT_DIMS(104, 4, 24), NULL);
    att_wrap(&a.k, k, ATT_F32, ATT_DIMS(104, 2, 24), NULL);
    att_wrap(&a.v, v, ATT_F32, ATT_DIMS(104, 2, 16), NULL);
    att_wrap(&a.out, out, ATT_F32, ATT_DIMS(104, 4, 16), NULL);
    run(ctx, &s, &a);
    for (int b = 0; b < 3; b++)
        for (int64_t t = 0; t < lengths[b]; t++)
            for (int h = 0; h < 4; h++)
                assert_same_bits(o.out + ((b * 4 + h) * 70 + t) * 16, out + ((offsets[b] + t) * 4 + h) * 16, 16);

    /* the last sequence alone */
    float *together = check_numbers(33 * 4 * 16, 0);
    memcpy(together, out + 71 * 4 * 16, 33 * 4 * 16 * sizeof *out);
    const int64_t alone[2] = {0, 33};
    a.n_sequences = 1;
    a.q_offsets = alone;
    att_wrap(&a.q, q + 71 * 4 * 24, ATT_F32, ATT_DIMS(33, 4, 24), NULL);
    att_wrap(&a.k, k + 71 * 2 * 24, ATT_F32, ATT_DIMS(33, 2, 24), NULL);
    att_wrap(&a.v, v + 71 * 2 * 16, ATT_F32, ATT_DIMS(33, 2, 16), NULL);
    att_wrap(&a.out, out, ATT_F32, ATT_DIMS(33, 4, 16), NULL);
    run(ctx, &s, &a);
    assert_same_bits(together, out, 33 * 4 * 16);
    free(together), free(q), free(k), free(v), free(out);
    operands_free(&o);
    att_close(ctx);
}

/* One token, and behind it a sequence without any, whose address would be a stride away: no stride of a dimension of
 * one element counts. */
static void a_sequence_without_tokens_is_nowhere(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {1, 1, 1, 1, 1, 3, 3};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    const int64_t offsets[3] = {0, 1, 1}, far[] = {INT64_MAX, INT64_MAX, 1};
    att_attention_args a = {.size = sizeof a, .n_sequences = 2, .q_offsets = offsets};
    att_wrap(&a.q, o.q, ATT_F32, ATT_DIMS(1, 1, 3), far);
    att_wrap(&a.k, o.k, ATT_F32, ATT_DIMS(1, 1, 3), far);
    att_wrap(&a.v, o.v, ATT_F32, ATT_DIMS(1, 1, 3), far);
    att_wrap(&a.out, o.out, ATT_F32, ATT_DIMS(1, 1, 3), far);
    run(ctx, &s, &a);
    assert_same_bits(o.out, o.v, 3);
    operands_free(&o);
    att_close(ctx);
}

static void weights_and_a_description_do_not_look_at_outputs(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {2, 1, 1, 1, 2, 3, 3};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    att_attention_args a = o.args;
    att_plan *plan;
    att_plan_info info = {.size = sizeof info};
    float weights[2];
    for (int i = 0; i < 3; i++)
        a.v.stride[i] = a.out.stride[i] = a.lse.stride[i] = INT64_MAX;
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    assert_int_equal(att_plan_describe(plan, &a, &info), ATT_OK);
    assert_int_equal(att_weights(plan, &a, 1, 0, 0, 1, weights), ATT_OK);
    assert_float_equal(weights[0] + weights[1], 1, 1e-6);
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

/* time: of few queries keys are read where they are, for many they are copied. */
static void check_strides(int64_t time)
{
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {2, 4, 4, time, time, 24, 24};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    run(ctx, &s, &o.args);
    /* [batch, time, 3 (q, k, v), heads, dim], as one fused projection writes it */
    float *fused = check_numbers(2 * time * 3 * 96, 0), *out = check_numbers(2 * time * 96, 0);
    const float *from[3] = {o.q, o.k, o.v};
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t t = 0; t < time; t++)
                for (int i = 0; i < 3; i++)
                    memcpy(fused + (((b * time + t) * 3 + i) * 4 + h) * 24, from[i] + ((b * 4 + h) * time + t) * 24,
                           24 * sizeof *fused);
    const int64_t stride[4] = {time * 288, 24, 288, 1}, out_stride[4] = {time * 96, 24, 96, 1};
    att_attention_args a = {.size = sizeof a};
    att_wrap(&a.q, fused, ATT_F32, ATT_DIMS(2, 4, time, 24), stride);
    att_wrap(&a.k, fused + 96, ATT_F32, ATT_DIMS(2, 4, time, 24), stride);
    att_wrap(&a.v, fused + 192, ATT_F32, ATT_DIMS(2, 4, time, 24), stride);
    att_wrap(&a.out, out, ATT_F32, ATT_DIMS(2, 4, time, 24), out_stride);
    run(ctx, &s, &a);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t t = 0; t < time; t++)
                assert_same_bits(o.out + ((b * 4 + h) * time + t) * 24, out + ((b * time + t) * 4 + h) * 24, 24);
    free(fused), free(out);
    operands_free(&o);
    att_close(ctx);
}

static void strides_change_nothing(void **state)
{
    (void)state;
    check_strides(37);
    check_strides(600);
}

static void the_future_cannot_change_the_causal_past(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {1, 1, 1, 1300, 1300, 16, 16};
    operands o = make(n);
    att_attention_spec s = spec_of(n);
    add_mask(&s, att_mask_causal);
    s.align = ATT_ALIGN_TOP_LEFT;
    run(ctx, &s, &o.args);
    float *before = check_numbers(1300 * 16, 0);
    memcpy(before, o.out, 1300 * 16 * sizeof *before);
    for (int64_t i = 1111 * 16; i < 1300 * 16; i++)
        o.k[i] = 40 * o.k[i] + 1, o.v[i] = -o.v[i];
    run(ctx, &s, &o.args);
    assert_same_bits(before, o.out, 1111 * 16);
    assert_memory_not_equal(before + 1111 * 16, o.out + 1111 * 16, 16 * sizeof *before);
    free(before);
    operands_free(&o);
    att_close(ctx);
}

static void a_chunk_of_queries_at_its_start_equals_the_full_pass(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {1, 2, 1, 600, 600, 32, 32};
    operands o = make(n);
    att_attention_spec s = spec_of(n);
    add_mask(&s, att_mask_causal);
    s.align = ATT_ALIGN_STARTS;
    int64_t start = 0;
    o.args.q_starts = &start;
    run(ctx, &s, &o.args);
    float *chunk = check_numbers(2 * 600 * 32, 0);
    static const int64_t sizes[] = {1, 5, 32, 100};
    for (int c = 0; c < 4; c++)
        for (start = 0; start + sizes[c] <= 600; start += 217) {
            att_attention_args a = o.args;
            const int64_t stride[4] = {0, 600 * 32, 32, 1};
            att_wrap(&a.q, o.q + start * 32, ATT_F32, ATT_DIMS(1, 2, sizes[c], 32), stride);
            att_wrap(&a.out, chunk, ATT_F32, ATT_DIMS(1, 2, sizes[c], 32), NULL);
            a.lse = (att_tensor){0};
            run(ctx, &s, &a);
            for (int64_t h = 0; h < 2; h++)
                assert_same_bits(o.out + (h * 600 + start) * 32, chunk + h * sizes[c] * 32, sizes[c] * 32);
        }
    free(chunk);
    operands_free(&o);
    att_close(ctx);
}

/* The two pieces have their own rounding and the merge adds a few units of 2^-24 more to numbers up to 1. */
static void pieces_of_the_keys_merge(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {2, 3, 3, 21, 130, 16, 24};
    operands whole = make(n), o = make(n);
    const att_attention_spec s = spec_of(n);
    run(ctx, &s, &whole.args);
    for (int64_t cut = 0; cut <= 130; cut += 65) { /* at the ends a piece is empty: 0 and -inf */
        att_attention_args a = o.args, b = o.args;
        float *out2 = check_numbers(out_count(n), 1), *lse2 = check_numbers(2 * 3 * 21, 1);
        a.k.dim[2] = a.v.dim[2] = cut;
        b.k.dim[2] = b.v.dim[2] = 130 - cut;
        b.k.data = o.k + cut * 16;
        b.v.data = o.v + cut * 24;
        b.out.data = out2;
        b.lse.data = lse2;
        run(ctx, &s, &a);
        run(ctx, &s, &b);
        assert_int_equal(att_merge(ctx, &a.out, &a.lse, &b.out, &b.lse), ATT_OK);
        for (int64_t i = 0; i < out_count(n); i++)
            assert_true(fabsf(o.out[i] - whole.out[i]) <= 16 * 0x1p-24f);
        for (int64_t i = 0; i < 2 * 3 * 21; i++)
            assert_true(fabsf(o.lse[i] - whole.lse[i]) <= 16 * 0x1p-22f); /* up to 8 */
        free(out2), free(lse2);
    }
    att_tensor wrong = o.args.lse;
    wrong.dim[2] = 20;
    assert_int_equal(att_merge(ctx, &o.args.out, &wrong, &whole.args.out, &whole.args.lse), ATT_ERR_SHAPE);
    check_message(ctx, "out.dim[2] = 21");
    operands_free(&whole), operands_free(&o);
    att_close(ctx);
}

static void values_of_one_give_one(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    operands o = make(middle);
    for (int64_t i = 0; i < middle.batch * middle.kv_heads * middle.tk * middle.value_dim; i++)
        o.v[i] = 1;
    const att_attention_spec s = spec_of(middle);
    run(ctx, &s, &o.args);
    for (int64_t i = 0; i < out_count(middle); i++)
        assert_true(fabs(o.out[i] - 1.0) <= 0x1p-23 * sqrt(300)); /* two chains of 300 weights */
    operands_free(&o);
    att_close(ctx);
}

static void permuting_keys_with_their_values_changes_only_rounding(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {1, 1, 1, 20, 301, 24, 24};
    operands o = make(n), p = make(n);
    for (int64_t i = 0; i < 301; i++) { /* 47 and 301 have no common factor */
        memcpy(p.k + i * 47 % 301 * 24, o.k + i * 24, 24 * sizeof *o.k);
        memcpy(p.v + i * 47 % 301 * 24, o.v + i * 24, 24 * sizeof *o.v);
    }
    const att_attention_spec s = spec_of(n);
    run(ctx, &s, &o.args);
    run(ctx, &s, &p.args);
    for (int64_t i = 0; i < out_count(n); i++)
        assert_true(fabs(o.out[i] - (double)p.out[i]) <= 0x1p-23 * sqrt(301));
    operands_free(&o), operands_free(&p);
    att_close(ctx);
}

static void grouped_heads_equal_repeated_heads(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape grouped = {2, 6, 2, 21, 50, 16, 8}, repeated = {2, 6, 6, 21, 50, 16, 8};
    operands g = make(grouped), r = make(repeated);
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 6; h++) {
            memcpy(r.k + (b * 6 + h) * 50 * 16, g.k + (b * 2 + h / 3) * 50 * 16, 50 * 16 * sizeof *g.k);
            memcpy(r.v + (b * 6 + h) * 50 * 8, g.v + (b * 2 + h / 3) * 50 * 8, 50 * 8 * sizeof *g.v);
        }
    const att_attention_spec gs = spec_of(grouped), rs = spec_of(repeated);
    run(ctx, &gs, &g.args);
    run(ctx, &rs, &r.args);
    assert_same_bits(g.out, r.out, out_count(grouped));
    operands_free(&g), operands_free(&r);
    att_close(ctx);
}

static void a_row_with_nothing_to_attend_is_zero(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const shape n = {2, 2, 2, 40, 70, 8, 8};
        operands o = make(n);
        att_attention_spec s = spec_of(n);
        int64_t lengths[4];
        choose(BOOLEAN, &o, &s, lengths);
        memset(o.mask + 5 * 70, 0, 70); /* query 5 of the first sequence */
        const int64_t keys[2] = {70, 0}, queries[2] = {33, 40};
        o.args.k_lengths = keys;
        o.args.q_lengths = queries;
        run(ctx, &s, &o.args);
        for (int64_t row = 0; row < 2 * 2 * 40; row++) {
            const int64_t b = row / 80, q = row % 40;
            const bool empty = b == 1 || q == 5 || q >= 33;
            assert_int_equal(o.lse[row] == -INFINITY, empty);
            for (int64_t d = 0; empty && d < 8; d++)
                assert_true(o.out[row * 8 + d] == 0 && !signbit(o.out[row * 8 + d]));
        }
        operands_free(&o);
    }
}

/* One key is NaN in k and infinite in v; causal, so that within its tile some queries attend to it and some do not. */
static void what_is_not_finite_reaches_only_those_who_attend_to_it(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const shape n = {1, 2, 2, 300, 300, 24, 20};
        operands clean = make(n), o = make(n);
        att_attention_spec s = spec_of(n);
        add_mask(&s, att_mask_causal);
        s.align = ATT_ALIGN_TOP_LEFT;
        run(ctx, &s, &clean.args);
        for (int h = 0; h < 2; h++)
            for (int d = 0; d < 20; d++) {
                o.k[(h * 300 + 270) * 24 + d] = h ? NAN : 0;
                o.v[(h * 300 + 270) * 20 + d] = d % 2 ? INFINITY : NAN;
            }
        run(ctx, &s, &o.args);
        for (int h = 0; h < 2; h++) {
            assert_same_bits(clean.out + h * 300 * 20, o.out + h * 300 * 20, 270 * 20);
            assert_same_bits(clean.lse + h * 300, o.lse + h * 300, 270);
            for (int i = (h * 300 + 270) * 20; i < (h * 300 + 300) * 20; i++)
                assert_false(isfinite(o.out[i]));
        }
        operands_free(&clean), operands_free(&o);
    }
}

static void a_bias_of_minus_infinity_forbids_and_huge_scores_stay_finite(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {1, 1, 1, 35, 40, 8, 8};
    operands o = make(n), m = make(n);
    att_attention_spec with_bias = spec_of(n), with_mask = spec_of(n);
    int64_t lengths[4];
    choose(BIAS, &o, &with_bias, lengths);
    choose(BOOLEAN, &m, &with_mask, lengths);
    for (int i = 0; i < 35 * 40; i++)
        o.bias[i] = m.mask[i] ? 0 : -INFINITY;
    run(ctx, &with_bias, &o.args);
    run(ctx, &with_mask, &m.args);
    assert_same_bits(m.out, o.out, out_count(n));

    for (int i = 0; i < 35 * 8; i++)
        m.q[i] *= 1e4f;
    run(ctx, &with_mask, &m.args);
    for (int64_t i = 0; i < out_count(n); i++)
        assert_true(fabsf(m.out[i]) <= 1);
    operands_free(&o), operands_free(&m);
    att_close(ctx);
}

static void weights_on_demand_agree_with_the_definition(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    operands o = make(middle);
    att_attention_spec s = spec_of(middle);
    int64_t lengths[4];
    choose(ALL_STAGES, &o, &s, lengths);
    att_call call;
    att_head_view at;
    att_plan *plan = plan_of(ctx, &s);
    assert_int_equal(att_call_check(plan, &o.args, false, &call), ATT_OK);
    att_call_head(&call, 1, 3, &at);
    float *weights = check_numbers(60 * 300, 0);
    double expected[300];
    assert_int_equal(att_weights(plan, &o.args, 1, 3, 7, 60, weights), ATT_OK);
    for (int64_t q = 0; q < 60; q++) {
        att_ref_attention_row(plan, &at, 7 + q, expected, NULL);
        for (int64_t k = 0; k < at.head.tk; k++)
            if (!(fabs(weights[q * at.head.tk + k] - expected[k]) <= tolerance(plan, &at, 7 + q)))
                fail_msg("weight %d, %d is %.9g, expected %.9g", (int)q, (int)k, (double)weights[q * at.head.tk + k],
                         expected[k]);
    }
    free(weights);
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

static void a_plan_says_what_it_will_do(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {1, 2, 2, 1024, 1024, 64, 32};
    operands o = make(n);
    att_attention_spec s = spec_of(n);
    add_mask(&s, att_mask_causal);
    s.align = ATT_ALIGN_TOP_LEFT;
    att_plan *plan = plan_of(ctx, &s);
    att_plan_info info = {.size = sizeof info};
    assert_int_equal(att_plan_describe(plan, &o.args, &info), ATT_OK);
    assert_string_equal(info.forward.kernel, "flash-forward");
    assert_string_equal(info.isa, att_isa(ctx));
    assert_true(info.skipped > 0.45 && info.skipped < 0.5); /* half, less the diagonal's tiles */
    assert_true(fabs(info.forward.flops - 2 * 96 * 2 * 1024.0 * 1024 * (1 - info.skipped)) < 1);
    assert_true(info.forward.workspace > 0 && info.forward.workspace < 1 << 20);
    assert_true(info.backward.workspace > info.forward.workspace && info.backward.workspace < 16 << 20);
    assert_true(fabs(info.backward.flops - info.forward.flops * (6 * 64 + 4 * 32) / (2 * 96)) < 1);
    assert_true(info.bytes == 2 * 1024 * (4 * 4.0 * 64 / 2 + 2 * 4 * 32 + 4));
    assert_string_equal(info.forward.why, "dot in tiles, scale in the queries; 0 modifiers, 1 masks; f32 in place");
    assert_string_equal(info.backward.kernel, "flash-backward");
    assert_string_equal(info.backward.why, info.forward.why);
    assert_int_equal(info.backward.q_block, info.forward.q_block);
    assert_int_equal(att_plan_describe(plan, &o.args, &(att_plan_info){0}), ATT_ERR_ARGUMENT);
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

static double l1(const att_pair *p) { return -fabs((double)p->query[0] - p->key[0]); }
static double halved(const att_pair *p, double s) { return p->value[0] + s / 2; }

static void a_plan_names_its_kernel_and_why(void **state)
{
    (void)state;
    static const att_score own = {.size = sizeof(att_score), .name = "l1", .formula = l1};
    static const att_modifier own_too = {.size = sizeof(att_modifier), .name = "halved", .formula = halved};
    static const att_modifier *const own_modifier = &own_too;
    static const struct {
        int64_t queries; /* of two heads that share keys */
        att_dtype dtype;
        const att_score *score;
        const att_modifier *const *modifier;
        const char *kernel, *why;
    } cases[] = {
        {4, ATT_F32, NULL, NULL, "decode", "dot, 8 queries share keys, and up to 8 are few; 0 modifiers, 0 masks"},
        {4, ATT_F16, &own, &own_modifier, "decode",
         "l1 pair by pair, 8 queries share keys, and up to 8 are few; 1 modifiers (some pair by pair), 0 masks"},
        {5, ATT_F32, NULL, &own_modifier, "flash-forward",
         "dot in tiles, scale in the queries; 1 modifiers (some pair by pair), 0 masks; f32 in place"},
        {5, ATT_F16, NULL, &att_modifier_sink, "flash-forward",
         "dot in tiles, scale in the queries; 1 modifiers, 0 masks; converted to f32 block by block"},
        {5, ATT_F32, &own, NULL, "flash-forward",
         "l1 in tiles pair by pair, as it has only a formula; 0 modifiers, 0 masks; f32 in place"},
    };
    static float sinks[2] = {1, 2};
    att_ctx *ctx = check_open(NULL, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        operands o = make((shape){1, 2, 1, cases[i].queries, 40, 8, 8});
        att_attention_spec s = spec_of(o.n);
        s.score = cases[i].score;
        if (cases[i].modifier)
            add_modifier(&s, *cases[i].modifier, 0);
        if (s.n_stages && s.stage[0].modifier == att_modifier_sink)
            att_wrap(param_at(&o.args, 0), sinks, ATT_F32, ATT_DIMS(2), NULL);
        store_as(ctx, cases[i].dtype, &o, &s);
        att_plan *plan = plan_of(ctx, &s);
        att_plan_info info = {.size = sizeof info};
        assert_int_equal(att_plan_describe(plan, &o.args, &info), ATT_OK);
        assert_string_equal(info.forward.kernel, cases[i].kernel);
        assert_string_equal(info.forward.why, cases[i].why);
        att_plan_free(plan);
        operands_free(&o);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_agrees_with_the_definition),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(ragged_and_alone_give_the_same_bits_as_a_padded_batch),
        cmocka_unit_test(a_sequence_without_tokens_is_nowhere),
        cmocka_unit_test(weights_and_a_description_do_not_look_at_outputs),
        cmocka_unit_test(strides_change_nothing),
        cmocka_unit_test(the_future_cannot_change_the_causal_past),
        cmocka_unit_test(a_chunk_of_queries_at_its_start_equals_the_full_pass),
        cmocka_unit_test(pieces_of_the_keys_merge),
        cmocka_unit_test(values_of_one_give_one),
        cmocka_unit_test(permuting_keys_with_their_values_changes_only_rounding),
        cmocka_unit_test(grouped_heads_equal_repeated_heads),
        cmocka_unit_test(a_row_with_nothing_to_attend_is_zero),
        cmocka_unit_test(what_is_not_finite_reaches_only_those_who_attend_to_it),
        cmocka_unit_test(a_bias_of_minus_infinity_forbids_and_huge_scores_stay_finite),
        cmocka_unit_test(weights_on_demand_agree_with_the_definition),
        cmocka_unit_test(a_plan_says_what_it_will_do),
        cmocka_unit_test(a_plan_names_its_kernel_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
