/* How layers may be called: positions, caches, sources in parts, dropout of weights alone, and calls that are refused.
 */
// labels: portable
#include "attend_nn.h"
#include "attend_util.h"
#include "fixtures/check.h"
#include "fixtures/context.h"

enum { WIDTH = 12, HEADS = 3, TOKENS = 6, SOURCES = 5 };
static const att_rotary_options rotary = {.size = sizeof rotary};

/* ---- helpers */

static att_nn_params *params;
static att_tape *t;
static float *x, *source; /* [TOKENS, WIDTH], [SOURCES, WIDTH] */

static int begin(void **state)
{
    (void)state;
    x = check_numbers(TOKENS * WIDTH, 1), source = check_numbers(SOURCES * WIDTH, 2);
    return att_nn_params_new(ctx, NULL, &params) || att_tape_new(ctx, NULL, &t);
}

static int end(void **state)
{
    (void)state;
    att_tape_free(t);
    att_nn_params_free(params);
    free(x), free(source);
    return 0;
}

static att_var *rows(float *from, int64_t first, int64_t n)
{
    att_tensor v;
    assert_int_equal(att_wrap(&v, from + first * WIDTH, ATT_F32, ATT_DIMS(n, WIDTH), NULL), ATT_OK);
    return att_input(t, &v);
}

static void copy(att_var *y, float *to)
{
    att_tensor v;
    if (att_var_value(t, y, &v))
        fail_msg("%s", att_error(ctx));
    memcpy(to, v.data, (size_t)att_count(&v) * sizeof *to);
}

static double distance(const float *a, const float *b, int n)
{
    double max = 0;
    for (int i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= max)) /* not fmax, on which GCC 12 for AArch64 breaks off here */
            max = d;
    }
    return max;
}

/* ---- positions */

static const att_nn_attention_config rotated = {
    .size = sizeof rotated, .width = WIDTH, .heads = HEADS, .causal = true, .rotary = &rotary};
static const att_nn_attention_config rotated_cross = {
    .size = sizeof rotated_cross, .width = WIDTH, .heads = HEADS, .rotary = &rotary};

/* Rotary encoding is relative: where all tokens start changes results by roundings, some ten of 6e-8. */
static void a_start_moves_queries_and_keys_by_the_same(void **state)
{
    (void)state;
    static const att_nn_order orders[] = {ATT_NN_ORDER_POST_NORM, ATT_NN_ORDER_PRE_NORM, ATT_NN_ORDER_QUERY_NORM,
                                          ATT_NN_ORDER_RESULT_NORM, ATT_NN_ORDER_SANDWICH_NORM};
    static const int64_t offsets[] = {0, TOKENS}, starts[] = {7};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1, .starts = starts};
    for (int i = 0; i < (int)(sizeof orders / sizeof orders[0]); i++) {
        const att_nn_layer_config c = {
            .size = sizeof c, .width = WIDTH, .intermediate = 20, .order = orders[i], .attention = &rotated};
        const att_nn_encoder_layer *l = att_nn_encoder_layer_new(params, att_nn_number("l", i).text, &c);
        float y[2][TOKENS * WIDTH];
        copy(att_nn_encoder_layer_apply(t, l, rows(x, 0, TOKENS), NULL), y[0]);
        copy(att_nn_encoder_layer_apply(t, l, rows(x, 0, TOKENS), ATT_OPTIONS(att_nn_layer_call, .positions = &at)),
             y[1]);
        if (distance(y[0], y[1], TOKENS * WIDTH) > 2e-6)
            fail_msg("order %d: %g apart", i, distance(y[0], y[1], TOKENS * WIDTH));
    }
}

/* ---- windows, scales, and a layer whose attention has no norm */

/* The result of a layer with new parameters, whose numbers follow from the seed and their names */
static void apply_new(const att_nn_attention_config *c, float *y)
{
    att_nn_params *p;
    assert_int_equal(att_nn_params_new(ctx, NULL, &p), ATT_OK);
    copy(att_nn_attention_apply(t, att_nn_attention_new(p, "l", c), rows(x, 0, TOKENS), NULL), y);
    att_tape_reset(t);
    att_nn_params_free(p);
}

