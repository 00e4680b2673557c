/* Text classifiers of each family, as transformers saved them (tests/golden/make_text_classifier_families.py): ids of
 * texts and of truncated pairs, logits, and the scores of CrossEncoder. With folders as arguments it prints for each
 * one the greatest error, and that of transformers' own float32: for check_text_classifier_families.py. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "attend_text_classifier.h"
#include "attend_trace.h"
#include "io/atomic_write.h"
#include "io/file.h"

#include <jansson.h>

#define FOLDERS "tests/golden/classifiers/"
static const char *const families[] = {"bert",  "bert_xlmr",  "roberta",         "xlm_roberta", "distilbert",
                                       "mpnet", "modernbert", "modernbert_mean", "nomic_bert"};
enum { FAMILIES = sizeof families / sizeof families[0], MAX_LABELS = 16 };

typedef struct expected {
    const char *folder;
    att_text_classifier *model;
    att_text_classifier_info info;
    double f32, worst; /* errors of transformers in float32, and ours so far */
} expected;

static double number(const json_t *line, const char *key)
{
    const json_t *x = json_object_get(line, key);
    assert_true(json_is_number(x));
    return json_number_value(x);
}

static void check_ids(const expected *e, const json_t *line, const int32_t *is, int64_t n, const char *key)
{
    const json_t *wanted = json_object_get(line, key);
    if (json_is_null(wanted))
        return;
    if ((int64_t)json_array_size(wanted) != n)
        fail_msg("%s: \"%s\": %lld %s, not %d", e->folder, json_string_value(json_object_get(line, "text")),
                 (long long)n, key, (int)json_array_size(wanted));
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(is[i], json_integer_value(json_array_get(wanted, (size_t)i)));
}

static void compare(expected *e, const json_t *line, const char *key, const float *is)
{
    const json_t *wanted = json_object_get(line, key);
    assert_int_equal(json_array_size(wanted), e->info.labels);
    for (int64_t i = 0; i < e->info.labels; i++) {
        const double error = fabs((double)is[i] - json_number_value(json_array_get(wanted, (size_t)i)));
        if (!(error < 1e-3))
            fail_msg("%s: \"%s\": %s[%lld] is %.9g, not %.9g", e->folder,
                     json_string_value(json_object_get(line, "text")), key, (long long)i, (double)is[i],
                     json_number_value(json_array_get(wanted, (size_t)i)));
        e->worst = fmax(e->worst, error);
    }
}

static void check_line(expected *e, const json_t *line)
{
    const char *text = json_string_value(json_object_get(line, "text")),
               *pair = json_string_value(json_object_get(line, "pair"));
    const att_tokenizer *t = att_text_classifier_tokenizer(e->model);
    const att_tokenize_options how = {.size = sizeof how, .max_tokens = e->info.max_tokens};
    att_text_classify_options o = {.size = sizeof o, .pairs = pair ? &pair : NULL};
    float y[MAX_LABELS];
    att_tokens tokens;
    assert_int_equal(pair ? att_tokenize_pair(t, text, strlen(text), pair, strlen(pair), &how, &tokens)
                          : att_tokenize(t, text, strlen(text), &how, &tokens),
                     ATT_OK);
    check_ids(e, line, tokens.ids, tokens.count, "ids");
    if (pair)
        check_ids(e, line, tokens.type_ids, tokens.count, "types");
    att_tokens_free(ctx, &tokens);
    if (att_text_classify(e->model, 1, &text, NULL, &o, y))
        fail_msg("%s", att_error(ctx));
    compare(e, line, "scores", y);
    o.activation = ATT_TEXT_ACTIVATION_IDENTITY;
    assert_int_equal(att_text_classify(e->model, 1, &text, NULL, &o, y), ATT_OK);
    compare(e, line, "logits", y);
}

static void check_head(expected *e, const json_t *line)
{
    const char *activation = json_string_value(json_object_get(line, "activation"));
    e->f32 = number(line, "f32");
    assert_int_equal(e->info.labels, (int64_t)number(line, "labels"));
    assert_int_equal(e->info.max_tokens, (int64_t)number(line, "max_tokens"));
    assert_int_equal(e->info.activation,
                     strcmp(activation, "Sigmoid") ? ATT_TEXT_ACTIVATION_IDENTITY : ATT_TEXT_ACTIVATION_SIGMOID);
}

