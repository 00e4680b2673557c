/* Text classifiers: logits of transformers, activations and labels of folders, ranks, traces, and what is wrong. */
// labels: threads
#include "fixtures/text_classifier.h"

/* ---- scores */

/* float32 of transformers is off by 2.5e-7: eight times that */
static void logits_are_those_of_transformers(void **state)
{
    (void)state;
    const float tolerance = 2e-6f;
    FILE *golden = fopen("tests/golden/tiny_text_classifier.txt", "r");
    assert_non_null(golden);
    for (int labels = 1; labels <= 3; labels += 2) {
        const test_folder f = tiny_text_classifier(labels);
        double expected[TEXTS * MAX_LABELS];
        for (int i = 0; i < TEXTS * labels; i++)
            assert_int_equal(fscanf(golden, "%lf", &expected[i]), 1);
        for (att_ctx *c = NULL; check_next_context(&c, 2);) {
            float y[TEXTS * MAX_LABELS];
            att_text_classifier *m = open_classifier(c, f.path);
            classify(m, ATT_TEXT_ACTIVATION_IDENTITY, y);
            for (int i = 0; i < TEXTS * labels; i++)
                if (!(fabs((double)y[i] - expected[i]) <= (double)tolerance))
                    fail_msg("%s, %d labels: [%d] is %.9g, not %.9g", att_isa(c), labels, i, (double)y[i], expected[i]);
            att_text_classifier_free(m);
        }
        folder_remove(&f);
    }
    fclose(golden);
}

static void a_score_has_the_same_bits_with_any_threads_alone_or_in_a_batch_and_of_ids(void **state)
{
    (void)state;
    enum { MANY = 300 };
    const test_folder f = tiny_text_classifier(3);
    static float expected[MANY * 3], y[MANY * 3];
    const char *a[MANY], *b[MANY];
    for (int i = 0; i < MANY; i++) {
        a[i] = first[i % PAIRS];
        b[i] = second[i * 7 % PAIRS];
    }
    for (int threads = 1; threads <= 5; threads += 2) {
        att_ctx *c = check_open(NULL, threads);
        att_text_classifier *m = open_classifier(c, f.path);
        const att_text_classify_options o = {.size = sizeof o, .pairs = b};
        assert_int_equal(att_text_classify(m, MANY, a, NULL, &o, threads > 1 ? y : expected), ATT_OK);
        if (threads > 1)
            assert_memory_equal(y, expected, sizeof y);
        for (int i = 0; i < PAIRS; i++) {
            att_tokens t;
            assert_int_equal(att_tokenize_pair(att_text_classifier_tokenizer(m), a[i], strlen(a[i]), b[i], strlen(b[i]),
                                               ATT_OPTIONS(att_tokenize_options, .max_tokens = TINY_PAIR_TOKENS), &t),
                             ATT_OK);
            const int64_t offsets[] = {0, t.count};
            const att_text_classify_options ids = {
                .size = sizeof ids, .ids = t.ids, .type_ids = t.type_ids, .offsets = offsets};
            assert_int_equal(att_text_classify(m, 1, NULL, NULL, &ids, y), ATT_OK);
            assert_memory_equal(y, expected + i * 3, 3 * sizeof *y);
            att_tokens_free(c, &t);
        }
        assert_true(att_text_classifier_idle_bytes(m) > 0);
        att_text_classifier_trim(m);
        assert_int_equal(att_text_classifier_idle_bytes(m), 0);
        att_text_classifier_free(m);
        att_close(c);
    }
    folder_remove(&f);
}