static void a_window_and_a_scale_have_the_bits_of_a_plan_with_them(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        const att_stage stage[] = {{.mask = att_mask_window, .value = {1, 1}}, {.mask = att_mask_causal}};
        const att_attention_spec spec = {.size = sizeof spec,
                                         .heads = HEADS,
                                         .head_dim = WIDTH / HEADS,
                                         .scale = 0.75f,
                                         .stage = stage,
                                         .n_stages = 1 + causal,
                                         .align = ATT_ALIGN_BOTTOM_RIGHT};
        att_nn_attention_config c = {
            .size = sizeof c, .width = WIDTH, .heads = HEADS, .causal = causal, .window = 1, .scale = 0.75f};
        float y[3][TOKENS * WIDTH];
        att_plan *plan;
        apply_new(&c, y[0]);
        c.scale = 0;
        apply_new(&c, y[1]);
        assert_true(distance(y[0], y[1], TOKENS * WIDTH) > 1e-3);
        assert_int_equal(att_plan_new(ctx, &spec, &plan), ATT_OK);
        apply_new(ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .plan = plan), y[2]);
        assert_memory_equal(y[0], y[2], sizeof y[0]);
        att_plan_free(plan);
    }
}

static void a_layer_without_attention_norm_adds_attention_to_what_it_gets(void **state)
{
    (void)state;
    static const att_nn_order orders[] = {ATT_NN_ORDER_PRE_NORM, ATT_NN_ORDER_SANDWICH_NORM};
    for (int i = 0; i < 2; i++) {
        const att_nn_layer_config c = {.size = sizeof c,
                                       .width = WIDTH,
                                       .heads = HEADS,
                                       .intermediate = 20,
                                       .order = orders[i],
                                       .norm = ATT_NN_NORM_LAYER_NO_BIAS,
                                       .no_attention_norm = true};
        const att_nn_encoder_layer *l = att_nn_encoder_layer_new(params, att_nn_number("l", i).text, &c);
        float layer[TOKENS * WIDTH], parts[TOKENS * WIDTH];
        assert_null(l->attention_norm);
        assert_null(l->feed_forward_norm->bias);
        copy(att_nn_encoder_layer_apply(t, l, rows(x, 0, TOKENS), NULL), layer);
        att_var *in = rows(x, 0, TOKENS), *y = att_nn_attention_apply(t, l->attention, in, NULL);
        y = att_add(t, l->attention_result_norm ? att_nn_norm_apply(t, l->attention_result_norm, y) : y, in);
        att_var *fed = att_nn_norm_apply(t, l->feed_forward_norm, y);
        fed = att_nn_feed_forward_apply(t, l->feed_forward, fed, NULL, NULL);
        fed = l->feed_forward_result_norm ? att_nn_norm_apply(t, l->feed_forward_result_norm, fed) : fed;
        copy(att_add(t, fed, y), parts);
        assert_true(distance(layer, parts, TOKENS * WIDTH) < 1e-6); /* a sum of order 1, added in another order */
    }
}

/* ---- decoding with a source, both rotated */

static void a_decoder_layer_with_caches_has_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const att_nn_order orders[] = {ATT_NN_ORDER_POST_NORM, ATT_NN_ORDER_PRE_NORM, ATT_NN_ORDER_QUERY_NORM,
                                          ATT_NN_ORDER_RESULT_NORM, ATT_NN_ORDER_SANDWICH_NORM};
    static const int64_t offsets[] = {0, SOURCES}, parts[][2] = {{0, 2}, {0, SOURCES - 2}};
    const att_attention_args cross = {
        .size = sizeof cross, .n_sequences = 1, .q_offsets = (const int64_t[]){0, 1}, .k_offsets = offsets};
    for (int i = 0; i < (int)(sizeof orders / sizeof orders[0]); i++) {
        const att_nn_layer_config c = {.size = sizeof c,
                                       .width = WIDTH,
                                       .intermediate = 20,
                                       .order = orders[i],
                                       .attention = &rotated,
                                       .cross = &rotated_cross};
        const att_nn_decoder_layer *l = att_nn_decoder_layer_new(params, att_nn_number("d", i).text, &c);
        float whole[TOKENS * WIDTH], steps[TOKENS * WIDTH];
        copy(att_nn_decoder_layer_apply(t, l, rows(x, 0, TOKENS),
                                        ATT_OPTIONS(att_nn_layer_call, .source = rows(source, 0, SOURCES))),
             whole);
        att_cache *cache, *memory;
        assert_int_equal(att_cache_new(l->attention->plan, 1, &cache), ATT_OK);
        assert_int_equal(att_cache_new(l->cross->plan, 1, &memory), ATT_OK);
        assert_int_equal(att_nn_attention_cache_source(t, l->cross, rows(source, 0, 2), parts[0], memory), ATT_OK);
        assert_int_equal(att_nn_attention_cache_source(t, l->cross, rows(source, 2, SOURCES - 2), parts[1], memory),
                         ATT_OK);
        for (int n = 0; n < TOKENS; n++)
            copy(att_nn_decoder_layer_apply(
                     t, l, rows(x, n, 1),
                     ATT_OPTIONS(att_nn_layer_call, .cache = cache, .memory = memory, .cross = n % 2 ? &cross : NULL)),
                 steps + n * WIDTH);
        assert_memory_equal(whole, steps, sizeof whole);
        att_cache_free(cache);
        att_cache_free(memory);
    }
}

