/* The losses of sentence embeddings are those of sentence-transformers, step by step; a classifier learns on after a
 * pause; no text is twice in a batch; what a loss cannot be computed from is named. */
#include "fixtures/check.h"
#include "fixtures/golden_text.h"
#include "fixtures/loss_rows.h"
#include "fixtures/tiny_bert.h"
#include "train/distinct_batches.h"
#include "train/shuffle.h"

static const att_schedule rates = {
    .size = sizeof rates, .kind = ATT_SCHEDULE_LINEAR, .max_rate = 0.0005, .warmup = 4, .steps = STEPS};

static test_folder model; /* mean pooling, not normalized, without dropout */

static int set_up(void **state)
{
    (void)state;
    static const char *const settings[][2] = {{"model_type", "\"bert\""},   {"vocab_size", "40"},
                                              {"hidden_size", "12"},        {"num_hidden_layers", "2"},
                                              {"num_attention_heads", "3"}, {"intermediate_size", "20"},
                                              {"hidden_act", "\"gelu\""},   {"max_position_embeddings", "16"},
                                              {"type_vocab_size", "2"},     {"layer_norm_eps", "1e-5"},
                                              {"hidden_dropout_prob", "0"}, {"attention_probs_dropout_prob", "0"}};
    model = tiny_sentence();
    tiny_write_settings(&model, "config.json", settings, sizeof settings / sizeof settings[0], NULL, NULL);
    folder_write(
        &model, "modules.json",
        "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&model);
    return 0;
}

static const att_training_options common = {
    .size = sizeof common, .weight_decay = 0.01, .clip = 1, .schedule = &rates, .seed = SEED};

/* ---- losses */

static void each_step_has_the_loss_of_sentence_transformers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        att_sentence_loss loss;
        int64_t columns;
        att_sentence_distance distance;
        double margin;
    } cases[] = {{"cosine", ATT_SENTENCE_LOSS_COSINE_SIMILARITY, 2, 0, 0},
                 {"ranking", ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, 2, 0, 0},
                 {"ranking_negatives", ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, 3, 0, 0},
                 {"triplet", ATT_SENTENCE_LOSS_TRIPLET, 3, ATT_SENTENCE_DISTANCE_EUCLIDEAN, 0},
                 {"triplet_margin", ATT_SENTENCE_LOSS_TRIPLET, 3, ATT_SENTENCE_DISTANCE_EUCLIDEAN, 1},
                 {"triplet_cosine", ATT_SENTENCE_LOSS_TRIPLET, 3, ATT_SENTENCE_DISTANCE_COSINE, 0.25},
                 {"softmax", ATT_SENTENCE_LOSS_SOFTMAX, 2, 0, 0}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            double expected[STEPS], worst = 0;
            att_sentence *m;
            att_training *t;
            att_sentence_training_options o = sentence_options_of(cases[k].loss, cases[k].columns);
            o.distance = cases[k].distance;
            o.margin = cases[k].margin;
            assert_int_equal(golden_line("tests/golden/sentence_losses.txt", cases[k].name, expected, STEPS), STEPS);
            assert_int_equal(att_sentence_open_for_training(ctx, model.path, NULL, &m), ATT_OK);
            if (att_sentence_training_new(m, &common, &o, &t))
                fail_msg("%s", att_error(ctx));
            set_classifier(t);
            for (int i = 0; i < STEPS; i++) {
                att_training_report r = {.size = sizeof r};
                assert_int_equal(att_training_step(t, &r), ATT_OK);
                check_near(expected[i], (float)r.loss, 1e-5 * expected[i], "%s: %s: step %d", att_isa(ctx),
                           cases[k].name, i + 1);
                worst = fmax(worst, fabs(r.loss - expected[i]) / (expected[i] > 0 ? expected[i] : 1));
            }
            print_message("%s: %s: off by %.1e\n", att_isa(ctx), cases[k].name, worst);
            att_training_free(t);
            att_sentence_free(m);
        }
}

/* The default margins and the scale are those of the golden file, or are said in the header. */
static void defaults_are_those_of_the_header(void **state)
{
    (void)state;
    static const struct {
        att_sentence_loss loss;
        att_sentence_distance distance;
        double scale, margin;
    } cases[] = {{ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, 0, 20, 0},
                 {ATT_SENTENCE_LOSS_TRIPLET, ATT_SENTENCE_DISTANCE_EUCLIDEAN, 0, 5},
                 {ATT_SENTENCE_LOSS_TRIPLET, ATT_SENTENCE_DISTANCE_COSINE, 0, 0.5}};
    att_ctx *ctx = check_open(NULL, 1);
    att_sentence *m;
    assert_int_equal(att_sentence_open_for_training(ctx, model.path, NULL, &m), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double loss[2];
        for (int given = 0; given < 2; given++) {
            static const att_schedule still = {.size = sizeof still};
            static const att_training_options calm = {.size = sizeof calm, .schedule = &still, .seed = SEED};
            att_sentence_training_options o = sentence_options_of(cases[i].loss, 3);
            o.columns = given || cases[i].loss != ATT_SENTENCE_LOSS_TRIPLET ? 3 : 0;
            o.distance = cases[i].distance;
            o.scale = given ? cases[i].scale : 0;
            o.margin = given ? cases[i].margin : 0;
            att_training *t;
            att_training_report r = {.size = sizeof r};
            if (att_sentence_training_new(m, &calm, &o, &t) || att_training_step(t, &r))
                fail_msg("%s", att_error(ctx));
            loss[given] = r.loss;
            att_training_free(t);
        }
        assert_true(loss[0] == loss[1]);
    }
    att_sentence_free(m);
    att_close(ctx);
}

