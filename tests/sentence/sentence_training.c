/* Training a sentence model: the losses of PyTorch, and a folder that is whole. What all trainings promise is tested in
 * train/trainings.c. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/golden_text.h"
#include "fixtures/tiny_modules.h"
#include "attend_sentence.h"

#include <math.h>

enum { PAIRS = 6 };

/* Those of make_similarity_steps.py */
static const char *const texts[2 * PAIRS] = {
    "a b c", "a b d", "e f", "x y z w", "", "q", "k l m n o p q r s t", "k l m n o p", "c", "c", "h i j", "j i h"};
static const double scores[PAIRS] = {0.9, 0.1, 0.3, 0.75, 1.0, 0.5};

static test_folder model; /* with dropout of 0.1 */

static int set_up(void **state)
{
    (void)state;
    model = tiny_sentence();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&model);
    return 0;
}

/* ---- steps */

/* The folder learns with the losses of a line of similarity_steps.txt. */
static void expect_losses(const test_folder *calm, const char *line)
{
    enum { STEPS = 10 };
    /* PyTorch's own in float32 are off by 2e-6: steps of Adam, which divides by small gradients, let roundings grow */
    const double tolerance = 1e-4;
    double expected[STEPS];
    static const char *const settings[][2] = {{"model_type", "\"bert\""},   {"vocab_size", "40"},
                                              {"hidden_size", "12"},        {"num_hidden_layers", "2"},
                                              {"num_attention_heads", "3"}, {"intermediate_size", "20"},
                                              {"hidden_act", "\"gelu\""},   {"max_position_embeddings", "16"},
                                              {"type_vocab_size", "2"},     {"layer_norm_eps", "1e-5"},
                                              {"hidden_dropout_prob", "0"}, {"attention_probs_dropout_prob", "0"}};
    tiny_write_settings(calm, "config.json", settings, sizeof settings / sizeof settings[0], NULL, NULL);
    assert_int_equal(golden_line("tests/golden/similarity_steps.txt", line, expected, STEPS), STEPS);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        att_sentence *m;
        att_training *t;
        assert_int_equal(att_sentence_open_for_training(ctx, calm->path, NULL, &m), ATT_OK);
        const att_sentence_training_options o = {.size = sizeof o, .pairs = PAIRS, .texts = texts, .scores = scores};
        const att_training_options common = {.size = sizeof common,
                                             .weight_decay = 0.1,
                                             .clip = 1,
                                             .schedule = &(const att_schedule){.size = sizeof(att_schedule),
                                                                               .kind = ATT_SCHEDULE_LINEAR,
                                                                               .max_rate = 0.01,
                                                                               .warmup = 2,
                                                                               .steps = STEPS}};
        if (att_sentence_training_new(m, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        for (int i = 0; i < STEPS; i++) {
            att_training_report r = {.size = sizeof r};
            assert_int_equal(att_training_step(t, &r), ATT_OK);
            check_near(expected[i], r.loss, tolerance * expected[i], "%s: step %d", att_isa(ctx), i + 1);
        }
        att_training_free(t);
        att_sentence_free(m);
    }
}

static void learning_has_the_losses_of_pytorch(void **state)
{
    (void)state;
    const test_folder calm = tiny_sentence();
    expect_losses(&calm, "losses");
    folder_remove(&calm);
}

#define MODULE(path, class) "{\"path\": \"" path "\", \"type\": \"sentence_transformers.models." class "\"}"

static void write_modules(const test_folder *f)
{
    folder_write(
        f, "modules.json",
        "[" MODULE("", "Transformer") ", " MODULE("1_Pooling", "Pooling") ", " MODULE("2_Dense", "Dense") ", " //
        MODULE("3_LayerNorm", "LayerNorm") "]");
    tiny_write_module(f, "2_Dense", "{\"in_features\": 12, \"out_features\": 7}", NULL);
    tiny_write_module(f, "3_LayerNorm", "{\"dimension\": 7}", NULL);
}

static void modules_learn_with_the_losses_of_pytorch(void **state)
{
    (void)state;
    const test_folder calm = tiny_sentence();
    write_modules(&calm);
    expect_losses(&calm, "modules");
    folder_remove(&calm);
}

/* ---- a training in a folder */

static const char *path_of(const char *name, char path[320])
{
    snprintf(path, 320, "%s/%s", model.path, name);
    return path;
}

typedef struct how {
    bool resume;
    int64_t seed, batch;
    const double *scores;
    const char *model;
} how;

static att_training *open_training(att_ctx *ctx, const char *name, const how *h)
{
    char path[320];
    att_training *t = NULL;
    const att_sentence_training_options o = {.size = sizeof o,
                                             .model = h->model ? h->model : model.path,
                                             .pairs = PAIRS,
                                             .texts = texts,
                                             .scores = h->scores ? h->scores : scores,
                                             .batch = h->batch ? h->batch : 4};
    const att_training_options common = {
        .size = sizeof common,
        .resume = h->resume,
        .seed = (uint64_t)h->seed,
        .schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2, .warmup = 3}};
    if (att_sentence_training_open(ctx, path_of(name, path), &common, &o, &t))
        assert_null(t);
    return t;
}

