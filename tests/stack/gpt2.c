/* GPT-2: the logits of transformers, cached decoding, names in files, folders that are refused. */
#include "fixtures/language.h"
#include "fixtures/tiny_gpt2.h"

static void logits_and_greedy_tokens_are_those_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < N_GPT2S; i++) {
        const test_folder folder = tiny_gpt2_folder(&tiny_gpt2s[i], NULL);
        att_language_model *m = open_model(&folder);
        const language_golden g = read_golden("tests/golden/tiny_gpt2.txt", tiny_gpt2s[i].name);
        expect_logits(m, tiny_gpt2s[i].name, &g, 1e-5);
        expect_greedy(m, tiny_gpt2s[i].name, &g);
        expect_bits_of_a_full_pass(m);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

static void names_may_have_a_prefix(void **state)
{
    (void)state;
    const test_folder bare = tiny_gpt2_folder(&tiny_gpt2s[0], NULL),
                      prefixed = tiny_gpt2_folder(&tiny_gpt2s[0], &(const tiny_weights){.prefix = "transformer."});
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    att_language_model *m = open_model(&bare);
    apply(m, ids, offsets, N, NULL, false, want);
    att_language_model_free(m);
    m = open_model(&prefixed);
    apply(m, ids, offsets, N, NULL, false, is);
    att_language_model_free(m);
    assert_memory_equal(is, want, sizeof want);
    folder_remove(&bare);
    folder_remove(&prefixed);
}

static void a_tied_head_may_be_in_the_file_if_it_is_the_embedding(void **state)
{
    (void)state;
    tiny_gpt2 both = tiny_gpt2s[0];
    both.tied = false;
    const test_folder folder = tiny_gpt2_folder(&both, &(const tiny_weights){.like = {"lm_head.weight", "wte.weight"}});
    att_language_model *m = open_model(&folder);
    att_language_model_info info = {.size = sizeof info};
    assert_int_equal(att_language_model_describe(m, &info), ATT_OK);
    assert_string_equal(info.type, "gpt2");
    assert_true(info.tied);
    assert_int_equal(info.intermediate, 64);
    assert_int_equal(info.head_dim, 4);
    assert_int_equal(info.max_positions, 64);
    att_language_model_free(m);
    folder_remove(&folder);
    const test_folder other = tiny_gpt2_folder(&both, NULL);
    assert_int_equal(att_language_model_open(ctx, other.path, NULL, &m), ATT_ERR_FORMAT);
    check_message(ctx, "tensor \"lm_head.weight\" differs from \"wte.weight\", but by config.json");
    folder_remove(&other);
}

/* Weights whose matrices are not dense as parameters, in half the bits: those of f32 with the same values */
static void bf16_weights_are_views_too(void **state)
{
    (void)state;
    const test_folder folder[] = {tiny_gpt2_folder(&tiny_gpt2s[1], &(const tiny_weights){.coarse = true}),
                                  tiny_gpt2_folder(&tiny_gpt2s[1], &(const tiny_weights){.bf16 = true})};
    static float y[2][TOKENS * VOCABULARY];
    for (int i = 0; i < 2; i++) {
        att_language_model *m = open_model(&folder[i]);
        apply(m, ids, offsets, N, NULL, false, y[i]);
        att_language_model_free(m);
        folder_remove(&folder[i]);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        att_status status;
        const char *words;
    } bad[] = {
        {", \"scale_attn_by_inverse_layer_idx\": true", ATT_ERR_UNSUPPORTED, "scale_attn_by_inverse_layer_idx"},
        {", \"reorder_and_upcast_attn\": true", ATT_ERR_UNSUPPORTED, "reorder_and_upcast_attn"},
        {", \"scale_attn_weights\": false", ATT_ERR_UNSUPPORTED, "scale_attn_weights"},
        {", \"add_cross_attention\": true", ATT_ERR_UNSUPPORTED, "add_cross_attention"},
        {", \"quantization_config\": {\"bits\": 4}", ATT_ERR_UNSUPPORTED, "quantization_config"},
        {", \"layer_norm_epsilon\": -1", ATT_ERR_FORMAT, "layer_norm_epsilon"},
    };
    const test_folder folder = tiny_gpt2_folder(&tiny_gpt2s[0], NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tiny_gpt2_write_config(&folder, &tiny_gpt2s[0], bad[i].more);
        expect_failure(&folder, bad[i].status, bad[i].words);
    }
    folder_write(&folder, "config.json",
                 "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 3, "
                 "\"n_positions\": 64}");
    expect_failure(&folder, ATT_ERR_FORMAT, "\"n_head\" is 3, which does not divide \"n_embd\", 16");
    folder_write(&folder, "config.json",
                 "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 4, "
                 "\"n_positions\": 64, \"activation_function\": \"relu\"}");
    expect_failure(&folder, ATT_ERR_UNSUPPORTED, "\"activation_function\" is \"relu\"");
    folder_remove(&folder);
}

static void weights_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        tiny_weights how;
        att_status status;
        const char *words;
    } bad[] = {
        {{.without = "lm_head.weight"}, ATT_ERR_FORMAT, "there is no tensor \"lm_head.weight\""},
        {{.without = "h.1.attn.c_attn.bias"}, ATT_ERR_FORMAT, "there is no tensor \"h.1.attn.c_attn.bias\""},
        {{.wider = "h.1.attn.c_attn.weight"}, ATT_ERR_SHAPE, "is [16, 49] but by config.json it is [16, 48]"},
        {{.wider = "h.0.mlp.c_proj.weight"}, ATT_ERR_SHAPE, "is [24, 17] but by config.json it is [24, 16]"},
        {{.wider = "h.0.attn.c_attn.bias"}, ATT_ERR_SHAPE, "is [49] but by config.json it is [48]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const test_folder folder = tiny_gpt2_folder(&tiny_gpt2s[1], &bad[i].how);
        expect_failure(&folder, bad[i].status, bad[i].words);
        folder_remove(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_greedy_tokens_are_those_of_transformers),
        cmocka_unit_test(names_may_have_a_prefix),
        cmocka_unit_test(a_tied_head_may_be_in_the_file_if_it_is_the_embedding),
        cmocka_unit_test(bf16_weights_are_views_too),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(weights_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
