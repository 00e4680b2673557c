/* BERT: hidden states as transformers computes them; folders that are wrong. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/tiny_bert.h"
#include "attend_encoder.h"
#include "stack/encoder.h"

#include <math.h>

static att_encoder *open_bert(const test_folder *f)
{
    att_encoder *m;
    if (att_encoder_open(ctx, f->path, NULL, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Those of make_tiny_bert.py */
static const int32_t ids[] = {2, 7, 9, 11, 3, 2, 3, 2, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 3};
static const int64_t offsets[] = {0, 5, 7, 23};
enum { N = 3, TOKENS = 23 };

/* Hidden states of all three sequences in one batch -> y [TOKENS, TINY_HIDDEN] */
static void apply(const att_encoder *m, float *y)
{
    att_tape *t;
    att_tensor x;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    if (att_var_value(t, att_encoder_apply(t, m, ids, offsets, N, NULL), &x))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(x.rank, 2);
    assert_int_equal(x.dim[0], TOKENS);
    assert_int_equal(x.dim[1], TINY_HIDDEN);
    memcpy(y, x.data, TOKENS * TINY_HIDDEN * sizeof *y);
    att_tape_free(t);
}

static void apply_folder(const test_folder *f, float *y)
{
    att_encoder *m = open_bert(f);
    apply(m, y);
    att_encoder_free(m);
}

static void hidden_states_are_those_of_transformers(void **state)
{
    (void)state;
    FILE *golden = fopen("tests/golden/tiny_bert.txt", "r");
    assert_non_null(golden);
    char act[32], setting[40];
    int blocks = 0;
    for (; fscanf(golden, "%31s", act) == 1; blocks++) {
        const test_folder f = tiny_bert();
        float y[TOKENS * TINY_HIDDEN];
        snprintf(setting, sizeof setting, "\"%s\"", act);
        tiny_write_config(&f, "hidden_act", setting);
        apply_folder(&f, y);
        for (int i = 0; i < TOKENS * TINY_HIDDEN; i++) {
            float expected;
            assert_int_equal(fscanf(golden, "%f", &expected), 1);
            /* of order 1, both in f32; a norm divides by deviations of about 1 after each of four halves */
            if (!(fabsf(y[i] - expected) <= 4e-6f))
                fail_msg("%s: [%d] is %.9g, not %.9g", act, i, (double)y[i], (double)expected);
        }
        folder_remove(&f);
    }
    assert_int_equal(blocks, 3);
    fclose(golden);
}

static void names_may_begin_with_bert_and_norms_may_say_gamma(void **state)
{
    (void)state;
    float expected[TOKENS * TINY_HIDDEN], y[TOKENS * TINY_HIDDEN];
    const test_folder f = tiny_bert();
    apply_folder(&f, expected);
    tiny_write_weights(&f, &(const tiny_weights){.prefix = "bert.", .gamma = true, .extra = "pooler.dense.bias"});
    apply_folder(&f, y);
    assert_memory_equal(y, expected, sizeof y);
    tiny_write_weights(&f, &(const tiny_weights){.extra = "embeddings.position_ids"});
    apply_folder(&f, y);
    assert_memory_equal(y, expected, sizeof y);
    folder_remove(&f);
}

static void bf16_weights_give_the_bits_of_the_same_numbers_in_f32(void **state)
{
    (void)state;
    float expected[TOKENS * TINY_HIDDEN], y[TOKENS * TINY_HIDDEN];
    const test_folder f = tiny_bert();
    tiny_write_weights(&f, &(const tiny_weights){.coarse = true});
    apply_folder(&f, expected);
    tiny_write_weights(&f, &(const tiny_weights){.bf16 = true});
    apply_folder(&f, y);
    assert_memory_equal(y, expected, sizeof y);
    folder_remove(&f);
}

static void a_sequence_alone_has_the_bits_it_has_in_a_batch(void **state)
{
    (void)state;
    float batch[TOKENS * TINY_HIDDEN];
    const test_folder f = tiny_bert();
    att_encoder *m = open_bert(&f);
    apply(m, batch);
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (int i = 0; i < N; i++) {
        att_tensor x;
        const int64_t length = offsets[i + 1] - offsets[i];
        att_var *y = att_encoder_apply(t, m, ids + offsets[i], (const int64_t[]){0, length}, 1, NULL);
        assert_int_equal(att_var_value(t, y, &x), ATT_OK);
        assert_memory_equal(x.data, batch + offsets[i] * TINY_HIDDEN, (size_t)length * TINY_HIDDEN * sizeof *batch);
    }
    att_tape_free(t);
    att_encoder_free(m);
    folder_remove(&f);
}