static void take_steps(att_training *t, int n)
{
    att_training_report r = {.size = sizeof r};
    for (int i = 0; i < n; i++)
        assert_int_equal(att_training_step(t, &r), ATT_OK);
}

/* What the model makes of the texts, as it is now. */
static void embed(const att_sentence *m, float y[2 * PAIRS * TINY_HIDDEN])
{
    assert_int_equal(att_sentence_embed(m, 2 * PAIRS, texts, NULL, NULL, y), ATT_OK);
}

static void a_training_is_refused_where_it_would_spoil_another(void **state)
{
    (void)state;
    static const double others[PAIRS] = {0.9, 0.1, 0.3, 0.75, 1.0, 0.4};
    const test_folder other = tiny_sentence();
    tiny_write_weights(&other, &(const tiny_weights){.coarse = true});
    const struct {
        how how;
        const char *says;
    } cases[] = {{{.seed = 1}, "has checkpoints of a training already"},
                 {{.seed = 1, .resume = true, .batch = 3}, "\"batch_pairs\" is 4 but here it is 3"},
                 {{.seed = 1, .resume = true, .scores = others}, "with other texts or scores"},
                 {{.seed = 1, .resume = true, .model = other.path}, "with other weights of the pre-trained model"}};
    att_ctx *ctx = check_open(NULL, 1);
    att_training *t = open_training(ctx, "one", &(how){.seed = 1});
    assert_non_null(t);
    take_steps(t, 1);
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(open_training(ctx, "one", &cases[i].how));
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
    }
    assert_null(open_training(ctx, "", &(how){.seed = 1}));
    assert_non_null(strstr(att_error(ctx), "is the model's own folder"));
    att_close(ctx);
    folder_remove(&other);
}

