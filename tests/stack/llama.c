/* Llama and models like it: the logits of transformers, cached decoding, folders that are refused. */
#include "fixtures/language.h"
#include "fixtures/tiny_llama.h"

static void logits_and_greedy_tokens_are_those_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < N_LLAMAS; i++) {
        const test_folder folder = tiny_llama_folder(&tiny_llamas[i], NULL);
        att_language_model *m = open_model(&folder);
        const language_golden g = read_golden("tests/golden/tiny_llama.txt", tiny_llamas[i].name);
        expect_logits(m, tiny_llamas[i].name, &g, 1e-5);
        expect_greedy(m, tiny_llamas[i].name, &g);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

static void decoding_has_the_bits_of_a_full_pass(void **state)
{
    (void)state;
    for (int i = 0; i < N_LLAMAS; i++) {
        const test_folder folder = tiny_llama_folder(&tiny_llamas[i], NULL);
        att_language_model *m = open_model(&folder);
        expect_bits_of_a_full_pass(m);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

/* Keys and values of half the bits: near to f32, and (f16) the same bits for any steps */
static void caches_may_have_16_bits(void **state)
{
    (void)state;
    static float full[TOKENS * VOCABULARY], part[TOKENS * VOCABULARY];
    static const att_dtype dtypes[] = {ATT_F16, ATT_BF16};
    for (int i = 0; i < 2 * N_LLAMAS; i++) {
        const tiny_llama *model = &tiny_llamas[i / 2];
        const test_folder folder = tiny_llama_folder(model, NULL);
        att_language_model *m = open_model(&folder);
        att_language_state *s = new_state(m, N, dtypes[i % 2]);
        language_golden g = read_golden("tests/golden/tiny_llama.txt", model->name);
        apply(m, ids, offsets, N, s, false, full);
        const double error = largest_difference(full, &g);
        if (error > (i % 2 ? 3e-2 : 4e-3) || error < 1e-5)
            fail_msg("%s, %s: the logits differ by %g of the largest", model->name, att_dtype_name(dtypes[i % 2]),
                     error);
        assert_int_equal(att_language_state_truncate(s, ATT_ALL_SEQUENCES, 0), ATT_OK);
        for (int k = 0; i % 2 == 0 && k < 16; k++) { /* sequence 2 token by token; 0 and 1 have some at first */
            const int64_t steps[] = {0, k == 0 ? 5 : 0, k == 0 ? 6 : 0, k == 0 ? 7 : 1};
            apply(m, k == 0 ? ids : ids + 6 + k, steps, N, s, false, part);
            assert_memory_equal(part + (k == 0 ? 6 : 0) * VOCABULARY, full + (6 + k) * VOCABULARY,
                                VOCABULARY * sizeof *full);
        }
        att_language_state_free(s);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

/* ---- what is refused */

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *type, *more;
        att_status status;
        const char *words;
    } bad[] = {
        {"mixtral", "", ATT_ERR_UNSUPPORTED,
         "\"model_type\" is \"mixtral\", which is not supported; one of gpt2, llama, mistral, olmo2, phi3, qwen2 "
         "and qwen3 is"},
        {"llama", ", \"quantization_config\": {\"bits\": 4}", ATT_ERR_UNSUPPORTED, "quantization_config"},
        {"llama", ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}", ATT_ERR_UNSUPPORTED, "\"yarn\""},
        {"llama", ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4}", ATT_ERR_FORMAT, "low_freq_factor"},
        {"phi3", ", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1]}", ATT_ERR_UNSUPPORTED,
         "\"longrope\""},
        {"phi3", ", \"partial_rotary_factor\": 0.75", ATT_ERR_UNSUPPORTED, "is of 3 of a head's 4 features"},
        {"llama",
         ", \"rope_parameters\": {\"rope_theta\": 100.0}, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
         ATT_ERR_UNSUPPORTED, "\"rope_scaling\""},
        {"llama", ", \"partial_rotary_factor\": 0.5", ATT_ERR_UNSUPPORTED, "partial_rotary_factor"},
        {"llama", ", \"head_dim\": 5", ATT_ERR_UNSUPPORTED, "heads of 5 features"},
        {"qwen2", ", \"use_sliding_window\": true, \"sliding_window\": 8, \"max_window_layers\": 1",
         ATT_ERR_UNSUPPORTED, "\"use_sliding_window\" is true and \"max_window_layers\" 1, so of 2 layers only some"},
        {"qwen2", ", \"use_sliding_window\": true, \"max_window_layers\": 1", ATT_ERR_UNSUPPORTED,
         "\"max_window_layers\" 1"},
        {"qwen3", ", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", \"sliding_attention\"]",
         ATT_ERR_UNSUPPORTED, "layer_types"},
        {"qwen3", ", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\"]", ATT_ERR_UNSUPPORTED,
         "layer_types"},
        {"qwen2", ", \"layer_types\": [\"sliding_attention\", \"sliding_attention\"]", ATT_ERR_UNSUPPORTED,
         "layer_types"},
        {"llama", ", \"layer_types\": [\"chunked_attention\", \"chunked_attention\"]", ATT_ERR_UNSUPPORTED,
         "layer_types"},
        {"mistral", ", \"layer_types\": [\"full_attention\", \"full_attention\"]", ATT_ERR_UNSUPPORTED, "layer_types"},
        {"llama", ", \"rope_parameters\": {\"rope_theta\": 10.0}, \"partial_rotary_factor\": 0.5", ATT_ERR_UNSUPPORTED,
         "\"partial_rotary_factor\" is 0.5"},
        {"llama", ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"partial_rotary_factor\": 0.5}",
         ATT_ERR_UNSUPPORTED, "\"partial_rotary_factor\" is 0.5"},
        {"qwen3", ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]", ATT_ERR_UNSUPPORTED, "layer_types"},
    };
    const test_folder folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tiny_llama_write_config(&folder, &(tiny_llama){.type = bad[i].type, .more = ""}, bad[i].more);
        expect_failure(&folder, bad[i].status, bad[i].words);
    }
    folder_remove(&folder);
}

/* config.json without a key: it has another name there. */
static void rename_key(const test_folder *folder, const char *key)
{
    char path[100], text[1000] = "", quoted[60];
    snprintf(path, sizeof path, "%s/config.json", folder->path);
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_in_range(fread(text, 1, sizeof text - 1, file), 1, sizeof text - 2);
    char *found = strstr(text, quoted);
    assert_non_null(found);
    found[1] = '_';
    rewind(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

#define SLIDES ", \"use_sliding_window\": true"
static const struct {
    tiny_llama model;
    const char *without, *words; /* words NULL: it opens */
    int window, kv_heads, head_dim;
} missing[] = {
    {{.type = "mistral", .head_dim = 4, .more = ""}, NULL, NULL, 4096, 2, 4},
    {{.type = "mistral", .head_dim = 4, .more = ", \"sliding_window\": null"}, NULL, NULL, 0, 2, 4},
    {{.type = "mistral", .head_dim = 4, .more = ""},
     "num_key_value_heads",
     "\"num_key_value_heads\" is 8 where it is missing, which does not divide",
     0,
     0,
     0},
    {{.type = "mistral", .head_dim = 4, .kv_heads = 4, .more = ", \"num_key_value_heads\": null"},
     "num_key_value_heads",
     NULL,
     4096,
     4,
     4},
    {{.type = "phi3", .head_dim = 4, .fused = true, .more = ""}, NULL, NULL, 0, 2, 4},
    {{.type = "phi3", .head_dim = 4, .kv_heads = 4, .fused = true, .more = ", \"attention_bias\": true"},
     "num_key_value_heads",
     NULL,
     0,
     4,
     4},
    {{.type = "llama", .head_dim = 4, .kv_heads = 4, .more = ", \"sliding_window\": 8"},
     "num_key_value_heads",
     NULL,
     0,
     4,
     4},
    {{.type = "olmo2", .head_dim = 4, .kv_heads = 4, .result_norm = true, .more = ", \"mlp_bias\": true"},
     "num_key_value_heads",
     NULL,
     0,
     4,
     4},
    {{.type = "qwen2", .head_dim = 4, .qkv_bias = true, .more = ""}, "num_key_value_heads", "is 32 where", 0, 0, 0},
    {{.type = "qwen2", .head_dim = 4, .qkv_bias = true, .more = ", \"attention_bias\": false"}, NULL, NULL, 0, 2, 4},
    {{.type = "qwen2", .head_dim = 4, .qkv_bias = true, .more = SLIDES}, NULL, NULL, 0, 2, 4},
    {{.type = "qwen2", .head_dim = 4, .qkv_bias = true, .more = SLIDES ", \"max_window_layers\": 2"},
     NULL,
     NULL,
     0,
     2,
     4},
    {{.type = "qwen2", .head_dim = 4, .qkv_bias = true, .more = SLIDES ", \"max_window_layers\": 0"},
     NULL,
     NULL,
     4096,
     2,
     4},
    {{.type = "qwen2",
      .head_dim = 4,
      .qkv_bias = true,
      .more = SLIDES ", \"sliding_window\": null, \"max_window_layers\": 0"},
     NULL,
     NULL,
     0,
     2,
     4},
    {{.type = "qwen3",
      .head_dim = 8,
      .qk_norm = true,
      .more = SLIDES ", \"head_dim\": 8, \"sliding_window\": 9, \"layer_types\": [\"sliding_attention\", "
                     "\"sliding_attention\"]"},
     NULL,
     NULL,
     9,
     2,
     8},
    {{.type = "qwen3", .head_dim = 128, .qk_norm = true, .more = ", \"head_dim\": 128"}, "head_dim", NULL, 0, 2, 128},
    {{.type = "qwen3", .head_dim = 8, .qk_norm = true, .more = ", \"head_dim\": 8"}, "head_dim", "512", 0, 0, 0},
};
#undef SLIDES

/* As in transformers, a missing key and one that is null may have different meanings. */
static void missing_keys_mean_the_defaults_of_the_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        const test_folder folder = tiny_llama_folder(&missing[i].model, NULL);
        att_language_model *m;
        att_language_model_info info = {.size = sizeof info};
        tiny_llama_write_config(&folder, &missing[i].model, ", \"max_position_embeddings\": 8192");
        rename_key(&folder, "max_position_embeddings");
        if (missing[i].without)
            rename_key(&folder, missing[i].without);
        const att_status s = att_language_model_open(ctx, folder.path, NULL, &m);
        if (!s == !!missing[i].words)
            fail_msg("%s%s: %s", missing[i].model.type, missing[i].model.more, s ? att_error(ctx) : "opened");
        if (s)
            check_message(ctx, missing[i].words);
        else
            assert_int_equal(att_language_model_describe(m, &info), ATT_OK);
        if (!s && (info.window != missing[i].window || info.kv_heads != missing[i].kv_heads ||
                   info.head_dim != missing[i].head_dim))
            fail_msg("%s%s: a window of %d, %d heads of %d", missing[i].model.type, missing[i].model.more,
                     (int)info.window, (int)info.kv_heads, (int)info.head_dim);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

static void weights_that_do_not_fit_are_named(void **state)
{
    (void)state;
    test_folder folder = tiny_llama_folder(&tiny_llamas[0], &(const tiny_weights){.without = "lm_head.weight"});
    expect_failure(&folder, ATT_ERR_FORMAT, "there is no tensor \"lm_head.weight\"");
    folder_remove(&folder);
    tiny_llama tied = tiny_llamas[0]; /* whose file has an output layer of its own */
    folder = tiny_llama_folder(&tied, NULL);
    tied.tied = true;
    tiny_llama_write_config(&folder, &tied, "");
    expect_failure(&folder, ATT_ERR_FORMAT,
                   "tensor \"lm_head.weight\" differs from \"model.embed_tokens.weight\", but by config.json");
    folder_remove(&folder);
    assert_string_equal(tiny_llamas[6].name, "olmo2");
    folder = tiny_llama_folder(&tiny_llamas[6],
                               &(const tiny_weights){.without = "model.layers.1.post_attention_layernorm.weight"});
    expect_failure(&folder, ATT_ERR_FORMAT, "there is no tensor \"layers.1.post_attention_layernorm.weight\"");
    folder_remove(&folder);
    assert_string_equal(tiny_llamas[7].name, "phi3");
    folder = tiny_llama_folder(&tiny_llamas[7],
                               &(const tiny_weights){.without = "model.layers.0.self_attn.qkv_proj.weight"});
    expect_failure(&folder, ATT_ERR_FORMAT, "there is no tensor \"layers.0.self_attn.qkv_proj.weight\"");
    folder_remove(&folder);
    folder =
        tiny_llama_folder(&tiny_llamas[7], &(const tiny_weights){.wider = "model.layers.0.mlp.gate_up_proj.weight"});
    expect_failure(&folder, ATT_ERR_SHAPE, "is [48, 17] but by config.json it is [48, 16]");
    folder_remove(&folder);
    folder =
        tiny_llama_folder(&tiny_llamas[5], &(const tiny_weights){.wider = "model.layers.1.self_attn.q_norm.weight"});
    expect_failure(&folder, ATT_ERR_SHAPE, "model.layers.1.self_attn.q_norm.weight");
    folder_remove(&folder);
}

static void expect_tape_failure(att_tape *t, const att_var *y, const char *words)
{
    att_tensor v;
    assert_null(y);
    assert_int_equal(att_var_value(t, y, &v), ATT_ERR_ARGUMENT);
    check_message(ctx, words);
    att_tape_reset(t);
}

static void more_tokens_than_positions_are_refused(void **state)
{
    (void)state;
    const test_folder folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    att_language_model *m = open_model(&folder);
    att_language_state *s;
    att_tape *t;
    int32_t many[80] = {0};
    const int64_t forty[] = {0, 40}, eighty[] = {0, 80}, none[] = {0, 0};
    static float out[40 * VOCABULARY];
    assert_int_equal(att_language_state_new(m, 1, ATT_F32, &s), ATT_OK);
    apply(m, many, forty, 1, s, false, out);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    expect_tape_failure(t, att_language_model_apply(t, m, many, forty, 1, s, NULL),
                        "sequence 0 has 80 tokens, 40 of them in the state, but the model has 64 positions");
    expect_tape_failure(t, att_language_model_apply(t, m, many, eighty, 1, NULL, NULL),
                        "sequence 0 has 80 tokens but the model has 64 positions");
    expect_tape_failure(
        t,
        att_language_model_apply(t, m, many, none, 1, NULL, ATT_OPTIONS(att_language_model_options, .last_only = true)),
        "sequence 0 is empty");
    expect_tape_failure(
        t, att_language_model_apply(t, m, many, none, 0, s, ATT_OPTIONS(att_language_model_options, .last_only = true)),
        "n is 0, but the state has 1");
    assert_int_equal(att_language_state_length(s, 0), 40);
    att_language_state_free(s);
    att_tape_free(t);
    assert_int_equal(att_language_state_new(m, 1, ATT_I32, &s), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "dtype is i32");
    assert_null(s);
    att_language_model_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_greedy_tokens_are_those_of_transformers),
        cmocka_unit_test(decoding_has_the_bits_of_a_full_pass),
        cmocka_unit_test(caches_may_have_16_bits),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(missing_keys_mean_the_defaults_of_the_class),
        cmocka_unit_test(weights_that_do_not_fit_are_named),
        cmocka_unit_test(more_tokens_than_positions_are_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
