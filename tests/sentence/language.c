/* Causal language models as sentence models, a folder like Qwen3-Embedding: vectors and tokens of
 * sentence-transformers, with a prompt and without; attention; training. */
#include "fixtures/check.h"
#include "fixtures/folder.h"
#include "fixtures/sentence_model.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/qwen3_embedding"

enum { MAX_TEXTS = 16, DIM = 16 };

static json_t *read_golden(const char **text, int64_t *n)
{
    json_t *golden = json_load_file(GOLDEN "/expected.json", 0, NULL);
    assert_non_null(golden);
    const json_t *texts = json_object_get(golden, "texts");
    *n = (int64_t)json_array_size(texts);
    assert_in_range(*n, 5, MAX_TEXTS);
    for (int64_t i = 0; i < *n; i++)
        text[i] = json_string_value(json_array_get(texts, (size_t)i));
    return golden;
}

static void expect_vectors(const json_t *rows, int64_t n, const float *y)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < DIM; k++) {
            const double is = json_number_value(json_array_get(json_array_get(rows, (size_t)i), (size_t)k));
            check_near(is, y[i * DIM + k], 2e-6, "text %d, number %d", (int)i, (int)k); /* of vectors of length 1 */
            worst = fmax(worst, fabs(is - y[i * DIM + k]));
        }
    print_message("off by %.1e\n", worst);
}

static void expect_ids(const json_t *rows, int64_t n, const att_token_embeddings *y)
{
    for (int64_t i = 0; i < n; i++) {
        const json_t *ids = json_array_get(rows, (size_t)i);
        assert_int_equal(y->offsets[i + 1] - y->offsets[i], json_array_size(ids));
        for (int64_t k = y->offsets[i]; k < y->offsets[i + 1]; k++)
            assert_int_equal(y->ids[k], json_integer_value(json_array_get(ids, (size_t)(k - y->offsets[i]))));
    }
}

static void vectors_are_those_of_sentence_transformers_with_a_prompt_and_without(void **state)
{
    (void)state;
    const char *text[MAX_TEXTS];
    float y[MAX_TEXTS * DIM], alone[DIM];
    int64_t n;
    json_t *golden = read_golden(text, &n);
    att_sentence *m = open_sentence(ctx, GOLDEN);
    for (int query = 0; query < 2; query++) {
        const att_embed_options o = {.size = sizeof o, .prompt_name = query ? "query" : NULL};
        att_token_embeddings tokens;
        if (att_sentence_embed(m, n, text, NULL, &o, y) || att_sentence_embed_tokens(m, n, text, NULL, &o, &tokens))
            fail_msg("%s", att_error(ctx));
        expect_vectors(json_object_get(golden, query ? "query" : "vectors"), n, y);
        expect_ids(json_object_get(golden, query ? "query_ids" : "ids"), n, &tokens);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(att_sentence_embed(m, 1, text + i, NULL, &o, alone), ATT_OK);
            assert_memory_equal(alone, y + i * DIM, sizeof alone);
        }
        att_token_embeddings_free(ctx, &tokens);
    }
    att_sentence_free(m);
    json_decref(golden);
}

static void its_attention_is_causal_and_its_output_the_embedding(void **state)
{
    (void)state;
    enum { MAX_TOKENS = 64 };
    static float weights[MAX_TOKENS * MAX_TOKENS];
    const char *text = "the quick fox";
    float y[DIM], out[DIM];
    att_sentence *m = open_sentence(ctx, GOLDEN);
    att_trace *t;
    att_trace_info info = {.size = sizeof info};
    if (att_sentence_trace(m, text, strlen(text), NULL, NULL, &t))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_trace_describe(t, &info), ATT_OK);
    const int64_t n = info.target;
    assert_int_equal(info.source, 0);
    assert_in_range(n, 2, MAX_TOKENS);
    assert_int_equal(info.layers[ATT_TRACE_SIDE_DECODER], 2);
    assert_int_equal(att_trace_weights(t, 1, 0, 0, n, weights), ATT_OK);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++)
            assert_true(weights[i * n + k] == 0);
    assert_int_equal(att_trace_output(t, -1, 0, 1, out), ATT_OK);
    assert_int_equal(att_sentence_embed(m, 1, &text, NULL, NULL, y), ATT_OK);
    assert_memory_equal(y, out, sizeof y);
    att_trace_free(t);
    att_sentence_free(m);
}

static void it_learns_and_is_written_as_a_folder(void **state)
{
    (void)state;
    static const char *const pairs[] = {"the fox", "a wolf", "small birds", "lazy dog", "cold water", "old wolf"};
    static const double scores[] = {0.9, 0.1, 0.3};
    const test_folder f = folder_new();
    float before[2 * DIM], after[2 * DIM], again[2 * DIM];
    att_sentence *m;
    att_training *t;
    att_training_report r = {.size = sizeof r};
    const att_schedule rates = {.size = sizeof rates, .max_rate = 1e-3, .steps = 8};
    const att_training_options common = {.size = sizeof common, .clip = 1, .schedule = &rates, .seed = 1};
    const att_sentence_training_options o = {
        .size = sizeof o, .pairs = 3, .texts = pairs, .scores = scores, .batch = 3};
    if (att_sentence_open_for_training(ctx, GOLDEN, NULL, &m) || att_sentence_training_new(m, &common, &o, &t))
        fail_msg("%s", att_error(ctx));
    encode(m, 2, pairs, before);
    double first = 0;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(att_training_step(t, &r), ATT_OK);
        first = i == 0 ? r.loss : first;
    }
    assert_true(r.loss < first);
    encode(m, 2, pairs, after);
    assert_memory_not_equal(before, after, sizeof before);
    if (att_sentence_write(m, f.path, 0))
        fail_msg("%s", att_error(ctx));
    att_training_free(t);
    att_sentence_free(m);
    m = open_sentence(ctx, f.path);
    encode(m, 2, pairs, again);
    assert_memory_equal(after, again, sizeof after);
    att_sentence_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_of_sentence_transformers_with_a_prompt_and_without),
        cmocka_unit_test(its_attention_is_causal_and_its_output_the_embedding),
        cmocka_unit_test(it_learns_and_is_written_as_a_folder),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
