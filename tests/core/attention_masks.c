/* Masks: what true means, where positions are counted from, broadcast shapes, and that what they leave out is not
 * computed. That they compose, and agree with their definition, is tested with all other stages. */
#include "fixtures/attention_reference.h"
#include "fixtures/attention_trial.h"

#include <stdatomic.h>

/* ---- true means: attend */

static void true_in_a_mask_means_attend(void **state)
{
    (void)state;
    enum { T = 70, D = 8 };
    const shape n = {1, 2, 2, T, T, D, D};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        operands o = make(n), causal = make(n);
        att_attention_spec table = spec_of(n), built_in = spec_of(n);
        uint8_t mask[T * T];
        for (int i = 0; i < T * T; i++)
            mask[i] = i % T <= i / T;
        add_mask(&table, att_mask_boolean);
        att_wrap(param_at(&o.args, 0), mask, ATT_BOOL, ATT_DIMS(1, 1, T, T), NULL);
        add_mask(&built_in, att_mask_causal);
        built_in.align = ATT_ALIGN_TOP_LEFT;
        run(ctx, &table, &o.args);
        run(ctx, &built_in, &causal.args);
        assert_same_bits(causal.out, o.out, out_count(n));
        assert_same_bits(causal.lse, o.lse, 2 * T);

        memset(mask, 0, sizeof mask); /* one true a row: its weight is 1 */
        for (int i = 0; i < T; i++)
            mask[i * T + i * 37 % T] = 2; /* not 0 is true */
        run(ctx, &table, &o.args);
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < T; i++)
                for (int d = 0; d < D; d++) { /* p v / p, p near 1: three roundings */
                    const float v = o.v[(h * T + i * 37 % T) * D + d];
                    check_near(v, o.out[(h * T + i) * D + d], 3 * UNIT * fabs((double)v), "query %d", i);
                }
        operands_free(&o), operands_free(&causal);
    }
}

/* ---- positions */

/* Which keys get a weight, with these masks; first: the position of query 0 of each sequence. */
static void check_positions(att_ctx *ctx, const operands *o, const att_attention_spec *s, const int64_t *tq,
                            const int64_t *tk, const int64_t *first)
{
    float weights[16 * 16];
    att_plan *plan;
    const bool causal = s->stage[0].mask == att_mask_causal;
    if (att_plan_new(ctx, s, &plan))
        fail_msg("%s", att_error(ctx));
    for (int64_t b = 0; b < 2; b++) {
        if (att_weights(plan, &o->args, b, 0, 0, tq[b], weights))
            fail_msg("%s", att_error(ctx));
        for (int64_t q = 0; q < tq[b]; q++)
            for (int64_t k = 0; k < tk[b]; k++) {
                const int64_t distance = k - (first[b] + q);
                const bool attends = causal ? distance <= 0 : distance >= -2 && distance <= 1;
                if (attends != (weights[q * tk[b] + k] > 0))
                    fail_msg("%s, alignment %d: query %d of %d, key %d of %d: weight %g", s->stage[0].mask->name,
                             (int)s->align, (int)q, (int)tq[b], (int)k, (int)tk[b], (double)weights[q * tk[b] + k]);
            }
    }
    att_plan_free(plan);
}

static void positions_are_where_the_alignment_says(void **state)
{
    (void)state;
    static const int64_t times[][2] = {{5, 9}, {9, 5}, {4, 4}, {1, 12}};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < 2 * COUNT(times); i++) { /* as they are, and with lengths */
        const int64_t q = times[i / 2][0], k = times[i / 2][1];
        const int64_t tq[2] = {q, i % 2 ? q - q / 2 : q}, tk[2] = {k, i % 2 ? k - 3 : k};
        const int64_t starts[2] = {3, -1}, top_left[2] = {0, 0}, bottom_right[2] = {tk[0] - tq[0], tk[1] - tq[1]};
        const int64_t *first[] = {
            [ATT_ALIGN_TOP_LEFT] = top_left, [ATT_ALIGN_BOTTOM_RIGHT] = bottom_right, [ATT_ALIGN_STARTS] = starts};
        operands o = make((shape){2, 1, 1, q, k, 4, 4});
        o.args.q_starts = starts;
        o.args.q_lengths = i % 2 ? tq : NULL;
        o.args.k_lengths = i % 2 ? tk : NULL;
        for (int align = ATT_ALIGN_TOP_LEFT; align <= ATT_ALIGN_STARTS; align++) {
            att_attention_spec s = spec_of(o.n);
            s.align = (att_align)align;
            add_mask(&s, att_mask_causal);
            check_positions(ctx, &o, &s, tq, tk, first[align]);
            s.n_stages = 0;
            add_window(&s, 2, 1);
            check_positions(ctx, &o, &s, tq, tk, first[align]);
        }
        operands_free(&o);
    }
    att_close(ctx);
}