/* A query that attends to a source's cache stands where its caller says. */
static void rotated_queries_of_a_source_need_positions(void **state)
{
    (void)state;
    const att_nn_attention *l = att_nn_attention_new(params, "a", &rotated_cross);
    static const int64_t offsets[] = {0, SOURCES};
    att_cache *memory;
    att_tensor v;
    assert_int_equal(att_cache_new(l->plan, 1, &memory), ATT_OK);
    assert_int_equal(att_nn_attention_cache_source(t, l, rows(source, 0, SOURCES), offsets, memory), ATT_OK);
    assert_null(att_nn_attention_apply(t, l, rows(x, 0, 1),
                                       ATT_OPTIONS(att_nn_attention_call, .cache = memory, .keep_cache = true)));
    assert_int_equal(att_var_value(t, NULL, &v), ATT_ERR_ARGUMENT);
    check_message(ctx, "positions is NULL");
    att_cache_free(memory);
}

/* ---- a learned score from f16, with a cache */

static att_status load_f16(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    (void)name;
    return att_wrap(value, user, ATT_F16, rank, dim, NULL);
}

static void a_learned_score_of_f16_has_a_cache(void **state)
{
    (void)state;
    static uint16_t numbers[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        numbers[i] = (uint16_t)(0x3000 + i % 5 * 64 + (i % 3 ? 0x8000 : 0)); /* 1/8 to 1/6, of either sign */
    att_plan *plan;
    att_nn_params *loaded;
    att_cache *cache;
    assert_int_equal(att_plan_new(ctx,
                                  ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = WIDTH / HEADS,
                                              .score = att_score_general, ATT_STAGES({.mask = att_mask_causal}),
                                              .align = ATT_ALIGN_BOTTOM_RIGHT),
                                  &plan),
                     ATT_OK);
    assert_int_equal(
        att_nn_params_new(ctx, ATT_OPTIONS(att_nn_params_config, .load = load_f16, .user = numbers), &loaded), ATT_OK);
    const att_nn_attention *l =
        att_nn_attention_new(loaded, "a", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .plan = plan));
    float whole[TOKENS * WIDTH], steps[TOKENS * WIDTH];
    copy(att_nn_attention_apply(t, l, rows(x, 0, TOKENS), NULL), whole);
    assert_int_equal(att_cache_new(plan, 1, &cache), ATT_OK);
    for (int n = 0; n < TOKENS; n++)
        copy(att_nn_attention_apply(t, l, rows(x, n, 1), ATT_OPTIONS(att_nn_attention_call, .cache = cache)),
             steps + n * WIDTH);
    assert_memory_equal(whole, steps, sizeof whole);
    att_cache_free(cache);
    att_nn_params_free(loaded);
    att_plan_free(plan);
}

/* ---- parameters that layers share */

