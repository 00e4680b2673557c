/* Traces of passes that no model has: long ones, in several calls, with parameters, of three sides; and those that are
 * not what their table states */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "model/trace.h"

enum { HEADS = 2, DIM = 4, HIDDEN = HEADS * DIM, QUERIES = 150, KEYS = 140, MOST = QUERIES * KEYS };

static void need(att_status s)
{
    if (s)
        fail_msg("%s", att_error(ctx));
}

/* Numbers of order 1 that follow from the seed */
static float *numbers(int64_t n, uint32_t seed)
{
    static float x[4][MOST];
    static int next;
    float *y = x[next++ % 4];
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        y[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    return y;
}

static att_var *rows(att_tape *t, int64_t n, int64_t heads, uint32_t seed)
{
    att_tensor x;
    const int64_t dim[] = {n, heads * DIM};
    att_wrap(&x, numbers(n * heads * DIM, seed), ATT_F32, 2, dim, NULL);
    return att_split_heads(t, att_scale(t, att_constant(t, &x), 1), heads);
}

/* Computes one attention in a scope, of queries [first, first + count) of all. */
static att_var *attend(att_tape *t, const char *scope, const att_plan *plan, int64_t first, int64_t count, att_param *w)
{
    const int64_t q_offsets[] = {0, count}, k_offsets[] = {0, KEYS};
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = 1, .q_offsets = q_offsets, .k_offsets = k_offsets};
    att_var *param[] = {w ? att_parameter(t, w) : NULL};
    const att_attend_params params = {.size = sizeof params, .param = param, .n_params = w != NULL};
    att_scope s = att_scope_begin(t, scope);
    att_var *q = att_slice(t, rows(t, QUERIES, HEADS, 1), 0, first, count);
    return att_scope_end(t, s,
                         att_attend(t, plan, q, rows(t, KEYS, HEADS, 2), rows(t, KEYS, HEADS, 3), &args, &params));
}

typedef struct fake {
    const att_plan *plan;
    att_param *weight;
    const char *scope, *states; /* of the attention, and of hidden states; or NULL */
    int64_t parts[4];           /* queries of each call, up to 0 */
} fake;

static att_var *apply(const void *self, att_tape *t)
{
    const fake *f = self;
    att_var *y = NULL;
    int64_t first = 0;
    for (int i = 0; i < 4 && f->parts[i]; first += f->parts[i++])
        y = attend(t, f->scope, f->plan, first, f->parts[i], f->weight);
    if (!f->states)
        return y;
    att_scope s = att_scope_begin(t, f->states);
    return att_scope_end(t, s, att_merge_heads(t, rows(t, QUERIES, HEADS, 4)));
}

static att_plan *plan_of(att_ctx *c, const att_score *score)
{
    att_plan *p;
    const att_stage causal = {.mask = att_mask_causal};
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = HEADS,
                                     .head_dim = DIM,
                                     .score = score,
                                     .stage = &causal,
                                     .n_stages = score ? 0 : 1,
                                     .align = ATT_ALIGN_BOTTOM_RIGHT};
    need(att_plan_new(c, &spec, &p));
    return p;
}

static att_trace_pass pass_of(att_ctx *c)
{
    return (att_trace_pass){.ctx = c,
                            .caller = "fake",
                            .part = {{.side = ATT_TRACE_SIDE_CROSS,
                                      .layers = 1,
                                      .heads = HEADS,
                                      .head_dim = DIM,
                                      .queries = QUERIES,
                                      .keys = KEYS,
                                      .scope = "decoder/cross"}},
                            .parts = 1,
                            .info = {.source = KEYS, .target = QUERIES, .output_rows = QUERIES, .outputs = HIDDEN},
                            .apply = apply};
}

/* ---- long passes */

/* The weights of both heads and their mean, a thumbnail and the last result, from a context of some threads */
static void read_all(int threads, const int64_t parts[4], float *w, uint8_t *thumbnail, float *result)
{
    att_ctx *c = check_open(NULL, threads);
    att_plan *plan = plan_of(c, NULL);
    fake f = {.plan = plan, .scope = "decoder/cross"};
    memcpy(f.parts, parts, sizeof f.parts);
    const att_trace_pass pass = pass_of(c);
    att_trace *t;
    float scale;
    need(att_trace_make(&pass, &f, sizeof f, NULL, &t));
    for (int64_t h = -1; h < HEADS; h++)
        need(att_trace_weights(t, 0, h, 0, QUERIES, w + (h + 1) * QUERIES * KEYS));
    need(att_trace_pooled(t, 0, 1, 2, 7, thumbnail, &scale));
    need(att_trace_output(t, -1, 0, QUERIES, result));
    att_trace_free(t);
    att_plan_free(plan);
    att_close(c);
}