/* ---- broadcast shapes of a mask and of a bias */

enum { B = 2, H = 2, TQ = 33, TK = 70, PAIRS = B * H * TQ * TK };
static const int64_t full[4] = {B, H, TQ, TK};

/* Returns where pair i of all of them is in a table of that shape. */
static int64_t place_in(const int64_t *dim, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = 3; d >= 0; i /= full[d--]) {
        at += dim[d] == 1 ? 0 : i % full[d] * step;
        step *= dim[d];
    }
    return at;
}

/* Forward with the table's mask and bias, backward for the bias. */
static void run_table(att_ctx *ctx, operands *o, uint8_t *mask, float *bias, const int64_t *dim, float *dbias)
{
    att_attention_spec s = spec_of(o->n);
    att_plan *plan;
    att_attention_grads g = {.size = sizeof g, .dout = o->args.out};
    float *dout = check_numbers(out_count(o->n), 20);
    add_mask(&s, att_mask_boolean);
    add_modifier(&s, att_modifier_bias, 0);
    att_wrap(param_at(&o->args, 0), mask, ATT_BOOL, 4, dim, NULL);
    att_wrap(param_at(&o->args, 1), bias, ATT_F32, 4, dim, NULL);
    att_wrap(dparam_at(&g, 1), dbias, ATT_F32, 4, dim, NULL);
    g.dout.data = dout;
    if (att_plan_new(ctx, &s, &plan) || att_forward(plan, &o->args) || att_backward(plan, &o->args, &g))
        fail_msg("%s", att_error(ctx));
    att_plan_free(plan);
    free(dout);
}

/* A gradient is a chain of the gradients of all pairs that share it: off by 2^-24 of their magnitudes for each. */
static void check_sums(const int64_t *dim, const float *dbias, const float *of_pairs)
{
    static double sum[PAIRS], size[PAIRS], count[PAIRS];
    memset(sum, 0, sizeof sum), memset(size, 0, sizeof size), memset(count, 0, sizeof count);
    for (int64_t i = 0; i < PAIRS; i++) {
        const int64_t at = place_in(dim, i);
        sum[at] += of_pairs[i];
        size[at] += fabs((double)of_pairs[i]);
        count[at]++;
    }
    for (int64_t i = 0; i < dim[0] * dim[1] * dim[2] * dim[3]; i++)
        check_near(sum[i], dbias[i], 0x1p-24 * count[i] * size[i], "[%d, %d, %d, %d]: gradient %d", (int)dim[0],
                   (int)dim[1], (int)dim[2], (int)dim[3], (int)i);
}

static void masks_and_biases_of_each_broadcast_shape_are_those_of_all_pairs(void **state)
{
    (void)state;
    static uint8_t mask[PAIRS], all_mask[PAIRS];
    static float bias[PAIRS], all_bias[PAIRS], dbias[PAIRS], all_dbias[PAIRS];
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int broadcast = 0; broadcast < 16; broadcast += check_step(5)) {
            operands o = make((shape){B, H, 1, TQ, TK, 8, 8}), all = make(o.n);
            int64_t dim[4];
            for (int d = 0; d < 4; d++)
                dim[d] = broadcast >> d & 1 ? 1 : full[d];
            for (uint64_t i = 0; i < PAIRS; i++) {
                mask[i] = check_uniform(30, i) > -0.5f;
                bias[i] = check_uniform(31, i);
            }
            mask[0] = true; /* which may be all there is */
            for (int64_t i = 0; i < PAIRS; i++) {
                all_mask[i] = mask[place_in(dim, i)];
                all_bias[i] = bias[place_in(dim, i)];
            }
            run_table(ctx, &o, mask, bias, dim, dbias);
            run_table(ctx, &all, all_mask, all_bias, full, all_dbias);
            assert_same_bits(all.out, o.out, out_count(o.n));
            check_sums(dim, dbias, all_dbias);
            operands_free(&o), operands_free(&all);
        }
}