static void a_model_describes_itself(void **state)
{
    (void)state;
    const test_folder f = tiny_bert();
    att_encoder *m = open_bert(&f);
    att_encoder_info info = {.size = sizeof info};
    assert_int_equal(att_encoder_describe(m, &info), ATT_OK);
    assert_int_equal(info.vocabulary, TINY_TOKENS);
    assert_int_equal(info.hidden, TINY_HIDDEN);
    assert_int_equal(info.layers, TINY_LAYERS);
    assert_int_equal(info.heads, TINY_HEADS);
    assert_int_equal(info.intermediate, TINY_INNER);
    assert_int_equal(info.max_positions, TINY_POSITIONS);
    assert_int_equal(info.types, 2);
    assert_string_equal(info.type, "bert");
    assert_false(info.pooler);
    /* of a header without the rest */
    att_encoder_info older = {.size = offsetof(att_encoder_info, layers), .layers = 42};
    assert_int_equal(att_encoder_describe(m, &older), ATT_OK);
    assert_true(older.hidden == TINY_HIDDEN && older.layers == 42);
    assert_int_equal(att_encoder_describe(m, &(att_encoder_info){0}), ATT_ERR_ARGUMENT);
    att_encoder_free(m);
    tiny_write_weights(&f, &(const tiny_weights){.prefix = "bert.", .extra = "pooler.dense.weight"});
    m = open_bert(&f);
    assert_int_equal(att_encoder_describe(m, &info), ATT_OK);
    assert_true(info.pooler);
    att_encoder_free(m);
    folder_remove(&f);
}

/* ---- what is wrong is named */

static void sequences_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        int32_t ids[17];
        int64_t offsets[3], n;
        const char *sentence;
    } wrong[] = {
        {{0}, {0, 17}, 1, "encoder: sequence 0 has 17 tokens but the model has 16 positions"},
        {{1, 40}, {0, 2}, 1, "encoder/embeddings: embedding: ids[1] = 40 but the table has 40 rows"},
        {{1, 2}, {0, 2, 1}, 2, "encoder: offsets[1] = 2 is above offsets[2] = 1"},
        {{1, 2}, {0, 2, INT64_MIN}, 2, "encoder: offsets[1] = 2 is above offsets[2] = -9223372036854775808"},
        {{1, 2}, {1, 2}, 1, "encoder: n = 1 sequences need ids, and offsets from 0"},
    };
    const test_folder f = tiny_bert();
    att_encoder *m = open_bert(&f);
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_tensor x;
        att_tape_reset(t);
        att_var *y = att_encoder_apply(t, m, wrong[i].ids, wrong[i].offsets, wrong[i].n, NULL);
        assert_int_equal(att_var_value(t, y, &x), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].sentence);
    }
    att_tape_free(t);
    att_encoder_free(m);
    folder_remove(&f);
}

/* Opening fails with this status and a sentence that names the file and has these words. */
static void assert_refused(const test_folder *f, att_status expected, const char *file, const char *words)
{
    att_encoder *m = (att_encoder *)&m;
    const att_status s = att_encoder_open(ctx, f->path, NULL, &m);
    assert_null(m);
    check_file_refused(ctx, s, expected, file, words);
}