static void rows_of_long_passes_have_the_bits_of_one_call_for_any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t whole[4] = {QUERIES};
    static float w[2][3 * MOST], result[2][QUERIES * HIDDEN], expected[MOST], row[KEYS];
    uint8_t thumbnail[2][14];
    read_all(1, whole, w[0], thumbnail[0], result[0]);
    read_all(3, whole, w[1], thumbnail[1], result[1]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(thumbnail[0], thumbnail[1], sizeof thumbnail[0]);
    assert_memory_equal(result[0], result[1], sizeof result[0]);
    att_plan *plan = plan_of(ctx, NULL);
    const int64_t q_offsets[] = {0, QUERIES}, k_offsets[] = {0, KEYS};
    att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = q_offsets, .k_offsets = k_offsets};
    att_wrap(&args.q, numbers(QUERIES * HIDDEN, 1), ATT_F32, 3, (const int64_t[]){QUERIES, HEADS, DIM}, NULL);
    att_wrap(&args.k, numbers(KEYS * HIDDEN, 2), ATT_F32, 3, (const int64_t[]){KEYS, HEADS, DIM}, NULL);
    for (int64_t h = 0; h < HEADS; h++) {
        need(att_weights(plan, &args, 0, h, 0, QUERIES, expected));
        assert_memory_equal(w[0] + (h + 1) * MOST, expected, sizeof expected);
        need(att_weights(plan, &args, 0, h, 101, 1, row));
        assert_memory_equal(row, expected + 101 * KEYS, sizeof row);
    }
    float cell = 0, largest = 0;
    for (int i = 0; i < MOST; i++)
        largest = fmaxf(largest, expected[i]);
    for (int q = QUERIES / 2; q < QUERIES; q++)
        for (int k = 3 * KEYS / 7; k < 4 * KEYS / 7; k++)
            cell = fmaxf(cell, expected[q * KEYS + k]);
    assert_int_equal(thumbnail[0][7 + 3], (int)lrintf(255 * (cell / largest)));
    att_plan_free(plan);
}

/* Additive attention of a recurrent decoder: w^T tanh(q + k), each call with further queries */
static void attention_in_several_calls_with_a_parameter_is_one(void **state)
{
    (void)state;
    static float w[MOST];
    static float q[QUERIES * HIDDEN], k[KEYS * HIDDEN];
    float weight[HEADS * DIM];
    att_tensor value;
    att_param *param;
    att_trace *t;
    memcpy(weight, numbers(HEADS * DIM, 9), sizeof weight);
    memcpy(q, numbers(QUERIES * HIDDEN, 1), sizeof q);
    memcpy(k, numbers(KEYS * HIDDEN, 2), sizeof k);
    att_wrap(&value, weight, ATT_F32, 2, (const int64_t[]){HEADS, DIM}, NULL);
    need(att_param_new(ctx, &value, &param));
    att_plan *plan = plan_of(ctx, att_score_additive);
    const fake f = {.plan = plan, .weight = param, .scope = "decoder/cross", .parts = {1, 99, 50}};
    att_trace_pass pass = pass_of(ctx);
    pass.part[0].params = HEADS * DIM;
    pass.part[0].score = "additive";
    pass.info.output_rows = 50; /* of the last call */
    need(att_trace_make(&pass, &f, sizeof f, NULL, &t));
    for (int h = 0; h < HEADS; h++) {
        need(att_trace_weights(t, 0, h, 0, QUERIES, w));
        for (int i = 0; i < QUERIES; i += 7) {
            double score[KEYS], sum = 0;
            for (int j = 0; j < KEYS; j++) {
                score[j] = 0;
                for (int d = 0; d < DIM; d++)
                    score[j] += (double)weight[h * DIM + d] *
                                tanh((double)q[(i * HEADS + h) * DIM + d] + (double)k[(j * HEADS + h) * DIM + d]);
                sum += exp(score[j]);
            }
            for (int j = 0; j < KEYS; j++)
                assert_true(fabs((double)w[i * KEYS + j] - exp(score[j]) / sum) < 1e-6);
        }
    }
    att_trace_free(t);
    att_plan_free(plan);
    att_param_free(param);
}

/* ---- three sides */