/* ---- batches */

static void no_text_is_twice_in_a_batch_and_each_row_is_in_one(void **state)
{
    (void)state;
    enum { N = 500, WORDS = 90, MAX_BATCH = 16 };
    static char words[WORDS][12];
    static const char *texts[N * COLUMNS];
    for (int i = 0; i < WORDS; i++)
        snprintf(words[i], sizeof words[i], "%d", i);
    for (uint64_t i = 0; i < N * COLUMNS; i++)
        texts[i] = words[check_bits(1, i) % (i % COLUMNS ? WORDS : 7)];
    att_ctx *ctx = check_open(NULL, 1);
    att_distinct_batches d;
    uint32_t order[N], first[N + 1], was[N];
    assert_int_equal(att_distinct_batches_make(ctx, texts, NULL, N, COLUMNS, &d), ATT_OK);
    for (int64_t batch = 1; batch <= MAX_BATCH; batch++) {
        bool seen[N] = {false};
        att_permutation(2, 0, batch, N, order);
        memcpy(was, order, sizeof was);
        const int64_t batches = att_distinct_batches_split(&d, batch, order, first);
        assert_true(order[0] == was[0]);
        assert_int_equal(first[0], 0);
        assert_int_equal(first[batches], N);
        for (int64_t b = 0; b < batches; b++) {
            assert_in_range(first[b + 1] - first[b], 1, batch);
            for (uint32_t i = first[b]; i < first[b + 1]; i++) {
                assert_false(seen[order[i]]);
                seen[order[i]] = true;
                for (uint32_t k = first[b]; k < i; k++)
                    for (int x = 0; x < COLUMNS * COLUMNS; x++)
                        assert_string_not_equal(texts[order[i] * COLUMNS + (uint32_t)(x / COLUMNS)],
                                                texts[order[k] * COLUMNS + (uint32_t)(x % COLUMNS)]);
            }
        }
    }
    att_distinct_batches_free(&d);
    att_close(ctx);
}

/* ---- in a folder */

static att_training *open_in(att_ctx *ctx, const char *name, att_sentence_training_options o, bool resume)
{
    char path[320];
    att_training *t = NULL;
    snprintf(path, sizeof path, "%s/%s", model.path, name);
    o.model = model.path;
    att_training_options c = common;
    c.resume = resume;
    if (att_sentence_training_open(ctx, path, &c, &o, &t))
        assert_null(t);
    return t;
}

static void take_steps(att_training *t, int n)
{
    att_training_report r = {.size = sizeof r};
    for (int i = 0; i < n; i++)
        assert_int_equal(att_training_step(t, &r), ATT_OK);
}

/* Reads the file FOLDER/NAME into bytes [room]; returns how many. */
static size_t read_file(const char *name, char *bytes, size_t room)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", model.path, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    const size_t n = fread(bytes, 1, room, f);
    fclose(f);
    assert_true(n < room);
    return n;
}

/* The last checkpoint, which has the classifier and its moments, has the same bits; the model has no classifier. */
static void a_training_with_a_classifier_or_distinct_batches_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    static const att_sentence_loss losses[] = {ATT_SENTENCE_LOSS_SOFTMAX, ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING};
    static char whole[1 << 18], parts[1 << 18];
    for (int i = 0; i < 2; i++) {
        char name[2][32], path[96], file[320];
        snprintf(name[0], sizeof name[0], "whole%d", i);
        snprintf(name[1], sizeof name[1], "parts%d", i);
        att_ctx *ctx = check_open(NULL, 2);
        const att_sentence_training_options o = sentence_options_of(losses[i], 2);
        att_training *t = open_in(ctx, name[0], o, false);
        assert_non_null(t);
        take_steps(t, 7);
        assert_int_equal(att_training_save(t), ATT_OK);
        assert_int_equal(att_training_write(t, 0, ATT_F32), ATT_OK);
        att_training_free(t);
        for (int done = 0; done < 7; done += done == 0 ? 5 : 2) {
            t = open_in(ctx, name[1], o, done > 0);
            assert_non_null(t);
            take_steps(t, done == 0 ? 5 : 2);
            assert_int_equal(att_training_save(t), ATT_OK);
            att_training_free(t);
        }
        snprintf(path, sizeof path, "%s/checkpoint-0000000007.safetensors", name[0]);
        const size_t n = read_file(path, whole, sizeof whole);
        snprintf(path, sizeof path, "%s/checkpoint-0000000007.safetensors", name[1]);
        assert_int_equal(read_file(path, parts, sizeof parts), n);
        assert_memory_equal(whole, parts, n);
        assert_true(!memmem(whole, n, "classifier.weight", 17) == (i == 1));
        snprintf(file, sizeof file, "%s/%s/model.safetensors", model.path, name[0]);
        att_safetensors *weights;
        assert_int_equal(att_safetensors_open(ctx, file, &weights), ATT_OK);
        assert_true(att_safetensors_find(weights, "classifier.weight") < 0);
        att_safetensors_free(weights);
        att_close(ctx);
    }
}

