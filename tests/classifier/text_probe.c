/* Probes on the embeddings of texts: the folder classifies as the probe of the vectors does, and is one of text
 * classifiers. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "fixtures/tiny_model.h"

#include "attend_sentence.h"
#include "attend_text_classifier.h"

#define MODEL "tests/golden/tiny_sentence"
enum { TEXTS = 12, CLASSES = 2 };
static const char *const texts[TEXTS] = {"a b", "b a", "a b a", "b b", "a", "b",
                                         "c d", "d c", "c c d", "d d", "c", "d"};
static const int32_t labels[TEXTS] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
static const char *const names[CLASSES] = {"first", "second"};

static att_text_probe_options options_of(const att_probe_options *o)
{
    return (att_text_probe_options){.size = sizeof(att_text_probe_options),
                                    .n = TEXTS,
                                    .texts = texts,
                                    .labels = labels,
                                    .classes = CLASSES,
                                    .names = names,
                                    .probe = o};
}

static void check(att_probe_kind kind)
{
    static float vectors[TEXTS * 512], scores[TEXTS * CLASSES], out[TEXTS * CLASSES], of_one[CLASSES];
    const test_folder parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .kind = kind, .c = 10, .neighbors = 3};
    const att_text_probe_options options = options_of(&o);
    char folder[200];
    att_text_classifier *m;
    att_text_classifier_info info = {.size = sizeof info};
    att_sentence *s;
    att_sentence_info sentence = {.size = sizeof sentence};
    att_model_identity id = {.size = sizeof id};
    att_probe *p;
    snprintf(folder, sizeof folder, "%s/probe", parent.path);
    if (att_text_probe_train(ctx, MODEL, folder, &options, NULL))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_model_identify(ctx, folder, &id), ATT_OK);
    assert_int_equal(id.subject, ATT_SUBJECT_CLASSIFIER);
    if (att_text_classifier_open(ctx, folder, ATT_OPTIONS(att_model_options, .prepare = true), &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_text_classifier_describe(m, &info), ATT_OK);
    assert_int_equal(info.labels, CLASSES);
    assert_string_equal(att_text_classifier_label(m, 1), "second");
    assert_non_null(att_text_classifier_tokenizer(m));
    assert_non_null(att_text_classifier_params(m));

    assert_int_equal(att_sentence_open(ctx, folder, NULL, &s), ATT_OK); /* it is also that */
    assert_int_equal(att_sentence_describe(s, &sentence), ATT_OK);
    assert_int_equal(att_sentence_embed(s, TEXTS, texts, NULL, NULL, vectors), ATT_OK);
    const att_probe_data d = {
        .size = sizeof d, .n = TEXTS, .dim = sentence.dim, .classes = CLASSES, .vectors = vectors, .labels = labels};
    assert_int_equal(att_probe_fit(ctx, &d, NULL, &o, &p), ATT_OK);
    assert_int_equal(att_probe_scores(p, TEXTS, vectors, scores), ATT_OK);
    assert_int_equal(att_text_classify(m, TEXTS, texts, NULL, NULL, out), ATT_OK);
    assert_memory_equal(out, scores, sizeof out);
    const att_text_classify_options softmax = {.size = sizeof softmax, .activation = ATT_TEXT_ACTIVATION_SOFTMAX};
    for (int i = 0; i < TEXTS; i++) { /* a float of the softmax is off by its rounding, 2^-24 */
        const double a = exp((double)scores[2 * i]), b = exp((double)scores[2 * i + 1]);
        assert_int_equal(att_text_classify(m, 1, texts + i, NULL, &softmax, of_one), ATT_OK);
        assert_true(fabs((double)of_one[1] - b / (a + b)) < 0x1p-23);
    }
    att_probe_free(p);
    att_sentence_free(s);
    att_text_classifier_free(m);
    folder_remove(&parent);
}

static void a_folder_with_a_probe_classifies_texts(void **state)
{
    (void)state;
    check(ATT_PROBE_KIND_LINEAR);
    check(ATT_PROBE_KIND_NEIGHBORS);
}

