/* Parameters by name: loading, initialization, tied weights, the first error; layers that are cached, that have scores
 * with parameters, and that cannot be made. */
// labels: portable
#include "attend_nn.h"
#include "attend_util.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"

enum { WIDTH = 12, HEADS = 3, TOKENS = 7 };

/* ---- loading */

typedef struct stored {
    const char *name;
    att_tensor value;
} stored;

/* From user, [2] that are stored */
static att_status load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    const stored *s = user;
    (void)rank, (void)dim;
    for (int i = 0; i < 2; i++)
        if (!strcmp(s[i].name, name)) {
            *value = s[i].value;
            return ATT_OK;
        }
    return att_fail(ctx, ATT_ERR_FORMAT, "there is no %s", name);
}

static att_nn_params *params_of(att_nn_params_config c)
{
    att_nn_params *p;
    c.size = sizeof c;
    assert_int_equal(att_nn_params_new(ctx, &c, &p), ATT_OK);
    return p;
}

static void loaded_parameters_are_views_or_copies_that_learn(void **state)
{
    (void)state;
    float weight[6] = {1, 2, 3, 4, 5, 6};
    uint16_t bias[2] = {0x3c00, 0x4000}; /* 1 and 2 in f16 */
    stored s[2] = {{"l.weight", {0}}, {"l.bias", {0}}};
    assert_int_equal(att_wrap(&s[0].value, weight, ATT_F32, ATT_DIMS(2, 3), NULL), ATT_OK);
    assert_int_equal(att_wrap(&s[1].value, bias, ATT_F16, ATT_DIMS(1, 2), NULL), ATT_OK); /* will do for [2] */
    for (int trainable = 0; trainable < 2; trainable++) {
        att_nn_params *p = params_of((att_nn_params_config){.load = load, .user = s, .trainable = trainable});
        const att_nn_linear *l = att_nn_linear_new(p, "l", 3, 2, NULL);
        assert_non_null(l);
        assert_int_equal(att_nn_params_count(p), 2);
        const att_tensor *w = att_param_value(l->weight), *b = att_param_value(l->bias);
        assert_int_equal(b->rank, 1);
        assert_true((w->data == weight) == !trainable);
        assert_int_equal(b->dtype, trainable ? ATT_F32 : ATT_F16);
        assert_memory_equal(w->data, weight, sizeof weight);
        if (trainable)
            assert_true(((const float *)b->data)[1] == 2.0f);
        const char *name;
        assert_ptr_equal(att_nn_params_at(p, 1, &name), l->bias);
        assert_string_equal(name, "l.bias");
        assert_ptr_equal(att_nn_params_find(p, "l.weight"), l->weight);
        assert_null(att_nn_params_find(p, "l"));
        assert_null(att_nn_params_at(p, 2, &name));
        assert_null(name);
        att_nn_params_free(p);
    }
}