static void wrong_settings_are_named_with_their_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        att_status status;
        const char *words;
    } wrong[] = {
        {"model_type", "\"deberta\"", ATT_ERR_UNSUPPORTED, "\"model_type\" is \"deberta\""},
        {"model_type", NULL, ATT_ERR_FORMAT, "there is no \"model_type\""},
        {"hidden_size", NULL, ATT_ERR_FORMAT, "there is no \"hidden_size\""},
        {"hidden_size", "\"12\"", ATT_ERR_FORMAT, "\"hidden_size\" is \"12\", not a whole number"},
        {"hidden_size", "12.5", ATT_ERR_FORMAT, "\"hidden_size\" is 12.5, not a whole number"},
        {"hidden_size", "-12", ATT_ERR_FORMAT, "\"hidden_size\" is -12, not in [1, 65536]"},
        {"hidden_size", "1e30", ATT_ERR_FORMAT, "\"hidden_size\" is 1e+30, not in [1, 65536]"},
        {"num_hidden_layers", "0", ATT_ERR_FORMAT, "\"num_hidden_layers\" is 0, not in [1, 1024]"},
        {"num_attention_heads", "5", ATT_ERR_FORMAT,
         "\"num_attention_heads\" is 5, which does not divide \"hidden_size\", 12"},
        {"vocab_size", "99999999999", ATT_ERR_FORMAT, "\"vocab_size\" is 99999999999, not in [1, 134217728]"},
        {"vocab_size", "41", ATT_ERR_SHAPE, "is [40, 12] but by config.json it is [41, 12]"},
        {"intermediate_size", "true", ATT_ERR_FORMAT, "\"intermediate_size\" is true, not a whole number"},
        {"max_position_embeddings", "512", ATT_ERR_SHAPE, "is [16, 12] but by config.json it is [512, 12]"},
        {"layer_norm_eps", "-1", ATT_ERR_FORMAT, "\"layer_norm_eps\" is -1, not in [0, 1]"},
        {"hidden_act", "\"swish\"", ATT_ERR_UNSUPPORTED, "\"hidden_act\" is \"swish\", which is not supported"},
        {"hidden_act", NULL, ATT_ERR_FORMAT, "there is no \"hidden_act\""},
        {"position_embedding_type", "\"relative_key\"", ATT_ERR_UNSUPPORTED,
         "\"relative_key\", which is not supported"},
        {"is_decoder", "true", ATT_ERR_UNSUPPORTED, "\"is_decoder\" is true, which is not supported"},
        {"is_decoder", "1", ATT_ERR_FORMAT, "\"is_decoder\" is 1, not true or false"},
        {"add_cross_attention", "true", ATT_ERR_UNSUPPORTED, "\"add_cross_attention\" is true"},
        {"pruned_heads", "{\"0\": [1]}", ATT_ERR_UNSUPPORTED, "\"pruned_heads\" is {\"0\":[1.0]}"},
        {"num_hidden_layers", "3", ATT_ERR_FORMAT, "there is no tensor \"encoder.layer.2."},
    };
    const test_folder f = tiny_bert();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tiny_write_config(&f, wrong[i].key, wrong[i].value);
        assert_refused(&f, wrong[i].status, f.path, wrong[i].words);
    }
    folder_remove(&f);
}