static void given_tokens_have_the_scores_of_their_texts(void **state)
{
    (void)state;
    enum { MANY = 1100 }; /* more than two blocks */
    static float out[2][MANY * CLASSES];
    static const char *many[MANY];
    static int32_t ids[MANY * 16];
    static int64_t offsets[MANY + 1];
    const test_folder parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .c = 1};
    const att_text_probe_options options = options_of(&o);
    char folder[200];
    att_text_classifier *m;
    snprintf(folder, sizeof folder, "%s/probe", parent.path);
    assert_int_equal(att_text_probe_train(ctx, MODEL, folder, &options, NULL), ATT_OK);
    assert_int_equal(att_text_classifier_open(ctx, folder, NULL, &m), ATT_OK);
    for (int i = 0; i < MANY; i++) {
        att_tokens tokens;
        many[i] = texts[i % TEXTS];
        assert_int_equal(att_tokenize(att_text_classifier_tokenizer(m), many[i], strlen(many[i]), NULL, &tokens),
                         ATT_OK);
        memcpy(ids + offsets[i], tokens.ids, (size_t)tokens.count * sizeof *ids);
        offsets[i + 1] = offsets[i] + tokens.count;
        att_tokens_free(ctx, &tokens);
    }
    const att_text_classify_options given = {.size = sizeof given, .ids = ids, .offsets = offsets};
    assert_int_equal(att_text_classify(m, MANY, many, NULL, NULL, out[0]), ATT_OK);
    assert_int_equal(att_text_classify(m, MANY, NULL, NULL, &given, out[1]), ATT_OK);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    att_text_classifier_free(m);
    folder_remove(&parent);
}

static void what_a_probe_cannot_do_is_refused(void **state)
{
    (void)state;
    static float out[TEXTS * CLASSES];
    const test_folder parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .c = 1};
    att_text_probe_options options = options_of(&o);
    char folder[200];
    att_text_classifier *m, *none;
    att_trace *t;
    att_ranked_text ranked[1];
    snprintf(folder, sizeof folder, "%s/probe", parent.path);
    assert_int_equal(att_text_probe_train(ctx, MODEL, folder, &options, NULL), ATT_OK);
    assert_int_equal(att_text_probe_train(ctx, MODEL, folder, &options, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "is not empty");
    assert_int_equal(att_text_classifier_open(ctx, folder, NULL, &m), ATT_OK);
    const att_text_classify_options pairs = {.size = sizeof pairs, .pairs = texts},
                                    shorter = {.size = sizeof shorter, .max_tokens = 3};
    assert_int_equal(att_text_classify(m, 1, texts, NULL, &pairs, out), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.pairs are given, but the model is a probe");
    assert_int_equal(att_text_classify(m, 1, texts, NULL, &shorter, out), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.max_tokens is 3, but the probe was trained on texts of at most");
    assert_int_equal(att_text_rank(m, "a", 1, 1, texts, NULL, NULL, ranked), ATT_ERR_ARGUMENT);
    assert_int_equal(att_text_classifier_trace(m, "a", 1, NULL, 0, NULL, &t), ATT_ERR_UNSUPPORTED);
    assert_int_equal(att_text_classifier_open_for_training(ctx, folder, NULL, &none), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "is a probe of a sentence model, which is not trained further");
    att_text_classifier_free(m);

    static const char *const same[] = {"a", "a"};
    static const int32_t only_first[TEXTS] = {0};
    snprintf(folder, sizeof folder, "%s/other", parent.path);
    options.names = same;
    assert_int_equal(att_text_probe_train(ctx, MODEL, folder, &options, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "two classes have the name \"a\"");
    options.names = names;
    options.labels = only_first;
    assert_int_equal(att_text_probe_train(ctx, MODEL, folder, &options, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "class \"second\" has no text for training");
    folder_remove(&parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_with_a_probe_classifies_texts),
        cmocka_unit_test(given_tokens_have_the_scores_of_their_texts),
        cmocka_unit_test(what_a_probe_cannot_do_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