static void the_first_error_stays_with_its_sentence(void **state)
{
    (void)state;
    float weight[6] = {0};
    int32_t integers[2] = {0};
    stored s[2] = {{"a.weight", {0}}, {"b.weight", {0}}};
    assert_int_equal(att_wrap(&s[0].value, weight, ATT_F32, ATT_DIMS(3, 2), NULL), ATT_OK);
    assert_int_equal(att_wrap(&s[1].value, integers, ATT_I32, ATT_DIMS(1, 2), NULL), ATT_OK);
    const struct {
        const char *name;
        int64_t in, out;
        att_status status;
        const char *words;
    } bad[] = {
        {"a", 3, 2, ATT_ERR_SHAPE, "\"a.weight\" is [3, 2] but must be [2, 3]"},
        {"b", 2, 1, ATT_ERR_DTYPE, "\"b.weight\" is i32, not f32, f16, bf16 or quantized"},
        {"c", 2, 1, ATT_ERR_FORMAT, "there is no c.weight"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        att_nn_params *p = params_of((att_nn_params_config){.load = load, .user = s});
        assert_null(att_nn_linear_new(p, bad[i].name, bad[i].in, bad[i].out,
                                      ATT_OPTIONS(att_nn_linear_options, .no_bias = true)));
        assert_null(
            att_nn_linear_new(p, "d", 1, 1, ATT_OPTIONS(att_nn_linear_options, .no_bias = true))); /* another one */
        att_wrap(NULL, NULL, ATT_F32, 0, NULL, NULL);
        assert_int_equal(att_nn_params_status(p), bad[i].status);
        check_message(ctx, bad[i].words);
        att_nn_params_free(p);
    }
}

static void configurations_that_fit_nothing_are_refused(void **state)
{
    (void)state;
    static char long_name[200];
    memset(long_name, 'n', sizeof long_name - 1);
    const struct {
        const char *name;
        att_nn_attention_config c;
        const char *words;
    } bad[] = {
        {"l", {.width = 12, .heads = 5}, "\"l\": heads is 5, expected a divisor of width, 12"},
        {"l", {.width = 12}, "heads is 0"},
        {"l",
         {.width = 12, .heads = 3, .head_dim = 2, .no_output = true},
         "no_output, but heads have 6 features together and width is 12"},
        {"l", {.width = 12, .heads = 4, .kv_heads = 3}, "spec.kv_heads = 3 does not divide spec.heads = 4"},
        {"l", {.width = -12, .heads = 4, .head_dim = 2}, "width is -12"},
        {"l",
         {.width = 12, .heads = 4, .qk_norm = ATT_NN_QK_NORM_HEAD, .qk_norm_kind = (att_nn_norm_kind)7},
         "7 is not an att_nn_norm_kind"},
        {"l", {.width = 12, .heads = 4, .window = -1}, "window is -1"},
        {long_name, {.width = 12, .heads = 4}, "at most 95 characters"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        att_nn_params *p = params_of((att_nn_params_config){0});
        att_nn_attention_config c = bad[i].c;
        c.size = sizeof c;
        assert_null(att_nn_attention_new(p, bad[i].name, &c));
        assert_true(att_nn_params_status(p) != ATT_OK);
        check_message(ctx, bad[i].words);
        att_nn_params_free(p);
    }
}

static void a_name_that_is_requested_twice_is_one_parameter(void **state)
{
    (void)state;
    att_nn_params *p = params_of((att_nn_params_config){0});
    const att_nn_embedding *table = att_nn_embedding_new(p, "words", 5, 3);
    const att_nn_linear *output =
        att_nn_linear_new(p, "words", 3, 5, ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
    assert_ptr_equal(table->weight, output->weight);
    assert_int_equal(att_nn_params_count(p), 1);
    assert_null(att_nn_linear_new(p, "words", 4, 5, ATT_OPTIONS(att_nn_linear_options, .no_bias = true)));
    assert_int_equal(att_nn_params_status(p), ATT_ERR_SHAPE);
    check_message(ctx, "\"words.weight\" is [5, 3], but a second layer needs [5, 4]");
    att_nn_params_free(p);
}

/* ---- initialization: the bounds of PyTorch's reset_parameters */

static double largest(const att_param *p)
{
    const att_tensor *v = att_param_value(p);
    double most = 0;
    for (int64_t i = 0; i < att_count(v); i++)
        most = fmax(most, fabs((double)((const float *)v->data)[i]));
    return most;
}

static void new_layers_begin_as_those_of_pytorch(void **state)
{
    (void)state;
    att_nn_params *p = params_of((att_nn_params_config){.seed = 3});
    const att_nn_layer_config c = {.size = sizeof c, .width = 48, .heads = 4, .intermediate = 96};
    assert_non_null(att_nn_encoder_layer_new(p, "l", &c));
    const struct {
        const char *name;
        double bound; /* of uniform numbers */
    } expected[] = {
        {"l.attention.query.weight", sqrt(6.0 / (48 + 3 * 48))}, /* in_proj_weight [144, 48], Xavier's */
        {"l.attention.value.weight", sqrt(6.0 / (48 + 3 * 48))},
        {"l.attention.output.weight", 1 / sqrt(48)},
        {"l.attention.query.bias", 0},
        {"l.attention.output.bias", 0},
        {"l.feed_forward.inner.weight", 1 / sqrt(48)},
        {"l.feed_forward.inner.bias", 1 / sqrt(48)},
        {"l.feed_forward.outer.weight", 1 / sqrt(96)},
        {"l.attention_norm.bias", 0},
        {"l.attention_norm.weight", 1},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const att_param *param = att_nn_params_find(p, expected[i].name);
        assert_non_null(param);
        const double most = largest(param), bound = expected[i].bound;
        if (most > bound * (1 + 1e-7) || most < 0.9 * bound)
            fail_msg("%s is up to %g, expected %g", expected[i].name, most, bound);
    }
    att_nn_params_free(p);
}

/* ---- a causal layer with a cache */

static att_var *input(att_tape *t, float *x, int64_t rows)
{
    att_tensor v;
    assert_int_equal(att_wrap(&v, x, ATT_F32, ATT_DIMS(rows, WIDTH), NULL), ATT_OK);
    return att_input(t, &v);
}

static void copy_rows(att_tape *t, att_var *y, float *to)
{
    att_tensor v;
    if (att_var_value(t, y, &v))
        fail_msg("%s", att_error(ctx));
    memcpy(to, v.data, (size_t)att_count(&v) * sizeof *to);
}

static void a_cached_layer_has_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const att_rotary_options rotary = {.size = sizeof rotary};
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = WIDTH,
                                               .heads = HEADS,
                                               .head_dim = 8,
                                               .kv_heads = 1,
                                               .causal = true,
                                               .qk_norm = ATT_NN_QK_NORM_ROW,
                                               .rotary = &rotary};
    const att_nn_layer_config c = {.size = sizeof c,
                                   .width = WIDTH,
                                   .intermediate = 20,
                                   .gated = true,
                                   .activation = ATT_ACTIVATION_SILU,
                                   .order = ATT_NN_ORDER_PRE_NORM,
                                   .norm = ATT_NN_NORM_RMS,
                                   .attention = &attention};
    att_nn_params *p = params_of((att_nn_params_config){0});
    const att_nn_encoder_layer *l = att_nn_encoder_layer_new(p, "l", &c);
    assert_non_null(l);
    float *x = check_numbers(TOKENS * WIDTH, 5), whole[TOKENS * WIDTH], steps[TOKENS * WIDTH];
    att_tape *t;
    att_cache *cache;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    copy_rows(t, att_nn_encoder_layer_apply(t, l, input(t, x, TOKENS), NULL), whole);
    assert_int_equal(att_cache_new(l->attention->plan, 1, &cache), ATT_OK);
    for (int first = 0, n = 3; first < TOKENS; first += n, n = 1) /* a prompt of 3 tokens, then one by one */
        copy_rows(t,
                  att_nn_encoder_layer_apply(t, l, input(t, x + first * WIDTH, n),
                                             ATT_OPTIONS(att_nn_layer_call, .cache = cache)),
                  steps + first * WIDTH);
    assert_memory_equal(whole, steps, sizeof whole);
    att_cache_free(cache);
    att_tape_free(t);
    att_nn_params_free(p);
    free(x);
}

/* Without args x is one sequence, and so is the source, whatever its length. */
static void without_args_x_and_the_source_are_one_sequence_each(void **state)
{
    (void)state;
    static const int64_t q[] = {0, 2}, k[] = {0, TOKENS};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = q, .k_offsets = k};
    att_nn_params *p = params_of((att_nn_params_config){0});
    const att_nn_attention *l =
        att_nn_attention_new(p, "l", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .heads = HEADS));
    float *x = check_numbers(TOKENS * WIDTH, 5), y[2][2 * WIDTH];
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (int given = 0; given < 2; given++)
        copy_rows(t,
                  att_nn_attention_apply(
                      t, l, input(t, x, 2),
                      ATT_OPTIONS(att_nn_attention_call, .source = input(t, x, TOKENS), .args = given ? &args : NULL)),
                  y[given]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    att_tape_free(t);
    att_nn_params_free(p);
    free(x);
}