static void layers_share_a_table_of_relative_positions(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, TOKENS}, dim[] = {HEADS, 8};
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_NORMAL, .value = 1};
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx,
                                  ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = WIDTH / HEADS,
                                              ATT_STAGES({.modifier = att_modifier_relative, .value = {16}}),
                                              .align = ATT_ALIGN_TOP_LEFT),
                                  &plan),
                     ATT_OK);
    att_param *table = att_nn_params_request(params, "shared", "table", 2, dim, &init);
    att_nn_attention_config c = {.size = sizeof c, .width = WIDTH, .plan = plan};
    const att_nn_attention *alone = att_nn_attention_new(params, "l", &c);
    c.shared = &table;
    c.n_shared = 1;
    const att_nn_attention *l = att_nn_attention_new(params, "l", &c); /* with the same weights */
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = 1, .q_offsets = offsets, .param = att_param_value(table), .n_params = 1};
    float y[2][TOKENS * WIDTH];
    copy(att_nn_attention_apply(t, l, rows(x, 0, TOKENS), NULL), y[0]);
    copy(att_nn_attention_apply(t, alone, rows(x, 0, TOKENS), ATT_OPTIONS(att_nn_attention_call, .args = &args)), y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    c.n_shared = 2;
    assert_null(att_nn_attention_new(params, "l", &c));
    assert_int_equal(att_nn_params_status(params), ATT_ERR_ARGUMENT);
    check_message(ctx, "\"l\": n_shared is 2, expected a pointer and 0..1");
    att_plan_free(plan);
}

/* ---- dropout */

static void attention_weights_are_dropped_where_nothing_else_is(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, TOKENS};
    static const uint32_t ids[] = {1};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
    att_nn_dropout dropout = {.size = sizeof dropout, .seed = 1, .at = &at, .sequence_ids = ids};
    const att_nn_attention *l = att_nn_attention_new(
        params, "w", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .heads = HEADS, .dropout = 0.5f));
    float y[2][TOKENS * WIDTH];
    copy(att_nn_attention_apply(t, l, rows(x, 0, TOKENS), NULL), y[0]);
    copy(att_nn_attention_apply(t, l, rows(x, 0, TOKENS), ATT_OPTIONS(att_nn_attention_call, .dropout = &dropout)),
         y[1]);
    assert_true(distance(y[0], y[1], TOKENS * WIDTH) > 1e-3);
    dropout.p = NAN;
    att_tensor v;
    assert_int_equal(att_var_value(t, att_nn_dropout_apply(t, &dropout, 1, rows(x, 0, TOKENS), NULL), &v),
                     ATT_ERR_ARGUMENT);
}

/* ---- what is refused */

/* The plan of a call has another rate than the layer's: the bits of a layer of that rate. */
static void a_call_may_have_a_rate_of_its_own(void **state)
{
    (void)state;
    static const uint32_t ids[] = {7, 9};
    const int64_t offsets[] = {0, 4, TOKENS};
    const att_attention_spec spec = {
        .size = sizeof spec, .heads = HEADS, .kv_heads = HEADS, .head_dim = WIDTH / HEADS, .dropout = 0.5f};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 2};
    const att_nn_dropout dropout = {.size = sizeof dropout, .p = 0.25f, .seed = 3, .at = &at, .sequence_ids = ids};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 2, .q_offsets = offsets};
    att_nn_attention_config c = {.size = sizeof c, .width = WIDTH, .heads = HEADS, .no_output = true, .dropout = 0.5f};
    att_nn_attention_call call = {.size = sizeof call, .args = &args, .dropout = &dropout};
    float by_layer[TOKENS * WIDTH], by_call[TOKENS * WIDTH];
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, &spec, &plan), ATT_OK);
    copy(att_nn_attention_apply(t, att_nn_attention_new(params, "l", &c), rows(x, 0, TOKENS), &call), by_layer);
    c.dropout = 0;
    const att_nn_attention *plain = att_nn_attention_new(params, "l", &c);
    copy(att_nn_attention_apply(t, plain, rows(x, 0, TOKENS), &call), by_call);
    assert_true(distance(by_layer, by_call, TOKENS * WIDTH) > 1e-3);
    call.plan = plan;
    copy(att_nn_attention_apply(t, plain, rows(x, 0, TOKENS), &call), by_call);
    assert_memory_equal(by_layer, by_call, sizeof by_layer);
    att_tape_reset(t);
    att_plan_free(plan);
}