/* ---- together */

static void eight_masks_are_the_table_of_pairs_that_all_of_them_keep(void **state)
{
    (void)state;
    enum { HEADS = 2, QUERIES = 90, KEYS = 300 };
    static const int five = 5, seven = 7, wide = 64;
    const att_mask fifth = {.size = sizeof(att_mask), .name = "scattered", .user = &five, .keep = scattered};
    const att_mask seventh = {.size = sizeof(att_mask), .name = "scattered", .user = &seven, .keep = scattered};
    const att_mask stripes = {.size = sizeof(att_mask), .name = "striped", .user = &wide, .keep = striped};
    const att_mask *const others[] = {att_mask_boolean, att_mask_document, own_tiled_mask, &stripes, &fifth, &seventh};
    static uint8_t kept[HEADS * QUERIES * KEYS];
    static int32_t ids[QUERIES + KEYS];
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        operands o = make((shape){1, HEADS, 1, QUERIES, KEYS, 8, 8}), table = make(o.n);
        att_attention_spec s = spec_of(o.n), one = s;
        int64_t lengths[4], pairs = 0;
        choose(BOOLEAN, &o, &s, lengths);
        s.n_stages = 0;
        add_mask(&s, att_mask_causal);
        add_window(&s, 150, 0);
        for (int i = 0; i < COUNT(others); i++)
            add_mask(&s, others[i]);
        s.align = ATT_ALIGN_BOTTOM_RIGHT;
        for (int i = 0; i < QUERIES + KEYS; i++)
            ids[i] = i < QUERIES ? i % 2 : (i - QUERIES) / 250;
        att_wrap(param_at(&o.args, 1), ids, ATT_I32, ATT_DIMS(1, QUERIES), NULL);
        att_wrap(param_at(&o.args, 2), ids + QUERIES, ATT_I32, ATT_DIMS(1, KEYS), NULL);
        att_plan *plan = plan_of(ctx, &s);
        const att_call call = call_of(plan, &o.args);
        att_head_view at;
        for (int64_t h = 0; next_site(&call, &h, &at);)
            for (int64_t i = 0; i < QUERIES * KEYS; i++) {
                uint8_t *keep = &kept[at.head.head * QUERIES * KEYS + i];
                *keep = 1;
                for (int m = 0; m < plan->masks.n; m++) {
                    const att_mask_block pair = att_mask_block_of(plan, m, &at, (att_range){i / KEYS, i / KEYS + 1},
                                                                  (att_range){i % KEYS, i % KEYS + 1});
                    *keep = *keep && plan->masks.list[m].stage.keep(&pair);
                }
                pairs += *keep;
            }
        assert_true(pairs > 100);
        add_mask(&one, att_mask_boolean);
        att_wrap(param_at(&table.args, 0), kept, ATT_BOOL, ATT_DIMS(1, HEADS, QUERIES, KEYS), NULL);
        run(ctx, &s, &o.args);
        run(ctx, &one, &table.args);
        assert_same_bits(table.out, o.out, out_count(o.n));
        assert_same_bits(table.lse, o.lse, HEADS * QUERIES);
        att_plan_free(plan);
        operands_free(&o), operands_free(&table);
    }
}

/* ---- of the caller's own, with tensors of each call */

/* Each query attends to a number of keys before it and to its own, as args say; where no key is marked, to none else.
 */
static bool reaches(const att_mask_block *b)
{
    const int64_t reach = b->param[0].i32[b->q * b->param[0].stride[0]];
    const bool marked = b->param[1].boolean && b->param[1].boolean[b->k * b->param[1].stride[1]];
    return (b->k <= b->q && b->k >= b->q - reach) || marked;
}
static bool none_is_marked(const att_mask_block *whole) { return !whole->param[1].boolean; }
static _Atomic int inspected_spans;
static void reach_span(const att_mask_block *b, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = b->inspected ? b->q + b->queries : b->head->tk;
    inspected_spans += b->inspected;
}
static const att_param_shape reach_params[] = {
    {.name = "reach", .kind = ATT_PARAM_PER_QUERY, .dtype = ATT_I32},
    {.name = "marks", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_BOOL, .optional = true},
};
static const att_mask reach_mask = {.size = sizeof(att_mask),
                                    .name = "reach",
                                    .param = reach_params,
                                    .n_params = 2,
                                    .keep = reaches,
                                    .span = reach_span,
                                    .inspect = none_is_marked};