/* With gradients of 0, weight decay is all that changes a parameter. */
static void an_optimizer_decays_matrices_alone(void **state)
{
    (void)state;
    att_nn_params *p = params_of((att_nn_params_config){0});
    const att_nn_linear *l = att_nn_linear_new(p, "l", 1, 1, NULL);
    float zero = 0, *w = att_param_value(l->weight)->data, *b = att_param_value(l->bias)->data;
    att_tensor in;
    att_optimizer *o;
    att_tape *t;
    *w = *b = 1;
    assert_int_equal(att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .weight_decay = 0.5), &o), ATT_OK);
    assert_int_equal(att_nn_params_optimize(p, o), ATT_OK);
    assert_int_equal(att_nn_params_optimize(p, o), ATT_ERR_ARGUMENT); /* twice */
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t), ATT_OK);
    assert_int_equal(att_wrap(&in, &zero, ATT_F32, ATT_DIMS(1, 1), NULL), ATT_OK);
    att_var *y = att_scale(t, att_nn_linear_apply(t, l, att_input(t, &in), ATT_ACTIVATION_IDENTITY, NULL), 0);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.5), NULL), ATT_OK);
    check_near(0.75, *w, 1e-6, "the matrix: 1 - rate * decay");
    assert_true(*b == 1.0f);
    att_tape_free(t);
    att_optimizer_free(o);
    att_nn_params_free(p);
}

/* ---- scores with parameters */

/* The layer makes the parameters of its score and passes them on: they have a gradient. */
static void a_score_learns_its_parameters(void **state)
{
    (void)state;
    static const att_score *const *const scores[] = {&att_score_general, &att_score_additive};
    for (int i = 0; i < 2; i++) {
        att_plan *plan;
        att_attention_spec spec = {.size = sizeof spec, .heads = HEADS, .head_dim = WIDTH / HEADS, .score = *scores[i]};
        assert_int_equal(att_plan_new(ctx, &spec, &plan), ATT_OK);
        att_nn_params *p = params_of((att_nn_params_config){0});
        const att_nn_attention *l =
            att_nn_attention_new(p, "l", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .plan = plan));
        if (!l)
            fail_msg("%s", att_error(ctx));
        att_param *w = att_nn_params_find(p, i ? "l.v" : "l.W");
        assert_non_null(w);
        float *x = check_numbers(TOKENS * WIDTH, 5);
        att_tape *t;
        assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t), ATT_OK);
        att_var *y = att_nn_attention_apply(t, l, input(t, x, TOKENS), NULL);
        att_tensor value;
        if (att_var_value(t, y, &value))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        const att_tensor *grad = att_param_grad(w);
        double squares = 0;
        for (int64_t k = 0; k < att_count(grad); k++)
            squares += (double)((const float *)grad->data)[k] * (double)((const float *)grad->data)[k];
        assert_true(squares > 0);
        att_tape_free(t);
        att_nn_params_free(p);
        att_plan_free(plan);
        free(x);
    }
}

