/* Text classifiers that are written, or made for other labels; and failing allocations. */
// labels: threads
#include "fixtures/fail_alloc.h"
#include "fixtures/fail_malloc.h"
#include "fixtures/text_classifier.h"

/* ---- writing, and other labels */

static att_text_classifier *relabel(const char *folder, int64_t n, const char *const *names)
{
    att_text_classifier *m;
    const att_text_labels l = {.size = sizeof l, .n = n, .names = names, .seed = 5};
    if (att_text_classifier_new(ctx, folder, &l, NULL, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Writes a model to `folder`/out, opens that, and compares the scores. */
static void check_written(const att_text_classifier *m, const test_folder *f, int64_t labels)
{
    char path[100];
    float y[TEXTS * MAX_LABELS], again[TEXTS * MAX_LABELS];
    snprintf(path, sizeof path, "%s/out", f->path);
    assert_int_equal(att_text_classifier_write(m, path, ATT_F32), ATT_OK);
    att_text_classifier *written = open_classifier(ctx, path);
    assert_int_equal(describe(written).labels, labels);
    assert_int_equal(describe(written).activation, describe(m).activation);
    assert_int_equal(describe(written).max_tokens, describe(m).max_tokens);
    for (int64_t i = 0; i < labels; i++)
        assert_string_equal(att_text_classifier_label(written, i), att_text_classifier_label(m, i));
    classify(m, ATT_TEXT_ACTIVATION_MODEL, y);
    classify(written, ATT_TEXT_ACTIVATION_MODEL, again);
    assert_memory_equal(y, again, (size_t)(TEXTS * labels) * sizeof *y);
    att_safetensors *file;
    char weights[120];
    snprintf(weights, sizeof weights, "%s/model.safetensors", path);
    assert_int_equal(att_safetensors_open(ctx, weights, &file), ATT_OK);
    assert_true(att_safetensors_find(file, "bert.pooler.dense.weight") >= 0);
    assert_true(att_safetensors_find(file, "bert.encoder.layer.1.output.dense.bias") >= 0);
    assert_true(att_safetensors_find(file, "classifier.weight") >= 0);
    assert_int_equal(att_safetensors_count(file), 41);
    att_safetensors_free(file);
    att_text_classifier_free(written);
}

static void a_model_is_written_as_it_is(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(3);
    tiny_write_classifier_config(&f, 3, "0", "sbert_ce_default_activation_function", CLASS("activation.Sigmoid"));
    att_text_classifier *m;
    assert_int_equal(att_text_classifier_open_for_training(ctx, f.path, NULL, &m), ATT_OK);
    assert_int_equal(describe(m).activation, ATT_TEXT_ACTIVATION_SIGMOID);
    check_written(m, &f, 3);
    assert_true(att_nn_params_trainable(att_text_classifier_params(m)));
    assert_non_null(att_nn_params_find(att_text_classifier_params(m), "classifier.output.weight"));
    att_text_classifier_free(m);
    m = open_classifier(ctx, f.path);
    assert_int_equal(att_text_classifier_write(m, f.path, ATT_F32), ATT_ERR_ARGUMENT);
    check_message(ctx, "the model comes from att_text_classifier_open, and is not trainable");
    att_text_classifier_free(m);
    folder_remove(&f);
}

static const float *values(const att_text_classifier *m, const char *name)
{
    const att_param *p = att_nn_params_find(att_text_classifier_params(m), name);
    assert_non_null(p);
    return att_param_value(p)->data;
}

/* What the folder has of the classifier stays; the rest is new, small, and the same for a seed. */
static void a_model_for_other_labels_has_a_new_classifier(void **state)
{
    (void)state;
    static const char *const swapped[] = {"neutral", "entailment", "contradiction"}, *const same[] = {"contradiction",
                                                                                                      "entailment",
                                                                                                      "neutral"};
    const test_folder f = tiny_text_classifier(3), plain = tiny_sentence();
    att_text_classifier *own = relabel(f.path, 3, NULL), *named = relabel(f.path, 3, same),
                        *other = relabel(f.path, 3, swapped), *one = relabel(f.path, 1, NULL),
                        *sentence = relabel(plain.path, 1, NULL), *twice = relabel(plain.path, 1, NULL);
    const float *head = values(own, "classifier.output.weight");
    assert_true(head[5] == tiny_number("classifier.weight", 5));
    assert_memory_equal(values(named, "classifier.output.weight"), head, 3 * TINY_HIDDEN * sizeof(float));
    assert_true(values(other, "classifier.output.weight")[5] != head[5]);
    assert_string_equal(att_text_classifier_label(other, 0), "neutral");
    assert_true(values(other, "classifier.dense.weight")[5] == tiny_number("pooler.dense.weight", 5));
    assert_int_equal(describe(one).labels, 1);
    assert_int_equal(describe(one).activation, ATT_TEXT_ACTIVATION_SIGMOID);
    assert_string_equal(att_text_classifier_label(one, 0), "LABEL_0");
    assert_memory_equal(values(sentence, "classifier.output.weight"), values(twice, "classifier.output.weight"),
                        TINY_HIDDEN * sizeof(float));
    for (int i = 0; i < TINY_HIDDEN; i++) {
        const float w = values(sentence, "classifier.output.weight")[i];
        assert_true(w != 0 && fabsf(w) < 0.12f); /* six standard deviations */
    }
    assert_true(values(sentence, "classifier.output.bias")[0] == 0);
    check_written(one, &f, 1);
    check_written(other, &f, 3);
    check_written(sentence, &plain, 1);
    att_text_classifier *const all[] = {own, named, other, one, sentence, twice};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_text_classifier_free(all[i]);
    folder_remove(&f);
    folder_remove(&plain);
}

/* One family has a norm in its classifier, which begins with weights of 1; EmbeddingGemma has no classifier. */
static void each_kind_of_encoder_gets_a_classifier(void **state)
{
    (void)state;
    static const char *const encoders[] = {"bert_xlmr", "roberta",    "xlm_roberta",   "camembert", "distilbert",
                                           "mpnet",     "modernbert", "modernbert_ja", "nomic_bert"};
    const test_folder f = folder_new();
    char folder[100];
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        float y[TEXTS], again[TEXTS];
        snprintf(folder, sizeof folder, "tests/golden/encoders/%s", encoders[i]);
        att_text_classifier *m = relabel(folder, 1, NULL);
        if (!strcmp(encoders[i], "modernbert_ja"))
            for (int64_t k = 0; k < describe(m).hidden; k++)
                assert_true(values(m, "classifier.norm.weight")[k] == 1 && values(m, "classifier.norm.bias")[k] == 0);
        if (att_text_classifier_write(m, f.path, ATT_F32))
            fail_msg("%s: %s", folder, att_error(ctx));
        att_text_classifier *written = open_classifier(ctx, f.path);
        classify(m, ATT_TEXT_ACTIVATION_MODEL, y);
        classify(written, ATT_TEXT_ACTIVATION_MODEL, again);
        assert_true(y[0] != y[1]);
        assert_memory_equal(y, again, sizeof y);
        att_text_classifier_free(written);
        att_text_classifier_free(m);
        snprintf(folder, sizeof folder, "rm -f %s/*", f.path);
        assert_int_equal(system(folder), 0);
    }
    folder_remove(&f);
    att_text_classifier *m;
    const att_text_labels one = {.size = sizeof one, .n = 1};
    assert_int_equal(att_text_classifier_new(ctx, "tests/golden/encoders/gemma3_text", &one, NULL, &m),
                     ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"model_type\" is \"gemma3_text\", an encoder whose classifier is not supported");
}

static void labels_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const null[] = {"a", NULL}, *const twice[] = {"a", "a"}, *const bytes[] = {"\xff"};
    const struct {
        att_text_labels labels;
        const char *says;
    } cases[] = {{{.n = 0}, "labels.n is 0, not from 1"},
                 {{.n = 2, .names = null}, "labels.names[1] is NULL"},
                 {{.n = 2, .names = twice}, "labels.names has \"a\" twice"},
                 {{.n = 1, .names = bytes}, "labels.names[0] is not UTF-8"}};
    const test_folder f = tiny_text_classifier(3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_text_labels l = cases[i].labels;
        att_text_classifier *m;
        l.size = sizeof l;
        assert_int_equal(att_text_classifier_new(ctx, f.path, &l, NULL, &m), ATT_ERR_ARGUMENT);
        check_message(ctx, cases[i].says);
    }
    folder_remove(&f);
}

static void frozen_parts_of_a_new_classifier_are_found(void **state)
{
    (void)state;
    static const char *const encoder[] = {"embeddings", "layer"}, *const wrong[] = {"head"};
    const test_folder f = tiny_sentence();
    const att_text_labels l = {.size = sizeof l, .n = 1};
    att_text_classifier *m;
    assert_int_equal(att_text_classifier_new(ctx, f.path, &l,
                                             ATT_OPTIONS(att_trainable_options, .freeze = encoder, .n_freeze = 2), &m),
                     ATT_OK);
    const att_nn_params *p = att_text_classifier_params(m);
    assert_true(att_param_frozen(att_nn_params_find(p, "layer.1.attention.key.weight")));
    assert_false(att_param_frozen(att_nn_params_find(p, "classifier.dense.weight")));
    att_text_classifier_free(m);
    assert_int_equal(att_text_classifier_new(ctx, f.path, &l,
                                             ATT_OPTIONS(att_trainable_options, .freeze = wrong, .n_freeze = 1), &m),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "classifier");
    folder_remove(&f);
}

/* ---- failing allocations */

/* Opens, classifies, ranks, traces, makes other labels, writes, closes. */
static att_status everything(const att_config *cfg, const char *folder, float y[PAIRS * 3])
{
    att_ctx *c = NULL;
    att_text_classifier *m = NULL, *new = NULL;
    att_trace *trace = NULL;
    att_ranked_text best[PAIRS];
    char out[100];
    const att_text_labels l = {.size = sizeof l, .n = 1};
    const att_text_classify_options o = {.size = sizeof o, .pairs = second};
    snprintf(out, sizeof out, "%s/out", folder);
    att_status s = att_open(&c, cfg);
    s = s ? s : att_text_classifier_open(c, folder, NULL, &m);
    s = s ? s : att_text_classify(m, PAIRS, first, NULL, &o, y);
    s = s ? s : att_text_classifier_trace(m, "a", 1, "b", 1, NULL, &trace);
    s = s ? s : att_text_classifier_new(c, folder, &l, NULL, &new);
    s = s ? s : att_text_rank(new, "a", 1, PAIRS, second, NULL, NULL, best);
    s = s ? s : att_text_classifier_write(new, out, ATT_F32);
    att_trace_free(trace);
    att_text_classifier_free(new);
    att_text_classifier_free(m);
    att_close(c);
    return s;
}

static void a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(3);
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        float y[PAIRS * 3];
        s = everything(ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&a)), f.path, y);
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

static void a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    if (!FAIL_MALLOC_WORKS)
        skip();
    const test_folder f = tiny_text_classifier(3);
    const att_config *cfg = ATT_OPTIONS(att_config, .n_threads = 1);
    float expected[PAIRS * 3], y[PAIRS * 3];
    assert_int_equal(everything(cfg, f.path, expected), ATT_OK);
    long at = 0;
    do {
        malloc_fails_at(++at);
        const att_status s = everything(cfg, f.path, y);
        malloc_fails_never();
        if (malloc_live != 0)
            fail_msg("failing at %ld leaves %ld blocks", at, (long)malloc_live);
        if (s && s != ATT_ERR_MEMORY && s != ATT_ERR_IO)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        else if (!s)
            assert_memory_equal(y, expected, sizeof y);
    } while (malloc_calls >= at);
    assert_true(at > 100);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_written_as_it_is),
        cmocka_unit_test(a_model_for_other_labels_has_a_new_classifier),
        cmocka_unit_test(each_kind_of_encoder_gets_a_classifier),
        cmocka_unit_test(labels_that_cannot_be_are_refused),
        cmocka_unit_test(frozen_parts_of_a_new_classifier_are_found),
        cmocka_unit_test(a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
