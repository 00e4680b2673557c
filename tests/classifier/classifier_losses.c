/* The losses of text classifiers are those of sentence-transformers' CrossEncoder, step by step; negatives are drawn
 * from the batch; labels follow the model's names; what a loss cannot be computed from is named. What all trainings
 * promise is tested in train/trainings.c. */
// labels: trains
#include "classifier/training_pairs.h"
#include "fixtures/golden_text.h"
#include "fixtures/loss_rows.h"
#include "fixtures/text_classifier.h"

static const att_schedule rates = {
    .size = sizeof rates, .kind = ATT_SCHEDULE_LINEAR, .max_rate = 0.0005, .warmup = 4, .steps = STEPS};
static const att_training_options common = {
    .size = sizeof common, .weight_decay = 0.01, .clip = 1, .schedule = &rates, .seed = SEED};

static att_text_classifier_training_options options_of(att_text_classifier_loss loss, int64_t columns)
{
    return (att_text_classifier_training_options){.size = sizeof(att_text_classifier_training_options),
                                                  .rows = ROWS,
                                                  .texts = texts_of(columns),
                                                  .columns = columns,
                                                  .scores = scores,
                                                  .labels = labels,
                                                  .classes = CLASSES,
                                                  .batch = BATCH,
                                                  .loss = loss,
                                                  .negatives = 1000};
}

static att_text_classifier *open_to_train(att_ctx *c, const char *folder)
{
    att_text_classifier *m;
    if (att_text_classifier_open_for_training(c, folder, NULL, &m))
        fail_msg("%s", att_error(c));
    return m;
}

/* ---- losses */

static void each_step_has_the_loss_of_sentence_transformers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        att_text_classifier_loss loss;
        int64_t columns;
        double scale;
        att_text_activation activation;
    } cases[] = {
        {"binary", ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY, 2, 0, 0},
        {"labels", ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY, 2, 0, 0},
        {"ranking", ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING, 2, 0, 0},
        {"ranking_negatives", ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING, 3, 5, 0},
        {"ranking_logits", ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING, 2, 2, ATT_TEXT_ACTIVATION_IDENTITY},
        {"squared", ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR, 2, 0, 0},
        {"squared_sigmoid", ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR, 2, 0, ATT_TEXT_ACTIVATION_SIGMOID}};
    const test_folder one = tiny_text_classifier(1), three = tiny_text_classifier(3);
    for (att_ctx *c = NULL; check_next_context(&c, 2);)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            double expected[STEPS], worst = 0;
            const bool labeled = cases[k].loss == ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY;
            att_text_classifier *m = open_to_train(c, labeled ? three.path : one.path);
            att_training *t;
            att_text_classifier_training_options o = options_of(cases[k].loss, cases[k].columns);
            o.scale = cases[k].scale;
            o.activation = cases[k].activation;
            assert_int_equal(golden_line("tests/golden/text_classifier_losses.txt", cases[k].name, expected, STEPS),
                             STEPS);
            if (att_text_classifier_training_new(m, &common, &o, &t))
                fail_msg("%s", att_error(c));
            assert_ptr_equal(att_training_text_classifier(t), m);
            for (int i = 0; i < STEPS; i++) {
                att_training_report r = {.size = sizeof r};
                assert_int_equal(att_training_step(t, &r), ATT_OK);
                check_near(expected[i], (float)r.loss, 1e-5 * expected[i], "%s: %s: step %d", att_isa(c), cases[k].name,
                           i + 1);
                worst = fmax(worst, fabs(r.loss - expected[i]) / (expected[i] > 0 ? expected[i] : 1));
            }
            print_message("%s: %s: off by %.1e\n", att_isa(c), cases[k].name, worst);
            att_training_free(t);
            att_text_classifier_free(m);
        }
    folder_remove(&one);
    folder_remove(&three);
}

/* ---- the pairs of a batch */