/* ---- convolution and batch normalization */

/* Two channels of four values: normalized they have mean 0 and variance 1, and the running statistics are a tenth of
 * theirs and nine of what they were. */
static void batch_norm_keeps_running_statistics(void **state)
{
    (void)state;
    float x[] = {1, 10, 2, 20, 3, 30, 6, 40};
    att_tensor in, out;
    att_tape *t;
    att_nn_params *p = params_of((att_nn_params_config){0});
    const att_nn_conv *conv = att_nn_conv_new(
        p, "conv", ATT_OPTIONS(att_nn_conv_config, .in = 2, .out = 3, .kernel = {3, 3}, .padding = {1, 1}));
    const att_nn_batch_norm *l = att_nn_batch_norm_new(p, "norm", 2, 0);
    assert_int_equal(att_nn_params_status(p), ATT_OK);
    assert_int_equal(att_nn_params_count(p), 6);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(att_wrap(&in, x, ATT_F32, ATT_DIMS(1, 2, 2, 2), NULL), ATT_OK);
    att_var *y =
        att_nn_batch_norm_apply(t, l, att_input(t, &in), ATT_OPTIONS(att_batch_norm_options, .training = true));
    assert_int_equal(att_var_value(t, y, &out), ATT_OK);
    const float *values = out.data, *mean = att_param_value(l->running_mean)->data,
                *var = att_param_value(l->running_var)->data;
    check_near(-2 / sqrt(3.5 + 1e-5), values[0], 1e-6, "normalized"); /* mean 3, variance 14 / 4 */
    check_near(0.3, mean[0], 1e-6, "running mean");
    check_near(0.9 + 0.1 * 14 / 3, var[0], 1e-6, "running variance");
    assert_int_equal(att_var_value(t, att_nn_conv_apply(t, conv, y), &out), ATT_OK);
    assert_int_equal(out.dim[3], 3);
    att_tape_free(t);
    att_nn_params_free(p);
}

/* ---- failing allocations */

static att_status everything(const att_config *config)
{
    att_ctx *c = NULL;
    att_nn_params *p = NULL;
    att_tape *t = NULL;
    att_tensor value;
    float x[2 * WIDTH] = {1, 2, 3};
    att_status s = att_open(&c, config);
    s = s ? s : att_nn_params_new(c, NULL, &p);
    s = s ? s : att_tape_new(c, NULL, &t);
    if (!s) {
        const att_rotary_options rotary = {.size = sizeof rotary};
        const att_nn_attention_config attention = {
            .size = sizeof attention, .width = WIDTH, .heads = HEADS, .rotary = &rotary};
        const att_nn_decoder_layer *l =
            att_nn_decoder_layer_new(p, "l",
                                     ATT_OPTIONS(att_nn_layer_config, .width = WIDTH, .heads = HEADS,
                                                 .intermediate = 20, .attention = &attention));
        s = att_nn_params_status(p);
        att_wrap(&value, x, ATT_F32, ATT_DIMS(2, WIDTH), NULL);
        att_var *in = att_constant(t, &value);
        att_var *y = s ? NULL : att_nn_decoder_layer_apply(t, l, in, ATT_OPTIONS(att_nn_layer_call, .source = in));
        s = s ? s : att_var_value(t, y, &value);
    }
    att_tape_free(t);
    att_nn_params_free(p);
    att_close(c);
    return s;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        s = everything(ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_parameters_are_views_or_copies_that_learn),
        cmocka_unit_test(the_first_error_stays_with_its_sentence),
        cmocka_unit_test(configurations_that_fit_nothing_are_refused),
        cmocka_unit_test(a_name_that_is_requested_twice_is_one_parameter),
        cmocka_unit_test(new_layers_begin_as_those_of_pytorch),
        cmocka_unit_test(a_cached_layer_has_the_bits_of_the_full_pass),
        cmocka_unit_test(without_args_x_and_the_source_are_one_sequence_each),
        cmocka_unit_test(an_optimizer_decays_matrices_alone),
        cmocka_unit_test(a_score_learns_its_parameters),
        cmocka_unit_test(batch_norm_keeps_running_statistics),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