/* The folder has the model of the best score, whichever steps come behind it, and after a pause, too. */
static void the_folder_has_the_best_model_and_is_whole(void **state)
{
    (void)state;
    static const double evaluated[] = {0.5, 0.7, NAN, 0.6, 0.7};
    float best[2 * PAIRS * TINY_HIDDEN], y[2 * PAIRS * TINY_HIDDEN];
    char path[320];
    att_ctx *ctx = check_open(NULL, 2);
    tiny_write_weights(&model, &(const tiny_weights){.extra = "pooler.dense.bias"});
    att_training *t = open_training(ctx, "best", &(how){.seed = 5});
    assert_non_null(t);
    for (int i = 0; i < 5; i++) {
        take_steps(t, 1);
        assert_int_equal(att_training_keep_best(t, evaluated[i], ATT_F32), ATT_OK);
        if (i == 1)
            embed(att_training_sentence(t), best);
        if (i == 2) {
            assert_int_equal(att_training_save(t), ATT_OK);
            att_training_free(t);
            t = open_training(ctx, "best", &(how){.seed = 5, .resume = true});
            assert_non_null(t);
        }
    }
    att_training_info info = {.size = sizeof info};
    assert_int_equal(att_training_describe(t, &info), ATT_OK);
    assert_int_equal(info.evaluated, 5);
    assert_int_equal(info.best_step, 2);
    assert_true(info.best == 0.7);
    att_training_free(t);

    att_sentence *m;
    if (att_sentence_open(ctx, path_of("best", path), NULL, &m))
        fail_msg("%s", att_error(ctx));
    embed(m, y);
    assert_memory_equal(y, best, sizeof y);
    att_sentence_free(m);
    att_safetensors *file;
    assert_int_equal(att_safetensors_open(ctx, path_of("best/model.safetensors", path), &file), ATT_OK);
    assert_true(att_safetensors_find(file, "embeddings.LayerNorm.weight") >= 0);
    assert_true(att_safetensors_find(file, "pooler.dense.bias") >= 0); /* which is not trained */
    att_safetensors_free(file);
    tiny_write_weights(&model, NULL);
    att_close(ctx);
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const char *const bytes[2 * PAIRS] = {"a", "b", "c", "d", "e", "\xC3", "", "", "", "", "", ""};
    static const double above[PAIRS] = {0.9, 0.1, 1.5, 0.75, 1.0, 0.5}, none[PAIRS] = {NAN};
    static const att_schedule rates = {.size = sizeof rates, .max_rate = 1e-2};
    static const att_training_options common = {.size = sizeof common, .schedule = &rates};
    static const struct {
        att_sentence_training_options o;
        const char *says;
    } cases[] = {
        {{.pairs = 0, .texts = texts, .scores = scores}, "options.pairs is 0, expected 1 or more"},
        {{.pairs = PAIRS, .scores = scores}, "options.texts is NULL"},
        {{.pairs = PAIRS, .texts = texts}, "options.scores is NULL"},
        {{.pairs = PAIRS, .texts = texts, .scores = scores, .batch = -1}, "options.batch is -1"},
        {{.pairs = PAIRS, .texts = texts, .scores = above},
         "options.scores[2] is 1.5, which is not a cosine, from -1 to 1"},
        {{.pairs = PAIRS, .texts = texts, .scores = none}, "options.scores[0] is nan"},
        {{.pairs = PAIRS, .texts = bytes, .scores = scores}, "options.texts[5] is not UTF-8"},
        {{.pairs = PAIRS, .texts = texts, .scores = scores, .model = "."}, "options.model is for a training in a f"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    att_sentence *m, *fixed;
    att_training *t;
    assert_int_equal(att_sentence_open_for_training(ctx, model.path, NULL, &m), ATT_OK);
    assert_int_equal(att_sentence_open(ctx, model.path, NULL, &fixed), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_sentence_training_options o = cases[i].o;
        o.size = sizeof o;
        assert_int_equal(att_sentence_training_new(m, &common, &o, &t), ATT_ERR_ARGUMENT);
        assert_null(t);
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
    }
    const att_sentence_training_options good = {.size = sizeof good, .pairs = PAIRS, .texts = texts, .scores = scores};
    assert_int_equal(att_sentence_training_new(fixed, &common, &good, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_sentence_training_new: the model was opened for inference");
    double loss;
    assert_int_equal(att_sentence_training_new(m, &common, &good, &t), ATT_OK);
    assert_int_equal(att_training_validate(t, &loss), ATT_ERR_ARGUMENT);
    check_message(ctx, "a training of sentence models has nothing to validate by");
    att_training_free(t);
    assert_int_equal(att_sentence_write(fixed, model.path, ATT_F32), ATT_ERR_ARGUMENT);
    att_sentence_free(m);
    att_sentence_free(fixed);
    att_close(ctx);
}

static void reading_texts_is_cancelled(void **state)
{
    (void)state;
    volatile int flag = 0;
    att_ctx *ctx = check_open(NULL, 1);
    att_sentence *m;
    att_training *t = NULL;
    assert_int_equal(att_sentence_open_for_training(ctx, model.path, NULL, &m), ATT_OK);
    const att_sentence_training_options o = {
        .size = sizeof o, .pairs = PAIRS, .texts = texts, .scores = scores, .batch = 4};
    const att_training_options common = {
        .size = sizeof common,
        .schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2, .warmup = 3}};
    att_cancel_by(&flag);
    flag = 1;
    assert_int_equal(att_sentence_training_new(m, &common, &o, &t), ATT_ERR_CANCELLED);
    assert_null(t);
    assert_string_equal(att_error(ctx), "att_tokenize_batch was cancelled");
    flag = 0;
    assert_int_equal(att_sentence_training_new(m, &common, &o, &t), ATT_OK);
    att_cancel_by(NULL);
    att_training_free(t);
    att_sentence_free(m);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learning_has_the_losses_of_pytorch),
        cmocka_unit_test(modules_learn_with_the_losses_of_pytorch),
        cmocka_unit_test(a_training_is_refused_where_it_would_spoil_another),
        cmocka_unit_test(the_folder_has_the_best_model_and_is_whole),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(reading_texts_is_cancelled),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