/* All of a folder's expected.jsonl */
static expected check_folder(const char *folder)
{
    expected e = {.folder = folder, .info = {.size = sizeof e.info}};
    char path[4096];
    static char line[1 << 18];
    snprintf(path, sizeof path, "%s/expected.jsonl", folder);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be read", path);
    if (att_text_classifier_open(ctx, folder, NULL, &e.model))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_text_classifier_describe(e.model, &e.info), ATT_OK);
    assert_true(e.info.labels <= MAX_LABELS);
    for (int i = 0; fgets(line, sizeof line, f); i++) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        (i ? check_line : check_head)(&e, object);
        json_decref(object);
    }
    fclose(f);
    att_text_classifier_free(e.model);
    if (!(e.worst <= 8 * e.f32))
        fail_msg("%s: the greatest error is %.3g, but that of float32 %.3g", folder, e.worst, e.f32);
    return e;
}

static void classifiers_have_the_ids_and_scores_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        char folder[100];
        snprintf(folder, sizeof folder, FOLDERS "%s", families[i]);
        const expected e = check_folder(folder);
        print_message("%s: off by %.1e, float32 of transformers by %.1e\n", families[i], e.worst, e.f32);
    }
}

/* The output of a trace begins at the last layer's hidden states: an encoder's last norm is a part of it. */
static void a_trace_of_each_family_has_the_logits(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        const char *text = "The sky is blue.", *pair = "a cat";
        const att_text_classify_options o = {
            .size = sizeof o, .pairs = &pair, .activation = ATT_TEXT_ACTIVATION_IDENTITY};
        char folder[100];
        float y[MAX_LABELS], traced[MAX_LABELS];
        att_text_classifier *m;
        att_trace *t;
        att_text_classifier_info info = {.size = sizeof info};
        snprintf(folder, sizeof folder, FOLDERS "%s", families[i]);
        assert_int_equal(att_text_classifier_open(ctx, folder, NULL, &m), ATT_OK);
        assert_int_equal(att_text_classifier_describe(m, &info), ATT_OK);
        assert_int_equal(att_text_classify(m, 1, &text, NULL, &o, y), ATT_OK);
        assert_int_equal(att_text_classifier_trace(m, text, strlen(text), pair, strlen(pair), NULL, &t), ATT_OK);
        assert_int_equal(att_trace_output(t, -1, 0, 1, traced), ATT_OK);
        for (int64_t k = 0; k < info.labels; k++)
            check_near((double)y[k], traced[k], 1e-5, "%s: logit %d", families[i], (int)k);
        att_trace_free(t);
        att_text_classifier_free(m);
    }
}

/* Two files have the same tensors, but for their types. */
static void compare_tensors(const char *folder, const char *other)
{
    char path[2][300];
    att_safetensors *f[2];
    snprintf(path[0], sizeof path[0], "%s/model.safetensors", folder);
    snprintf(path[1], sizeof path[1], "%s/model.safetensors", other);
    for (int i = 0; i < 2; i++)
        assert_int_equal(att_safetensors_open(ctx, path[i], &f[i]), ATT_OK);
    for (int64_t i = 0; i < att_safetensors_count(f[0]); i++) {
        const char *name = att_safetensors_name(f[0], i);
        att_tensor x[2];
        if (att_safetensors_get(f[0], name, &x[0]) || att_safetensors_get(f[1], name, &x[1]))
            fail_msg("%s: %s", folder, att_error(ctx));
        assert_int_equal(x[0].rank, x[1].rank);
        assert_memory_equal(x[0].dim, x[1].dim, (size_t)x[0].rank * sizeof *x[0].dim);
    }
    assert_int_equal(att_safetensors_count(f[0]), att_safetensors_count(f[1]));
    for (int i = 0; i < 2; i++)
        att_safetensors_free(f[i]);
}

/* The settings that were integers are the same integers: `transformers` refuses "vocab_size": 40.0. The weights, which
 * are written in f32, are computed with in f32. */
