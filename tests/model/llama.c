/* Llama and models like it: the logits of transformers, cached decoding, folders that are refused. */
#include "attend_language.h"
#include "check.h"
#include "context.h"
#include "tiny_llama.h"

#include <math.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 22 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3, 5, 2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 3};
static const int64_t offsets[] = {0, 5, 6, TOKENS};
enum { N = 3 };

static att_language_model *open_model(const test_folder *folder)
{
    att_language_model *m;
    if (att_language_model_open(ctx, folder->path, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Logits of all sequences, or of the next tokens, to out [n or offsets[n], VOCABULARY] */
static void apply(const att_language_model *m, const int32_t *id, const int64_t *offset, int64_t n,
                  att_language_state *state, bool last_only, float *out)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *y = att_language_model_apply(t, m, id, offset, n, state, last_only);
    att_tensor v;
    if (att_var_value(t, y, &v))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(v.dim[0], last_only ? n : offset[n]);
    assert_int_equal(v.dim[1], VOCABULARY);
    memcpy(out, v.data, (size_t)(v.dim[0] * VOCABULARY) * sizeof *out);
    att_tape_free(t);
}

/* ---- against transformers */

static void read_golden(const char *name, double want[TOKENS * VOCABULARY])
{
    char line[2000];
    FILE *f = fopen("tests/golden/tiny_llama.txt", "r");
    assert_non_null(f);
    do
        assert_non_null(fgets(line, sizeof line, f));
    while (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != '\n');
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        assert_int_equal(fscanf(f, "%lf", &want[i]), 1);
    fclose(f);
}

static void logits_are_those_of_transformers(void **state)
{
    (void)state;
    static double want[TOKENS * VOCABULARY];
    static float is[TOKENS * VOCABULARY];
    for (int i = 0; i < N_LLAMAS; i++) {
        const test_folder folder = tiny_llama_folder(&tiny_llamas[i], NULL);
        att_language_model *m = open_model(&folder);
        read_golden(tiny_llamas[i].name, want);
        apply(m, ids, offsets, N, NULL, false, is);
        double error = 0, largest = 0;
        for (int k = 0; k < TOKENS * VOCABULARY; k++) {
            error = fmax(error, fabs(is[k] - want[k]));
            largest = fmax(largest, fabs(want[k]));
        }
        if (!(error <= 1e-5 * largest))
            fail_msg("%s: the logits differ by %g of the largest", tiny_llamas[i].name, error / largest);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

/* ---- decoding */

static void decoding_has_the_bits_of_a_full_pass(void **state)
{
    (void)state;
    static float full[TOKENS * VOCABULARY], part[TOKENS * VOCABULARY];
    for (int i = 0; i < N_LLAMAS; i++) {
        const test_folder folder = tiny_llama_folder(&tiny_llamas[i], NULL);
        att_language_model *m = open_model(&folder);
        att_language_state *s;
        apply(m, ids, offsets, N, NULL, false, full);
        assert_int_equal(att_language_state_new(m, N, 0, &s), ATT_OK);
        /* Ragged prompts without their last token, then that token of each: sequence 1 had an empty prompt. */
        const int32_t prompt[] = {1, 7, 9, 11, 2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6},
                      last[] = {3, 5, 3};
        const int64_t prompts[] = {0, 4, 4, 19}, lasts[] = {0, 1, 2, 3};
        apply(m, prompt, prompts, N, s, false, part);
        assert_memory_equal(part, full, 4 * VOCABULARY * sizeof *full);
        assert_memory_equal(part + 4 * VOCABULARY, full + 6 * VOCABULARY, 15 * VOCABULARY * sizeof *full);
        apply(m, last, lasts, N, s, true, part);
        for (int b = 0; b < N; b++)
            assert_memory_equal(part + b * VOCABULARY, full + (offsets[b + 1] - 1) * VOCABULARY,
                                VOCABULARY * sizeof *full);
        assert_int_equal(att_language_state_length(s, 2), 16);
        /* The third alone, its last tokens once more. */
        const int64_t from[] = {2}, three[] = {0, 3};
        assert_int_equal(att_language_state_select(s, 1, from), ATT_OK);
        assert_int_equal(att_language_state_truncate(s, 0, 13), ATT_OK);
        apply(m, ids + 19, three, 1, s, false, part);
        assert_memory_equal(part, full + 19 * VOCABULARY, 3 * VOCABULARY * sizeof *full);
        att_language_state_free(s);
        att_language_model_free(m);
        folder_remove(&folder);
    }
}

/* ---- what is refused */

static void expect_failure(const test_folder *folder, att_status status, const char *words)
{
    att_language_model *m;
    assert_int_equal(att_language_model_open(ctx, folder->path, &m), status);
    assert_null(m);
    check_says(ctx, words);
}

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *type, *more;
        att_status status;
        const char *words;
    } bad[] = {
        {"mixtral", "", ATT_ERR_UNSUPPORTED, "\"model_type\" is \"mixtral\""},
        {"llama", ", \"quantization_config\": {\"bits\": 4}", ATT_ERR_UNSUPPORTED, "quantization_config"},
        {"llama", ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}", ATT_ERR_UNSUPPORTED, "\"yarn\""},
        {"llama", ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4}", ATT_ERR_FORMAT, "low_freq_factor"},
        {"llama", ", \"head_dim\": 5", ATT_ERR_UNSUPPORTED, "heads of 5 features"},
        {"qwen2", ", \"use_sliding_window\": true, \"sliding_window\": 8", ATT_ERR_UNSUPPORTED, "use_sliding_window"},
        {"qwen3", ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]", ATT_ERR_UNSUPPORTED, "layer_types"},
    };
    const test_folder folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tiny_llama_write_config(&folder, &(tiny_llama){.type = bad[i].type, .more = ""}, bad[i].more);
        expect_failure(&folder, bad[i].status, bad[i].words);
    }
    folder_remove(&folder);
}