static void negatives_are_others_of_the_batch_without_repeats(void **state)
{
    (void)state;
    enum { NEGATIVES = 3, ALL = 1 + NEGATIVES + 1 };
    static const uint32_t batch[BATCH] = {7, 2, 10, 8};
    const test_folder f = tiny_text_classifier(1);
    att_text_classifier *m = open_classifier(ctx, f.path);
    att_training_pairs p = {.model = m,
                            .rows = ROWS,
                            .columns = COLUMNS,
                            .batch = BATCH,
                            .negatives = NEGATIVES,
                            .max_tokens = TINY_PAIR_TOKENS,
                            .ranking = true};
    assert_int_equal(att_training_pairs_open(&p, texts_of(COLUMNS), NULL), ATT_OK);
    assert_int_equal(p.truncated, 1);
    int differs = 0;
    int32_t before[BATCH * ALL * TINY_PAIR_TOKENS] = {0};
    for (uint64_t seed = 0; seed < 8; seed++) {
        assert_int_equal(att_training_pairs_gather(&p, batch, BATCH, seed), ATT_OK);
        assert_int_equal(p.candidates, ALL);
        for (int i = 0; i < BATCH * ALL; i++) {
            const int anchor = i / ALL, at = i % ALL;
            int matches = 0;
            for (int b = 0; b < BATCH; b++)
                for (int k = 1; k < COLUMNS; k++) {
                    const char *text = rows[batch[b]][k], *a = rows[batch[anchor]][0];
                    att_tokens t;
                    assert_int_equal(
                        att_tokenize_pair(att_text_classifier_tokenizer(m), a, strlen(a), text, strlen(text),
                                          ATT_OPTIONS(att_tokenize_options, .max_tokens = TINY_PAIR_TOKENS), &t),
                        ATT_OK);
                    const int64_t n = p.offsets[i + 1] - p.offsets[i];
                    const bool same = n == t.count && !memcmp(p.ids + p.offsets[i], t.ids, (size_t)n * sizeof *t.ids) &&
                                      !memcmp(p.type_ids + p.offsets[i], t.type_ids, (size_t)n * sizeof *t.ids);
                    matches += same;
                    if (same)
                        assert_int_equal(b == anchor, at == 0 || at == ALL - 1);
                    if (same && b == anchor)
                        assert_int_equal(k, at == 0 ? 1 : 2);
                    att_tokens_free(ctx, &t);
                }
            assert_int_equal(matches, 1); /* their texts all differ */
            for (int other = anchor * ALL; other < i; other++) {
                const int64_t n = p.offsets[i + 1] - p.offsets[i];
                assert_true(n != p.offsets[other + 1] - p.offsets[other] ||
                            memcmp(p.ids + p.offsets[i], p.ids + p.offsets[other], (size_t)n * sizeof *p.ids) != 0);
            }
        }
        const size_t bytes = (size_t)p.offsets[BATCH * ALL] * sizeof *p.ids;
        differs += seed && memcmp(before, p.ids, bytes) != 0;
        memcpy(before, p.ids, bytes);
    }
    assert_true(differs >= 6);
    att_training_pairs_free(&p);
    att_text_classifier_free(m);
    folder_remove(&f);
}

/* ---- labels and folders */