static void compare_settings(const char *folder, const char *other)
{
    char path[2][300];
    json_t *settings[2], *x;
    const char *key;
    int integers = 0;
    snprintf(path[0], sizeof path[0], "%s/config.json", folder);
    snprintf(path[1], sizeof path[1], "%s/config.json", other);
    for (int i = 0; i < 2; i++)
        assert_non_null(settings[i] = json_load_file(path[i], 0, NULL));
    json_object_foreach(settings[0], key, x) if (json_is_integer(x))
    {
        integers++;
        if (!json_equal(x, json_object_get(settings[1], key)))
            fail_msg("%s: \"%s\" is another one", folder, key);
    }
    assert_true(integers >= 5);
    assert_string_equal(json_string_value(json_object_get(settings[1], "dtype")), "float32");
    for (int i = 0; i < 2; i++)
        json_decref(settings[i]);
}

/* Opened for training and written, a model has the same bits, and its file the names of transformers. */
static void classifiers_are_written_as_they_are(void **state)
{
    (void)state;
    static const char *const texts[] = {"The sky is blue.", "a cat"}, *const pairs[] = {"a cat", "x"};
    const test_folder out = folder_new();
    for (int i = 0; i < FAMILIES; i++) {
        char folder[100];
        float y[2 * MAX_LABELS], again[2 * MAX_LABELS];
        att_text_classifier *m, *written;
        const att_text_classify_options o = {.size = sizeof o, .pairs = pairs};
        att_text_classifier_info info = {.size = sizeof info};
        snprintf(folder, sizeof folder, FOLDERS "%s", families[i]);
        assert_int_equal(att_text_classifier_open_for_training(ctx, folder, NULL, &m), ATT_OK);
        assert_int_equal(att_text_classifier_describe(m, &info), ATT_OK);
        assert_int_equal(att_text_classify(m, 2, texts, NULL, &o, y), ATT_OK);
        assert_int_equal(att_text_classifier_write(m, out.path, ATT_F32), ATT_OK);
        if (att_text_classifier_open(ctx, out.path, NULL, &written))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(att_text_classify(written, 2, texts, NULL, &o, again), ATT_OK);
        assert_memory_equal(y, again, (size_t)(2 * info.labels) * sizeof *y);
        compare_tensors(folder, out.path);
        compare_settings(folder, out.path);
        att_text_classifier_free(written);
        att_text_classifier_free(m);
        char command[100];
        snprintf(command, sizeof command, "rm -f %s/*", out.path);
        assert_int_equal(system(command), 0);
    }
    folder_remove(&out);
}

/* XLM-R's tokenizer may be in sentencepiece.bpe.model alone. */
static void a_classifier_is_written_with_all_files_of_tokenizers(void **state)
{
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                        NULL};
    static const char *const more[] = {"sentencepiece.bpe.model", "special_tokens_map.json", "vocab.txt"};
    const test_folder f = folder_new(), out = folder_new();
    att_text_classifier *m;
    char path[300];
    assert_int_equal(att_copy_files(ctx, FOLDERS "xlm_roberta", f.path, files, 3), ATT_OK);
    for (int i = 0; i < 3; i++)
        folder_write(&f, more[i], "{}");
    if (att_text_classifier_open_for_training(ctx, f.path, NULL, &m) || att_text_classifier_write(m, out.path, ATT_F32))
        fail_msg("%s", att_error(ctx));
    att_text_classifier_free(m);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", out.path, more[i]);
        if (!att_is_file(path))
            fail_msg("%s was not written", path);
    }
    folder_remove(&f);
    folder_remove(&out);
}

static int print_errors(int n, char **folders)
{
    open_context(NULL);
    for (int i = 0; i < n; i++) {
        const expected e = check_folder(folders[i]);
        printf("%s %.9g %.9g\n", folders[i], e.worst, e.f32);
    }
    return close_context(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers_have_the_ids_and_scores_of_transformers),
        cmocka_unit_test(a_trace_of_each_family_has_the_logits),
        cmocka_unit_test(classifiers_are_written_as_they_are),
        cmocka_unit_test(a_classifier_is_written_with_all_files_of_tokenizers),
    };
    return argc > 1 ? print_errors(argc - 1, argv + 1) : cmocka_run_group_tests(tests, open_context, close_context);
}