enum { OWN_B = 3, OWN_T = 150 };

/* The table of pairs that the mask means, [OWN_B, 1, OWN_T, OWN_T]. */
static void fill_table(uint8_t *table, const int32_t *reach, const uint8_t *marks)
{
    for (int64_t i = 0; i < OWN_B * OWN_T * OWN_T; i++) {
        const int64_t b = i / (OWN_T * OWN_T), q = i / OWN_T % OWN_T, k = i % OWN_T;
        table[i] = (k <= q && k >= q - reach[b * OWN_T + q]) || (marks && marks[k]);
    }
}

/* The marks, if there are any, are those of all sequences. */
static void check_own_mask(att_ctx *ctx, const att_mask *mask, bool marked, bool inspects)
{
    static uint8_t table[OWN_B * OWN_T * OWN_T], marks[OWN_T];
    static int32_t reach[OWN_B * OWN_T];
    operands o = make((shape){OWN_B, 2, 1, OWN_T, OWN_T, 8, 8}), expected = make(o.n);
    att_attention_spec s = spec_of(o.n), with_table = s;
    for (int i = 0; i < OWN_B * OWN_T; i++)
        reach[i] = i * 7 % 40;
    for (int k = 0; k < OWN_T; k++)
        marks[k] = k % 37 == 36;
    fill_table(table, reach, marked ? marks : NULL);
    add_mask(&s, mask);
    att_wrap(param_at(&o.args, 0), reach, ATT_I32, ATT_DIMS(OWN_B, OWN_T), NULL);
    if (marked)
        att_wrap(param_at(&o.args, 1), marks, ATT_BOOL, ATT_DIMS(1, OWN_T), NULL);
    add_mask(&with_table, att_mask_boolean);
    att_wrap(param_at(&expected.args, 0), table, ATT_BOOL, ATT_DIMS(OWN_B, 1, OWN_T, OWN_T), NULL);
    inspected_spans = 0;
    run(ctx, &s, &o.args);
    run(ctx, &with_table, &expected.args);
    assert_same_bits(expected.out, o.out, out_count(o.n));
    assert_same_bits(expected.lse, o.lse, OWN_B * 2 * OWN_T);
    assert_int_equal(inspected_spans > 0, inspects);
    operands_free(&o), operands_free(&expected);
}

static void a_mask_of_the_callers_own_is_given_tensors_of_each_call(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        check_own_mask(ctx, &reach_mask, false, true);
        check_own_mask(ctx, &reach_mask, true, false);
    }
    att_ctx *ctx = check_open(NULL, 1);
    att_attention_spec s = spec_of((shape){1, 1, 1, 1, 1, 8, 8});
    add_mask(&s, &reach_mask);
    if (att_verify(ctx, &s))
        fail_msg("%s", att_error(ctx));
    att_close(ctx);
}

/* A program of an older header has a struct without the last field; what lies after it is not the library's. */
static void a_mask_of_an_older_header_has_what_it_knows(void **state)
{
    (void)state;
    union {
        att_mask mask;
        unsigned char bytes[sizeof(att_mask)];
    } old;
    old.mask = reach_mask;
    old.mask.size = offsetof(att_mask, inspect);
    memset(old.bytes + old.mask.size, 0xa5, sizeof old.bytes - old.mask.size);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        check_own_mask(ctx, &old.mask, false, false);
}

/* ---- what is left out is not computed */

static atomic_llong counted; /* pairs that were given to the score */

static void count_tile(const att_score_tile *t)
{
    counted += (long long)t->queries * t->keys;
    weighted_tile(t);
}
static const att_score counting = {.size = sizeof(att_score),
                                   .name = "counting",
                                   .flags = ATT_STAGE_BILINEAR,
                                   .param = &gains,
                                   .n_params = 1,
                                   .formula = weighted,
                                   .derivative = weighted_derivative,
                                   .tile = count_tile};

static att_tensor vector_of(float *x, int64_t n)
{
    att_tensor t;
    att_wrap(&t, x, ATT_F32, ATT_DIMS(1, n), NULL);
    return t;
}