static void weights_that_do_not_fit_are_named(void **state)
{
    (void)state;
    test_folder folder = tiny_llama_folder(&tiny_llamas[0], &(const tiny_weights){.without = "lm_head.weight"});
    expect_failure(&folder, ATT_ERR_FORMAT, "there is no tensor \"lm_head.weight\"");
    folder_remove(&folder);
    folder =
        tiny_llama_folder(&tiny_llamas[5], &(const tiny_weights){.wider = "model.layers.1.self_attn.q_norm.weight"});
    expect_failure(&folder, ATT_ERR_SHAPE, "model.layers.1.self_attn.q_norm.weight");
    folder_remove(&folder);
    folder = tiny_llama_folder(&tiny_llamas[4], &(const tiny_weights){.extra = "model.layers.0.mlp.experts"});
    expect_failure(&folder, ATT_ERR_UNSUPPORTED, "model.layers.0.mlp.experts");
    folder_remove(&folder);
}

static void expect_tape_failure(att_tape *t, const att_var *y, const char *words)
{
    att_tensor v;
    assert_null(y);
    assert_int_equal(att_var_value(t, y, &v), ATT_ERR_ARGUMENT);
    check_says(ctx, words);
    att_tape_reset(t);
}

static void more_tokens_than_positions_are_refused(void **state)
{
    (void)state;
    const test_folder folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    att_language_model *m = open_model(&folder);
    att_language_state *s;
    att_tape *t;
    int32_t many[40] = {0};
    const int64_t twenty[] = {0, 20}, forty[] = {0, 40}, none[] = {0, 0};
    static float out[20 * VOCABULARY];
    assert_int_equal(att_language_state_new(m, 1, ATT_F32, &s), ATT_OK);
    apply(m, many, twenty, 1, s, false, out);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    expect_tape_failure(t, att_language_model_apply(t, m, many, twenty, 1, s, false),
                        "sequence 0 has 40 tokens, 20 of them in the state, but the model has 32 positions");
    expect_tape_failure(t, att_language_model_apply(t, m, many, forty, 1, NULL, false),
                        "sequence 0 has 40 tokens but the model has 32 positions");
    expect_tape_failure(t, att_language_model_apply(t, m, many, none, 1, NULL, true), "sequence 0 is empty");
    expect_tape_failure(t, att_language_model_apply(t, m, many, none, 0, s, true), "n is 0, but the state has 1");
    assert_int_equal(att_language_state_length(s, 0), 20);
    att_language_state_free(s);
    att_tape_free(t);
    assert_int_equal(att_language_state_new(m, 1, ATT_I32, &s), ATT_ERR_UNSUPPORTED);
    check_says(ctx, "dtype is i32");
    assert_null(s);
    att_language_model_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_transformers),
        cmocka_unit_test(decoding_has_the_bits_of_a_full_pass),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(weights_that_do_not_fit_are_named),
        cmocka_unit_test(more_tokens_than_positions_are_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