static void activations_are_dropped_between_both_matrices(void **state)
{
    (void)state;
    static const uint32_t ids[] = {7};
    const int64_t offsets[] = {0, TOKENS};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
    const att_nn_dropout dropout = {.size = sizeof dropout, .p = 0.5f, .seed = 3, .at = &at, .sequence_ids = ids};
    const att_nn_layer_config c = {
        .size = sizeof c, .width = WIDTH, .heads = HEADS, .intermediate = 8, .inner_dropout = true};
    const att_nn_feed_forward *l = att_nn_feed_forward_new(params, "f", &c);
    float y[TOKENS * WIDTH], expected[TOKENS * WIDTH];
    copy(att_nn_feed_forward_apply(t, l, rows(x, 0, TOKENS), NULL, &dropout), y);
    att_var *h = att_nn_linear_apply(t, l->inner, rows(x, 0, TOKENS), ATT_ACTIVATION_RELU, NULL);
    h = att_nn_dropout_apply(t, &dropout, l->inner_dropout_id, h, NULL);
    h = att_nn_linear_apply(t, l->outer, h, ATT_ACTIVATION_IDENTITY, NULL);
    copy(att_nn_dropout_apply(t, &dropout, l->dropout_id, h, NULL), expected);
    assert_memory_equal(y, expected, sizeof y);
    assert_true(l->inner_dropout_id != l->dropout_id);
}

static void parameters_that_are_not_there_are_named(void **state)
{
    (void)state;
    const att_nn_attention *l =
        att_nn_attention_new(params, "p", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .heads = HEADS));
    const att_attention_args args = {.size = sizeof args, .n_params = 1};
    att_tensor v;
    att_var *y = att_nn_attention_apply(t, l, rows(x, 0, TOKENS), ATT_OPTIONS(att_nn_attention_call, .args = &args));
    assert_int_equal(att_var_value(t, y, &v), ATT_ERR_ARGUMENT);
    check_message(ctx, "args.param is NULL");
}

static void values_that_no_enum_has_are_refused(void **state)
{
    (void)state;
    const att_nn_layer_config
        order = {.size = sizeof order, .width = 8, .heads = 2, .intermediate = 8, .order = (att_nn_order)9},
        activation = {.size = sizeof activation,
                      .width = 8,
                      .heads = 2,
                      .intermediate = 8,
                      .activation = (att_activation)77},
        eps = {.size = sizeof eps, .width = 8, .heads = 2, .intermediate = 8, .eps = -1},
        wide = {.size = sizeof wide, .width = INT64_MAX, .heads = 1, .intermediate = 8},
        no_norm = {.size = sizeof no_norm, .width = 8, .heads = 2, .intermediate = 8, .no_attention_norm = true};
    const struct {
        const att_nn_layer_config *c;
        const char *words;
    } bad[] = {{&order, "order is 9"},
               {&activation, "activation is 77"},
               {&eps, "eps is -1"},
               {&wide, "width is 9223372036854775807"},
               {&no_norm, "no_attention_norm is true, but order is 0"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        att_nn_params *p;
        assert_int_equal(att_nn_params_new(ctx, NULL, &p), ATT_OK);
        assert_null(att_nn_encoder_layer_new(p, "l", bad[i].c));
        assert_int_equal(att_nn_params_status(p), ATT_ERR_ARGUMENT);
        check_message(ctx, bad[i].words);
        att_nn_params_free(p);
    }
    assert_null(
        att_nn_conv_new(params, "c", ATT_OPTIONS(att_nn_conv_config, .in = INT64_MAX, .out = 1, .kernel = {1, 1})));
    assert_int_equal(att_nn_params_status(params), ATT_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_start_moves_queries_and_keys_by_the_same, begin, end),
        cmocka_unit_test_setup_teardown(a_window_and_a_scale_have_the_bits_of_a_plan_with_them, begin, end),
        cmocka_unit_test_setup_teardown(a_layer_without_attention_norm_adds_attention_to_what_it_gets, begin, end),
        cmocka_unit_test_setup_teardown(a_decoder_layer_with_caches_has_the_bits_of_the_full_pass, begin, end),
        cmocka_unit_test_setup_teardown(rotated_queries_of_a_source_need_positions, begin, end),
        cmocka_unit_test_setup_teardown(a_learned_score_of_f16_has_a_cache, begin, end),
        cmocka_unit_test_setup_teardown(layers_share_a_table_of_relative_positions, begin, end),
        cmocka_unit_test_setup_teardown(attention_weights_are_dropped_where_nothing_else_is, begin, end),
        cmocka_unit_test_setup_teardown(a_call_may_have_a_rate_of_its_own, begin, end),
        cmocka_unit_test_setup_teardown(activations_are_dropped_between_both_matrices, begin, end),
        cmocka_unit_test_setup_teardown(parameters_that_are_not_there_are_named, begin, end),
        cmocka_unit_test_setup_teardown(values_that_no_enum_has_are_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