static void layers_of_a_decoder_and_of_its_cross_attention_take_turns(void **state)
{
    (void)state;
    const fake f = {0};
    static const struct {
        att_trace_side side;
        int64_t layer;
        const char *scope;
    } order[] = {{ATT_TRACE_SIDE_ENCODER, 0, "encoder/layer.0/attention"},
                 {ATT_TRACE_SIDE_ENCODER, 1, "encoder/layer.1/attention"},
                 {ATT_TRACE_SIDE_ENCODER, 2, "encoder/layer.2/attention"},
                 {ATT_TRACE_SIDE_DECODER, 0, "decoder/layer.0/attention"},
                 {ATT_TRACE_SIDE_CROSS, 0, "decoder/layer.0/cross"},
                 {ATT_TRACE_SIDE_DECODER, 1, "decoder/layer.1/attention"},
                 {ATT_TRACE_SIDE_CROSS, 1, "decoder/layer.1/cross"}};
    att_trace_pass pass = pass_of(ctx);
    att_trace *t;
    pass.part[2] = pass.part[1] = pass.part[0];
    pass.parts = 3;
    for (int i = 0; i < 3; i++) {
        pass.part[i].side = (att_trace_side)i;
        pass.part[i].layers = i == 0 ? 3 : 2;
        pass.part[i].scope = NULL;
    }
    need(att_trace_make(&pass, &f, sizeof f, ATT_OPTIONS(att_trace_options, .describe_only = true), &t));
    att_trace_info info = {.size = sizeof info};
    need(att_trace_describe(t, &info));
    assert_int_equal(info.attentions, 7);
    for (int i = 0; i < 7; i++) {
        att_trace_attention_info a = {.size = sizeof a};
        need(att_trace_attention(t, i, &a));
        assert_int_equal(a.side, order[i].side);
        assert_int_equal(a.layer, order[i].layer);
        assert_string_equal(a.scope, order[i].scope);
        assert_int_equal(att_trace_find(t, order[i].side, order[i].layer), i);
    }
    att_trace_free(t);
}

/* ---- a table that is wrong */

static int freed;
static void count_free(const void *self)
{
    (void)self;
    freed++;
}

static void refuse(const att_trace_pass *pass, const fake *f, const char *words)
{
    att_trace *t;
    const int before = freed;
    att_trace_pass p = *pass;
    p.free = count_free;
    assert_int_equal(att_trace_make(&p, f, sizeof *f, ATT_OPTIONS(att_trace_options, .hidden = true), &t),
                     ATT_ERR_UNSUPPORTED);
    check_message(ctx, words);
    assert_null(t);
    assert_int_equal(freed, before + 1);
}

static void a_pass_that_is_not_what_its_table_states_is_an_error(void **state)
{
    (void)state;
    att_plan *plan = plan_of(ctx, NULL);
    const fake good = {.plan = plan, .scope = "decoder/cross", .parts = {QUERIES}};
    const att_trace_pass right = pass_of(ctx);
    fake f = good;
    att_trace_pass p = right;
    f.scope = "decoder/layer.0/cross";
    refuse(&p, &f, "decoder/layer.0/cross: trace: this attention is not in the model's table");
    f = good;
    f.parts[0] = 100;
    p.info.output_rows = 100;
    refuse(&p, &f, "fake: the pass had 100 of 150 queries in decoder/cross");
    p = right;
    p.part[0].queries = QUERIES - 1;
    refuse(&p, &good, "decoder/cross: trace: this attention has other shapes than the model's table");
    p = right;
    p.part[0].heads = 1;
    refuse(&p, &good, "other shapes");
    p = right;
    p.part[0].params = 3;
    refuse(&p, &good, "parameters of attention are not those of the model's table");
    p = right;
    p.info.outputs = HIDDEN + 1;
    refuse(&p, &good, "fake: the pass has a result of 1200 numbers, not 1350");
    p = right;
    p.part[0].first_key = 1;
    refuse(&p, &good, "fake: there are 140 keys of 140 tokens");
    p = right;
    p.part[0].hidden = HIDDEN;
    refuse(&p, &good, "fake: the pass had hidden states of 0 layers, not 2");
    f = good;
    f.states = "decoder/layer.0";
    refuse(&p, &f, "fake: the pass had hidden states of 1 layers, not 2");
    p.part[0].hidden = HIDDEN + 1;
    refuse(&p, &f, "the hidden states in decoder/layer.0 are 1200 numbers, not 1350");
    att_plan_free(plan);
}

static void more_memory_than_can_be_addressed_is_refused(void **state)
{
    (void)state;
    const fake f = {0};
    for (int only = 0; only < 2; only++) {
        att_trace_pass p = pass_of(ctx);
        att_trace *t;
        p.part[0].queries = p.info.target = INT64_MAX / 2;
        assert_int_equal(att_trace_make(&p, &f, sizeof f, ATT_OPTIONS(att_trace_options, .describe_only = only), &t),
                         ATT_ERR_MEMORY);
        check_message(ctx, "fake: this is more memory than can be addressed");
        assert_null(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_long_passes_have_the_bits_of_one_call_for_any_number_of_threads),
        cmocka_unit_test(attention_in_several_calls_with_a_parameter_is_one),
        cmocka_unit_test(layers_of_a_decoder_and_of_its_cross_attention_take_turns),
        cmocka_unit_test(a_pass_that_is_not_what_its_table_states_is_an_error),
        cmocka_unit_test(more_memory_than_can_be_addressed_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