/* Calls with the stages of a spec: as many pairs are computed as the plan says, forward and once more backward. */
static long long pairs_of(att_ctx *ctx, const att_attention_spec *stages, operands *o)
{
    att_attention_spec s = *stages;
    att_plan *plan;
    att_plan_info info = {.size = sizeof info};
    float *gains_of = check_numbers(s.head_dim, 40), *dq = check_numbers(o->n.tq * o->n.head_dim, 41);
    att_attention_grads g = {.size = sizeof g, .dout = o->args.out, .dq = o->args.q};
    float *dout = check_numbers(out_count(o->n), 42);
    s.score = &counting;
    att_attention_args args = o->args;
    args.n_params = 0;
    add_param(&args, vector_of(gains_of, s.head_dim));
    for (int i = 0; i < o->args.n_params; i++)
        add_param(&args, o->args.param[i]);
    g.dout.data = dout;
    g.dq.data = dq;
    if (att_plan_new(ctx, &s, &plan) || att_plan_describe(plan, &args, &info))
        fail_msg("%s", att_error(ctx));
    assert_non_null(strstr(info.backward.why, "counting in tiles, back pair by pair, "));
    const long long said = llround(info.forward.flops / (2 * (double)(s.head_dim + s.value_dim)));
    const double all = (double)o->n.tq * (double)o->n.tk;
    assert_true(fabs(info.skipped - (1 - (double)said / all)) < 1e-12);
    counted = 0;
    assert_int_equal(att_forward(plan, &args), ATT_OK);
    assert_int_equal(counted, said);
    assert_int_equal(att_backward(plan, &args, &g), ATT_OK);
    assert_int_equal(counted, 2 * said);
    att_plan_free(plan);
    free(gains_of), free(dq), free(dout);
    return said;
}

/* Pairs are computed in tiles of 32 keys by at most 64 queries: a row's 21 pairs are among 21 + 63 + 2 x 31. */
static void what_masks_leave_out_is_not_computed(void **state)
{
    (void)state;
    enum { LONGEST = 15 * 128 };
    const int T = LONGEST / check_step(3);
    static const int wide = 64;
    const att_mask without_classifier = {.size = sizeof(att_mask), .name = "striped", .user = &wide, .keep = striped};
    static int32_t ids[LONGEST];
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        operands o = make((shape){1, 1, 1, T, T, 8, 8});
        att_attention_spec s = spec_of(o.n);
        s.align = ATT_ALIGN_TOP_LEFT;
        assert_int_equal(pairs_of(ctx, &s, &o), T * T);
        add_window(&s, 20, 0);
        assert_true(pairs_of(ctx, &s, &o) <= T * (21 + 63 + 2 * 31));
        s.n_stages = 0;
        add_mask(&s, &without_classifier); /* every second stripe of 64 keys, probed */
        assert_int_equal(pairs_of(ctx, &s, &o), T * T / 2);
        s.n_stages = 0;
        add_mask(&s, att_mask_causal);
        const long long causal = pairs_of(ctx, &s, &o);
        assert_true(causal >= T * (T + 1) / 2 && causal <= T * (T + 1) / 2 + T * (63 + 31));
        add_mask(&s, &without_classifier); /* both */
        assert_true(pairs_of(ctx, &s, &o) < causal * 0.55);
        s.n_stages = 0;
        add_mask(&s, att_mask_document);
        for (int i = 0; i < T; i++)
            ids[i] = i / 100;
        att_wrap(param_at(&o.args, 0), ids, ATT_I32, ATT_DIMS(1, T), NULL);
        assert_true(pairs_of(ctx, &s, &o) <= T * (100 + 100 + 2 * 31)); /* at most two documents meet in a panel */
        operands_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(true_in_a_mask_means_attend),
        cmocka_unit_test(positions_are_where_the_alignment_says),
        cmocka_unit_test(masks_and_biases_of_each_broadcast_shape_are_those_of_all_pairs),
        cmocka_unit_test(eight_masks_are_the_table_of_pairs_that_all_of_them_keep),
        cmocka_unit_test(a_mask_of_the_callers_own_is_given_tensors_of_each_call),
        cmocka_unit_test(a_mask_of_an_older_header_has_what_it_knows),
        cmocka_unit_test(what_masks_leave_out_is_not_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