/* A folder that has these labels keeps its classifier, and each label its number; others make a new one. */
static void labels_follow_the_names_of_the_model(void **state)
{
    (void)state;
    static const char *const swapped[CLASSES] = {"neutral", "entailment", "contradiction"}, *const others[CLASSES] = {
                                                                                                "a", "b", "c"};
    static const int32_t as_swapped[ROWS] = {2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0};
    const test_folder f = tiny_text_classifier(CLASSES);
    double loss[3];
    for (int i = 0; i < 3; i++) {
        att_text_classifier_training_options o = options_of(ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY, 2);
        char path[100];
        att_training *t;
        att_training_report r = {.size = sizeof r};
        snprintf(path, sizeof path, "%s/%d", f.path, i);
        o.model = f.path;
        o.names = i == 1 ? swapped : i == 2 ? others : NULL;
        o.labels = i == 1 ? as_swapped : labels;
        if (att_text_classifier_training_open(ctx, path, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        assert_string_equal(att_text_classifier_label(att_training_text_classifier(t), 0),
                            i < 2 ? "contradiction" : "a");
        assert_int_equal(att_training_step(t, &r), ATT_OK);
        loss[i] = r.loss;
        att_training_free(t);
    }
    assert_true(loss[0] == loss[1]);
    assert_true(loss[0] != loss[2]);
    folder_remove(&f);
}

/* From the folder of a sentence model, whose encoder is kept */
static void a_sentence_model_becomes_a_cross_encoder(void **state)
{
    (void)state;
    static const att_text_classifier_loss losses[] = {ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY,
                                                      ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR};
    const test_folder f = tiny_sentence();
    for (int i = 0; i < 2; i++) {
        att_text_classifier_training_options o = options_of(losses[i], 2);
        char path[100];
        att_training *t;
        att_training_report r = {.size = sizeof r};
        snprintf(path, sizeof path, "%s/%d", f.path, i);
        o.model = f.path;
        if (att_text_classifier_training_open(ctx, path, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        for (int k = 0; k < 3; k++)
            assert_int_equal(att_training_step(t, &r), ATT_OK);
        assert_int_equal(att_training_write(t, 0, ATT_F32), ATT_OK);
        float y[TEXTS], again[TEXTS];
        classify(att_training_text_classifier(t), ATT_TEXT_ACTIVATION_MODEL, y);
        att_training_free(t);
        att_text_classifier *m = open_classifier(ctx, path);
        classify(m, ATT_TEXT_ACTIVATION_MODEL, again);
        assert_memory_equal(y, again, sizeof y);
        assert_int_equal(describe(m).activation, i ? ATT_TEXT_ACTIVATION_IDENTITY : ATT_TEXT_ACTIVATION_SIGMOID);
        att_text_classifier_free(m);
    }
    folder_remove(&f);
}

/* ---- what is refused */

static void what_a_loss_cannot_be_computed_from_is_named(void **state)
{
    (void)state;
    enum {
        BINARY = ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY,
        LABELS = ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY,
        RANKING = ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING,
        SQUARED = ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR
    };
    static const double wrong[ROWS] = {0.9, 1.1};
    static const int32_t five[ROWS] = {0, 5};
    static const char *const twice[] = {"a", "b", "a"}, *const others[] = {"a", "b", "c"};
    const struct {
        int loss;
        int64_t columns, batch, rows, classes, max_tokens;
        const double *scores;
        const int32_t *labels;
        const char *const *names;
        double scale;
        int activation;
        const char *says;
    } cases[] = {
        {9, 2, 4, ROWS, 3, 0, scores, labels, NULL, 0, 0,
         "options.loss is 9, which is not an att_text_classifier_loss"},
        {BINARY, 3, 4, ROWS, 3, 0, scores, labels, NULL, 0, 0, "rows of 1 to 2 texts"},
        {RANKING, 1, 4, ROWS, 3, 0, scores, labels, NULL, 0, 0, "rows of 2 to 256 texts"},
        {RANKING, 2, 1, ROWS, 3, 0, scores, labels, NULL, 0, 0, "a batch of one pair has no negatives"},
        {BINARY, 2, 4, 0, 3, 0, scores, labels, NULL, 0, 0, "options.rows is 0"},
        {BINARY, 2, 4, ROWS, 3, 0, NULL, labels, NULL, 0, 0, "options.scores is NULL"},
        {BINARY, 2, 4, ROWS, 3, 0, wrong, labels, NULL, 0, 0, "options.scores[1] is 1.1, which is not from 0 to 1"},
        {LABELS, 2, 4, ROWS, 3, 0, scores, NULL, NULL, 0, 0, "options.labels is NULL"},
        {LABELS, 2, 4, ROWS, 3, 0, scores, five, NULL, 0, 0, "options.labels[1] is 5, not one of 3 classes"},
        {LABELS, 2, 4, ROWS, 1, 0, scores, labels, NULL, 0, 0, "options.classes is 1, expected 2 to"},
        {LABELS, 2, 4, ROWS, 3, 0, scores, labels, twice, 0, 0, "options.names has \"a\" twice"},
        {LABELS, 2, 4, ROWS, 3, 0, scores, labels, others, 0, 0, "options.names are not the labels of the model"},
        {SQUARED, 2, 4, ROWS, 3, 0, scores, labels, NULL, 0, 0, "the model has 3 labels, but this loss needs 1"},
        {LABELS, 2, 4, ROWS, 3, 15, scores, labels, NULL, 0, 0, "options.max_tokens is 15, but the model has 14"},
        {RANKING, 2, 4, ROWS, 3, 0, scores, labels, NULL, -1, 0, "options.scale is -1"},
        {SQUARED, 2, 4, ROWS, 3, 0, scores, labels, NULL, 0, 3, "options.activation is 3"}};
    const test_folder f = tiny_text_classifier(3);
    att_text_classifier *m = open_to_train(ctx, f.path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_text_classifier_training_options o = options_of((att_text_classifier_loss)cases[i].loss, cases[i].columns);
        att_training *t;
        o.batch = cases[i].batch;
        o.rows = cases[i].rows;
        o.classes = cases[i].classes;
        o.max_tokens = cases[i].max_tokens;
        o.scores = cases[i].scores;
        o.labels = cases[i].labels;
        o.names = cases[i].names;
        o.scale = cases[i].scale;
        o.activation = (att_text_activation)cases[i].activation;
        assert_int_equal(att_text_classifier_training_new(m, &common, &o, &t), ATT_ERR_ARGUMENT);
        assert_null(t);
        check_message(ctx, cases[i].says);
    }
    att_text_classifier_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_has_the_loss_of_sentence_transformers),
        cmocka_unit_test(negatives_are_others_of_the_batch_without_repeats),
        cmocka_unit_test(labels_follow_the_names_of_the_model),
        cmocka_unit_test(a_sentence_model_becomes_a_cross_encoder),
        cmocka_unit_test(what_a_loss_cannot_be_computed_from_is_named),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