static void files_that_are_damaged_or_missing_are_named(void **state)
{
    (void)state;
    const test_folder f = tiny_bert();
    folder_write(&f, "config.json", "{\"model_type\": \"bert\", \"hidden_size\": 12,");
    assert_refused(&f, ATT_ERR_FORMAT, "config.json", "line 1, column");
    folder_write(&f, "config.json", "{\"model_type\": \"bert\", \"model_type\": \"bert\"}");
    assert_refused(&f, ATT_ERR_FORMAT, "config.json", "duplicate");
    folder_write(&f, "config.json", "[1, 2]");
    assert_refused(&f, ATT_ERR_FORMAT, "config.json", "is not a JSON object");
    folder_write(&f, "config.json", "");
    assert_refused(&f, ATT_ERR_FORMAT, "config.json", "line 1");
    tiny_delete(&f, "config.json");
    assert_refused(&f, ATT_ERR_IO, "config.json", "No such file");
    folder_write(&f, "config.json/file", "");
    assert_refused(&f, ATT_ERR_IO, "config.json", "is not a file");
    folder_remove(&f);
    assert_refused(&f, ATT_ERR_IO, "config.json", "No such file");
    att_encoder *m;
    assert_int_equal(att_encoder_open(ctx, NULL, NULL, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_encoder_open: folder is NULL");
}

static void tensors_that_do_not_fit_are_named(void **state)
{
    (void)state;
    const test_folder f = tiny_bert();
    tiny_write_weights(&f, &(const tiny_weights){.without = "encoder.layer.1.output.dense.bias"});
    assert_refused(&f, ATT_ERR_FORMAT, "model.safetensors", "there is no tensor \"encoder.layer.1.output.dense.bias\"");
    tiny_write_weights(&f, &(const tiny_weights){.wider = "encoder.layer.0.intermediate.dense.weight"});
    assert_refused(
        &f, ATT_ERR_SHAPE, "model.safetensors",
        "tensor \"encoder.layer.0.intermediate.dense.weight\" is [20, 13] but by config.json it is [20, 12]");
    folder_remove(&f);
}

static void a_folder_with_other_weights_says_how_to_convert_them(void **state)
{
    (void)state;
    const test_folder f = tiny_bert();
    tiny_delete(&f, "model.safetensors");
    assert_refused(&f, ATT_ERR_IO, f.path, "there is no model.safetensors");
    folder_write(&f, "pytorch_model.bin", "x");
    assert_refused(&f, ATT_ERR_UNSUPPORTED, f.path, "save_file");
    folder_write(&f, "model.safetensors.index.json", "{}");
    assert_refused(&f, ATT_ERR_FORMAT, "model.safetensors.index.json", "there is no \"weight_map\"");
    folder_remove(&f);
}

/* Moves the weights into two files; the second one has those of a pooler, too. */
static void split_weights(const test_folder *f)
{
    enum { MAX = 64 };
    static const char *const files[] = {"1.safetensors", "2.safetensors"};
    static float pooler[TINY_HIDDEN * TINY_HIDDEN];
    char path[256];
    const char *name[MAX];
    att_tensor value[MAX];
    att_safetensors *all;
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    assert_int_equal(att_safetensors_open(ctx, path, &all), ATT_OK);
    int64_t n = att_safetensors_count(all);
    assert_in_range(n, 2, MAX - 2);
    for (int64_t i = 0; i < n; i++) {
        name[i] = att_safetensors_name(all, i);
        assert_int_equal(att_safetensors_get(all, name[i], &value[i]), ATT_OK);
    }
    for (int i = 0; i < TINY_HIDDEN * TINY_HIDDEN; i++)
        pooler[i] = (float)i;
    name[n] = "bert.pooler.dense.weight";
    att_wrap(&value[n++], pooler, ATT_F32, ATT_DIMS(TINY_HIDDEN, TINY_HIDDEN), NULL);
    FILE *index = folder_open(f, "model.safetensors.index.json");
    for (int64_t i = 0; i < n; i++)
        fprintf(index, "%s\"%s\": \"%s\"", i ? ", " : "{\"weight_map\": {", name[i], files[i >= n / 2]);
    fprintf(index, "}}");
    assert_int_equal(fclose(index), 0);
    for (int i = 0; i < 2; i++) {
        const int64_t first = i ? n / 2 : 0;
        snprintf(path, sizeof path, "%s/%s", f->path, files[i]);
        assert_int_equal(att_safetensors_write(ctx, path, i ? n - first : n / 2, name + first, value + first, NULL),
                         ATT_OK);
    }
    att_safetensors_free(all);
    tiny_delete(f, "model.safetensors");
}

static void a_model_in_several_files_is_written_to_one_with_its_pooler(void **state)
{
    (void)state;
    const test_folder f = tiny_bert(), written = tiny_bert();
    float before[TOKENS * TINY_HIDDEN], after[TOKENS * TINY_HIDDEN];
    char path[256];
    att_encoder *m;
    att_safetensors *file;
    att_tensor pooler;
    apply_folder(&f, before);
    split_weights(&f);
    tiny_delete(&written, "model.safetensors");
    if (att_encoder_open_for_training(ctx, f.path, NULL, &m) || att_encoder_write_weights(m, f.path, written.path, 0))
        fail_msg("%s", att_error(ctx));
    att_encoder_free(m);
    apply_folder(&written, after);
    assert_memory_equal(before, after, sizeof before);
    snprintf(path, sizeof path, "%s/model.safetensors", written.path);
    assert_int_equal(att_safetensors_open(ctx, path, &file), ATT_OK);
    assert_int_equal(att_safetensors_get(file, "pooler.dense.weight", &pooler), ATT_OK);
    assert_true(((const float *)pooler.data)[TINY_HIDDEN + 1] == TINY_HIDDEN + 1);
    att_safetensors_free(file);
    folder_remove(&f);
    folder_remove(&written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_states_are_those_of_transformers),
        cmocka_unit_test(names_may_begin_with_bert_and_norms_may_say_gamma),
        cmocka_unit_test(bf16_weights_give_the_bits_of_the_same_numbers_in_f32),
        cmocka_unit_test(a_sequence_alone_has_the_bits_it_has_in_a_batch),
        cmocka_unit_test(a_model_describes_itself),
        cmocka_unit_test(sequences_that_do_not_fit_are_named),
        cmocka_unit_test(wrong_settings_are_named_with_their_values),
        cmocka_unit_test(files_that_are_damaged_or_missing_are_named),
        cmocka_unit_test(tensors_that_do_not_fit_are_named),
        cmocka_unit_test(a_folder_with_other_weights_says_how_to_convert_them),
        cmocka_unit_test(a_model_in_several_files_is_written_to_one_with_its_pooler),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