static void a_training_with_another_loss_is_not_gone_on_with(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_sentence_training_options o = sentence_options_of(ATT_SENTENCE_LOSS_TRIPLET, 3);
    att_training *t = open_in(ctx, "triplet", o, false);
    assert_non_null(t);
    take_steps(t, 1);
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    o.margin = 2;
    assert_null(open_in(ctx, "triplet", o, true));
    check_message(ctx, "\"margin\" is 5 but here it is 2");
    o.margin = 0;
    o.distance = ATT_SENTENCE_DISTANCE_COSINE;
    assert_null(open_in(ctx, "triplet", o, true));
    check_message(ctx, "\"distance\" is 0 but here it is 1");
    o.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING;
    assert_null(open_in(ctx, "triplet", o, true));
    check_message(ctx, "\"loss\" is \"triplet\" but here it is \"multiple-negatives-ranking\"");
    att_close(ctx);
}

/* ---- errors */

static void what_a_loss_cannot_be_computed_from_is_named(void **state)
{
    (void)state;
    static const int32_t outside[ROWS] = {0, 1, 3};
    static const char *const same[] = {"a", "b", "a", "c", "a", "d", "e", "f"};
    static const struct {
        att_sentence_training_options o;
        const char *says;
    } cases[] = {
        {{.loss = (att_sentence_loss)4}, "options.loss is 4, which is not an att_sentence_loss"},
        {{.loss = (att_sentence_loss)-1}, "options.loss is -1"},
        {{.loss = ATT_SENTENCE_LOSS_TRIPLET, .distance = (att_sentence_distance)2},
         "options.distance is 2, which is not an att_sentence_distance"},
        {{.loss = ATT_SENTENCE_LOSS_TRIPLET, .columns = 2}, "options.columns is 2, but this loss has rows of 3 texts"},
        {{.loss = ATT_SENTENCE_LOSS_SOFTMAX, .columns = 3}, "options.columns is 3, but this loss has rows of 2 texts"},
        {{.loss = ATT_SENTENCE_LOSS_COSINE_SIMILARITY, .columns = 3},
         "options.columns is 3, but this loss has rows of 2 texts"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .columns = 1},
         "options.columns is 1, but this loss has rows of 2 texts or more"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .columns = INT64_MAX}, "or more, up to 256"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .pairs = INT64_MAX}, "more than 2^31 texts"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .batch = 1}, "a batch of one pair has no negatives"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .scale = -1}, "options.scale is -1"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .scale = NAN}, "options.scale is nan"},
        {{.loss = ATT_SENTENCE_LOSS_TRIPLET, .margin = INFINITY}, "options.margin inf"},
        {{.loss = ATT_SENTENCE_LOSS_SOFTMAX, .classes = 3}, "options.labels is NULL"},
        {{.loss = ATT_SENTENCE_LOSS_SOFTMAX, .labels = labels, .classes = 1},
         "options.classes is 1, expected 2 or more"},
        {{.loss = ATT_SENTENCE_LOSS_SOFTMAX, .labels = outside, .classes = 3},
         "options.labels[2] is 3, not one of 3 classes, from 0"},
        {{.loss = ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, .texts = same, .pairs = 4},
         "a batch of 4 without a text that occurs twice cannot be filled"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    att_sentence *m;
    assert_int_equal(att_sentence_open_for_training(ctx, model.path, NULL, &m), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_training *t;
        att_sentence_training_options o = cases[i].o;
        o.size = sizeof o;
        o.texts = o.texts ? o.texts : texts_of(3);
        o.pairs = o.pairs ? o.pairs : ROWS;
        o.scores = o.loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY ? scores : NULL;
        assert_int_equal(att_sentence_training_new(m, &common, &o, &t), ATT_ERR_ARGUMENT);
        assert_null(t);
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
    }
    att_sentence_free(m);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_has_the_loss_of_sentence_transformers),
        cmocka_unit_test(defaults_are_those_of_the_header),
        cmocka_unit_test(no_text_is_twice_in_a_batch_and_each_row_is_in_one),
        cmocka_unit_test(a_training_with_a_classifier_or_distinct_batches_goes_on_with_the_same_bits),
        cmocka_unit_test(a_training_with_another_loss_is_not_gone_on_with),
        cmocka_unit_test(what_a_loss_cannot_be_computed_from_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