static void a_pair_that_is_too_long_loses_tokens_of_the_longer_text_and_is_counted(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(1);
    att_text_classifier *m = open_classifier(ctx, f.path);
    int64_t tokens[TEXTS];
    bool truncated[TEXTS];
    float y[TEXTS];
    att_text_classify_options o = {.size = sizeof o, .pairs = second, .tokens = tokens, .truncated = truncated};
    assert_int_equal(describe(m).max_tokens, TINY_PAIR_TOKENS);
    assert_int_equal(att_text_classify(m, PAIRS, first, NULL, &o, y), ATT_OK);
    o.pairs = NULL;
    o.tokens += PAIRS;
    o.truncated += PAIRS;
    assert_int_equal(att_text_classify(m, TEXTS - PAIRS, first + PAIRS, NULL, &o, y), ATT_OK);
    for (int i = 0; i < TEXTS; i++) {
        assert_int_equal(tokens[i], tokens_of[i]);
        assert_int_equal(truncated[i], i == 1 || i == 2 || i == 5);
    }
    /* fewer tokens: "a b c" and "d e" are "a b" and "d e" */
    float shorter, same;
    o = (att_text_classify_options){.size = sizeof o, .pairs = second, .max_tokens = 7, .truncated = truncated};
    assert_int_equal(att_text_classify(m, 1, first, NULL, &o, &shorter), ATT_OK);
    assert_true(truncated[0]);
    o.truncated = NULL;
    assert_int_equal(att_text_classify(m, 1, (const char *[]){"a b"}, NULL, &o, &same), ATT_OK);
    assert_memory_equal(&shorter, &same, sizeof same);
    o.max_tokens = 15;
    assert_int_equal(att_text_classify(m, 1, first, NULL, &o, &same), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.max_tokens is 15, not in [0, 14], as the model's");
    o.max_tokens = 2;
    assert_int_equal(att_text_classify(m, 1, first, NULL, &o, &same), ATT_ERR_ARGUMENT);
    check_message(ctx, "max_tokens is 2, but the special tokens alone are 3");
    att_text_classifier_free(m);
    folder_remove(&f);
}

/* ---- activations */

static void the_activation_is_what_the_folder_names(void **state)
{
    (void)state;
    static const struct {
        int labels;
        const char *key, *value;
        att_text_activation activation, probability;
    } cases[] = {
        {1, NULL, NULL, ATT_TEXT_ACTIVATION_SIGMOID, ATT_TEXT_ACTIVATION_SIGMOID},
        {3, NULL, NULL, ATT_TEXT_ACTIVATION_IDENTITY, ATT_TEXT_ACTIVATION_SOFTMAX},
        {1, "sentence_transformers", "{\"activation_fn\": " CLASS("linear.Identity") "}", ATT_TEXT_ACTIVATION_IDENTITY,
         ATT_TEXT_ACTIVATION_SIGMOID},
        {3, "sentence_transformers", "{\"version\": \"5.0\", \"activation_fn\": " CLASS("activation.Sigmoid") "}",
         ATT_TEXT_ACTIVATION_SIGMOID, ATT_TEXT_ACTIVATION_SOFTMAX},
        {1, "sentence_transformers", "{\"version\": \"5.0\"}", ATT_TEXT_ACTIVATION_SIGMOID,
         ATT_TEXT_ACTIVATION_SIGMOID},
        {1, "sbert_ce_default_activation_function", "\"torch.nn.Identity\"", ATT_TEXT_ACTIVATION_IDENTITY,
         ATT_TEXT_ACTIVATION_SIGMOID},
        {1, "sbert_ce_default_activation_function", "null", ATT_TEXT_ACTIVATION_SIGMOID, ATT_TEXT_ACTIVATION_SIGMOID},
        {1, "sbert_ce_default_activation_function", "\"my_code.Other\"", ATT_TEXT_ACTIVATION_SIGMOID,
         ATT_TEXT_ACTIVATION_SIGMOID},
        {3, "problem_type", "\"multi_label_classification\"", ATT_TEXT_ACTIVATION_IDENTITY,
         ATT_TEXT_ACTIVATION_SIGMOID},
        {3, "problem_type", "\"single_label_classification\"", ATT_TEXT_ACTIVATION_IDENTITY,
         ATT_TEXT_ACTIVATION_SOFTMAX},
        {1, "problem_type", "\"regression\"", ATT_TEXT_ACTIVATION_SIGMOID, ATT_TEXT_ACTIVATION_IDENTITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const test_folder f = tiny_text_classifier(cases[i].labels);
        tiny_write_classifier_config(&f, cases[i].labels, "0", cases[i].key, cases[i].value);
        att_text_classifier *m = open_classifier(ctx, f.path);
        const att_text_classifier_info info = describe(m);
        if (info.activation != cases[i].activation || info.probability != cases[i].probability)
            fail_msg("case %d: %d and %d", (int)i, (int)info.activation, (int)info.probability);
        assert_int_equal(info.labels, cases[i].labels);
        att_text_classifier_free(m);
        folder_remove(&f);
    }
}

static void activations_are_applied_to_logits(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(3);
    float logits[TEXTS * 3], sigmoid[TEXTS * 3], softmax[TEXTS * 3], own[TEXTS * 3];
    att_text_classifier *m = open_classifier(ctx, f.path);
    classify(m, ATT_TEXT_ACTIVATION_IDENTITY, logits);
    classify(m, ATT_TEXT_ACTIVATION_SIGMOID, sigmoid);
    classify(m, ATT_TEXT_ACTIVATION_SOFTMAX, softmax);
    classify(m, ATT_TEXT_ACTIVATION_MODEL, own);
    assert_memory_equal(own, logits, sizeof own);
    for (int i = 0; i < TEXTS; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += exp((double)logits[i * 3 + k]);
        for (int k = i * 3; k < i * 3 + 3; k++) {
            check_near(1 / (1 + exp(-(double)logits[k])), sigmoid[k], 3e-7, "sigmoid of %g", (double)logits[k]);
            check_near(exp((double)logits[k]) / sum, softmax[k], 3e-7, "softmax of %g", (double)logits[k]);
        }
    }
    att_text_classify_options o = {.size = sizeof o, .activation = (att_text_activation)9};
    assert_int_equal(att_text_classify(m, 1, first, NULL, &o, own), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.activation is 9, not an att_text_activation");
    att_text_classifier_free(m);
    folder_remove(&f);
}

/* As sentence-transformers 6 writes it; modules.json and the files beside it count. */
static void a_cross_encoder_folder_is_opened_by_its_modules(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(1);
    folder_write(&f, "modules.json",
                 "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": "
                 "\"sentence_transformers.base.modules.transformer.Transformer\"}]");
    folder_write(&f, "config_sentence_transformers.json",
                 "{\"model_type\": \"CrossEncoder\", \"activation_fn\": " CLASS(
                     "linear.Identity") ", \"prompts\": {}, "
                                        "\"default_prompt_name\": null}");
    folder_write(&f, "sentence_bert_config.json",
                 "{\"transformer_task\": \"sequence-classification\", \"modality_config\": {\"text\": {\"method\": "
                 "\"forward\", \"method_output_name\": \"logits\"}}, \"module_output_name\": \"scores\"}");
    att_model_identity id = {.size = sizeof id};
    assert_int_equal(att_model_identify(ctx, f.path, &id), ATT_OK);
    assert_int_equal(id.subject, ATT_SUBJECT_CLASSIFIER);
    att_text_classifier *m = open_classifier(ctx, f.path);
    assert_int_equal(describe(m).activation, ATT_TEXT_ACTIVATION_IDENTITY);
    att_text_classifier_free(m);
    static const char *const wrong[][3] = {
        {"modules.json",
         "[{\"path\": \"\", \"type\": \"sentence_transformers.base.modules.transformer.Transformer\"}, {\"path\": "
         "\"1_LogitScore\", \"type\": \"sentence_transformers.cross_encoder.modules.logit_score.LogitScore\"}]",
         "has 2 modules"},
        {"modules.json", "[]", "modules.json"},
        {"config_sentence_transformers.json",
         "{\"model_type\": \"CrossEncoder\", \"activation_fn\": \"torch.nn.Tanh\"}",
         "\"activation_fn\" is \"torch.nn.Tanh\", which is not supported; torch.nn.Identity or torch.nn.Sigmoid is"},
        {"config_sentence_transformers.json",
         "{\"model_type\": \"CrossEncoder\", \"default_prompt_name\": \"q\", \"prompts\": {\"q\": \"query: \"}}",
         "a prompt before each pair is not supported"},
        {"sentence_bert_config.json", "{\"transformer_task\": \"text-generation\"}", "\"transformer_task\""},
        {"sentence_bert_config.json", "{\"do_lower_case\": true}", "\"do_lower_case\" is true"},
        {"sentence_bert_config.json", "{\"other\": 1}", "\"other\" is not a known setting"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char kept[1024] = "", path[200];
        snprintf(path, sizeof path, "%s/%s", f.path, wrong[i][0]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        kept[fread(kept, 1, sizeof kept - 1, file)] = 0;
        fclose(file);
        folder_write(&f, wrong[i][0], wrong[i][1]);
        assert_int_not_equal(att_text_classifier_open(ctx, f.path, NULL, &m), ATT_OK);
        check_message(ctx, wrong[i][2]);
        folder_write(&f, wrong[i][0], kept);
    }
    folder_remove(&f);
}

/* ---- labels and folders that are wrong */

static void labels_have_their_names_and_wrong_ones_are_named(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"id2label", "{\"0\": \"a\", \"2\": \"b\", \"3\": \"c\"}", "\"id2label\" has no name for class 1"},
        {"id2label", "{\"0\": \"a\", \"1\": \"b\"}",
         "tensor \"classifier.weight\" is [3, 12] but by config.json it is"},
        {"id2label", "[\"a\"]", "\"id2label\" is"},
        {"id2label", "{}", "\"id2label\" has 0 names"},
        {"num_labels", "2", "\"num_labels\" is 2, but \"id2label\" has 3 names"},
        {"problem_type", "\"other\"", "\"problem_type\" is \"other\""},
        {"model_type", "\"t5\"", "\"model_type\" is \"t5\", which is not supported for classes of texts"},
        {"architectures", "[\"BertForTokenClassification\"]",
         "is an encoder without a classifier of texts, of the class BertForTokenClassification"}};
    const test_folder f = tiny_text_classifier(3);
    att_text_classifier *m = open_classifier(ctx, f.path);
    assert_string_equal(att_text_classifier_label(m, 0), "contradiction");
    assert_string_equal(att_text_classifier_label(m, 2), "neutral");
    assert_null(att_text_classifier_label(m, 3));
    assert_null(att_text_classifier_label(m, -1));
    att_text_classifier_free(m);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tiny_write_classifier_config(&f, 3, "0", wrong[i][0], wrong[i][1]);
        assert_int_not_equal(att_text_classifier_open(ctx, f.path, NULL, &m), ATT_OK);
        assert_null(m);
        check_message(ctx, wrong[i][2]);
    }
    tiny_write_classifier_config(&f, 3, "0", "id2label", NULL); /* two, as transformers has it */
    tiny_write_classifier_weights(&f, &(const tiny_weights){.model = &(const int){2}});
    m = open_classifier(ctx, f.path);
    assert_string_equal(att_text_classifier_label(m, 1), "LABEL_1");
    att_text_classifier_free(m);
    folder_remove(&f);
}

static void a_plain_encoder_is_refused_with_what_to_use(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    att_text_classifier *m;
    att_model_identity id = {.size = sizeof id};
    assert_int_equal(att_text_classifier_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "is an encoder without a classifier of texts: att_sentence_open makes vectors with it, and "
                       "att_text_classifier_new trains a classifier on it");
    assert_int_equal(att_model_identify(ctx, f.path, &id), ATT_OK);
    assert_int_equal(id.subject, ATT_SUBJECT_SENTENCE);
    folder_remove(&f);
}

/* ---- ranks */

static void expect_same(const att_ranked_text *a, const att_ranked_text *b, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(a[i].document, b[i].document);
        assert_memory_equal(&a[i].score, &b[i].score, sizeof a[i].score);
    }
}

static void documents_are_ranked_by_their_scores(void **state)
{
    (void)state;
    static const char *const documents[] = {"a b", "x y z", "a b", "q r s t u v w x y z a b c d e f", "m"};
    enum { N = 5 };
    const test_folder f = tiny_text_classifier(1);
    att_text_classifier *m = open_classifier(ctx, f.path);
    const char *queries[N] = {"b c", "b c", "b c", "b c", "b c"};
    float scores[N];
    att_ranked_text all[N], best[N];
    bool truncated[N];
    int64_t tokens[N];
    const att_text_classify_options pairs = {.size = sizeof pairs, .pairs = documents};
    const att_text_rank_options how = {.size = sizeof how, .truncated = truncated, .tokens = tokens};
    assert_int_equal(att_text_classify(m, N, queries, NULL, &pairs, scores), ATT_OK);
    assert_int_equal(att_text_rank(m, "b c", 3, N, documents, NULL, &how, all), ATT_OK);
    for (int i = 0; i < N; i++) {
        assert_memory_equal(&all[i].score, &scores[all[i].document], sizeof(float));
        assert_int_equal(truncated[i], i == 3);
        assert_int_equal(tokens[i], i == 3 ? 14 : i == 1 ? 8 : i == 4 ? 6 : 7);
        if (i > 0)
            assert_true(all[i - 1].score > all[i].score ||
                        (all[i - 1].document < all[i].document && all[i - 1].score >= all[i].score));
    }
    assert_int_equal(att_text_rank(m, "b c", 3, N, documents, NULL, ATT_OPTIONS(att_text_rank_options, .top = 2), best),
                     ATT_OK);
    expect_same(best, all, 2);
    assert_int_equal(att_text_rank(m, "b c", 3, N, documents, NULL, ATT_OPTIONS(att_text_rank_options, .top = 9), best),
                     ATT_OK);
    expect_same(best, all, N);
    assert_int_equal(att_text_rank(m, "b c", 3, 0, NULL, NULL, NULL, NULL), ATT_OK); /* nothing to rank */
    assert_int_equal(att_text_rank(m, "b c", 3, -1, documents, NULL, NULL, best), ATT_ERR_ARGUMENT);
    assert_int_equal(
        att_text_rank(m, "b c", 3, N, documents, NULL, ATT_OPTIONS(att_text_rank_options, .top = -1), best),
        ATT_ERR_ARGUMENT);
    assert_int_equal(att_text_rank(m, "b c", 3, N, documents, NULL,
                                   ATT_OPTIONS(att_text_rank_options, .activation = ATT_TEXT_ACTIVATION_SOFTMAX), best),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "is the softmax, which of one score is 1");
    att_text_classifier_free(m);
    folder_remove(&f);
    const test_folder three = tiny_text_classifier(3);
    m = open_classifier(ctx, three.path);
    assert_int_equal(att_text_rank(m, "b c", 3, N, documents, NULL, NULL, best), ATT_ERR_ARGUMENT);
    check_message(ctx, "the model has 3 labels (\"contradiction\", \"entailment\", ...)");
    att_text_classifier_free(m);
    folder_remove(&three);
}

/* ---- traces */

static void a_trace_has_the_logits_of_the_model(void **state)
{
    (void)state;
    const test_folder f = tiny_text_classifier(3);
    att_text_classifier *m = open_classifier(ctx, f.path);
    float y[TEXTS * 3], row[3], weights[14 * 14];
    classify(m, ATT_TEXT_ACTIVATION_IDENTITY, y);
    for (int i = 0; i < TEXTS; i++) {
        att_trace *t;
        att_trace_info info = {.size = sizeof info};
        const char *pair = i < PAIRS ? second[i] : NULL;
        assert_int_equal(
            att_text_classifier_trace(m, first[i], strlen(first[i]), pair, pair ? strlen(pair) : 0, NULL, &t), ATT_OK);
        assert_int_equal(att_trace_describe(t, &info), ATT_OK);
        assert_int_equal(info.source, tokens_of[i]);
        assert_int_equal(info.truncated, i == 1 || i == 2 || i == 5);
        assert_int_equal(info.outputs, 3);
        assert_int_equal(att_trace_output(t, -1, 0, 1, row), ATT_OK);
        assert_memory_equal(row, y + i * 3, sizeof row);
        assert_int_equal(att_trace_weights(t, 1, 2, 0, info.source, weights), ATT_OK);
        att_trace_free(t);
    }
    att_trace *t;
    assert_int_equal(att_text_classifier_trace(m, NULL, 0, "a", 1, NULL, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "text is NULL, but pair is not");
    assert_int_equal(
        att_text_classifier_trace(m, "a", 1, "a", 1,
                                  ATT_OPTIONS(att_trace_options, .ids = (const int32_t[]){2, 3}, .n_ids = 2), &t),
        ATT_ERR_ARGUMENT);
    check_message(ctx, "pair and options.ids are both given");
    att_text_classifier_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_transformers),
        cmocka_unit_test(a_score_has_the_same_bits_with_any_threads_alone_or_in_a_batch_and_of_ids),
        cmocka_unit_test(a_pair_that_is_too_long_loses_tokens_of_the_longer_text_and_is_counted),
        cmocka_unit_test(the_activation_is_what_the_folder_names),
        cmocka_unit_test(activations_are_applied_to_logits),
        cmocka_unit_test(a_cross_encoder_folder_is_opened_by_its_modules),
        cmocka_unit_test(labels_have_their_names_and_wrong_ones_are_named),
        cmocka_unit_test(a_plain_encoder_is_refused_with_what_to_use),
        cmocka_unit_test(documents_are_ranked_by_their_scores),
        cmocka_unit_test(a_trace_has_the_logits_of_the_model),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
