/* Training of static embeddings: losses are those of sentence-transformers, step by step, and the folder that is
 * written has the format that was read. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "fixtures/golden_text.h"
#include "fixtures/loss_rows.h"

#include <math.h>

#define GOLDEN "tests/golden/static"

static const att_schedule rates = {
    .size = sizeof rates, .kind = ATT_SCHEDULE_LINEAR, .max_rate = 0.001, .warmup = 4, .steps = STEPS};
static const att_training_options common = {
    .size = sizeof common, .weight_decay = 0.01, .clip = 1, .schedule = &rates, .seed = SEED};

static void each_step_has_the_loss_of_sentence_transformers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        att_sentence_loss loss;
        int64_t columns;
    } cases[] = {{"cosine", ATT_SENTENCE_LOSS_COSINE_SIMILARITY, 2},
                 {"ranking", ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, 2},
                 {"ranking_negatives", ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, 3},
                 {"triplet", ATT_SENTENCE_LOSS_TRIPLET, 3},
                 {"softmax", ATT_SENTENCE_LOSS_SOFTMAX, 2}};
    for (att_ctx *c = NULL; check_next_context(&c, 2);)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            double expected[STEPS], worst = 0;
            att_sentence *m;
            att_training *t;
            const att_sentence_training_options o = sentence_options_of(cases[k].loss, cases[k].columns);
            assert_int_equal(golden_line("tests/golden/static_losses.txt", cases[k].name, expected, STEPS), STEPS);
            if (att_sentence_open_for_training(c, GOLDEN "/static_f32", NULL, &m) ||
                att_sentence_training_new(m, &common, &o, &t))
                fail_msg("%s", att_error(c));
            set_classifier(t);
            for (int i = 0; i < STEPS; i++) {
                att_training_report r = {.size = sizeof r};
                assert_int_equal(att_training_step(t, &r), ATT_OK);
                /* Of a loss near 0 what is left is the rounding of logits, up to 20. */
                const double allowed = 1e-5 * expected[i] + 20 * 0x1p-24;
                check_near(expected[i], (float)r.loss, allowed, "%s: %s: step %d", att_isa(c), cases[k].name, i + 1);
                worst = fmax(worst, fabs(r.loss - expected[i]) / allowed);
            }
            print_message("%s: %s: %.2f of what is allowed\n", att_isa(c), cases[k].name, worst);
            att_training_free(t);
            att_sentence_free(m);
        }
}

enum { TEXTS = 4, MAX_DIM = 64 };
static const char *const texts[TEXTS] = {"the quick brown fox", "lazy dog", "", "seven small birds near water"};

static int64_t embed(const att_sentence *m, float *y)
{
    att_sentence_info info = {.size = sizeof info};
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_in_range(info.dim, 1, MAX_DIM);
    assert_int_equal(att_sentence_embed(m, TEXTS, texts, NULL, NULL, y), ATT_OK);
    return info.dim;
}

/* Each format: the names of its tensors, those that are there beside the table, and the type of a table of int8 */
static void a_model_is_written_in_the_format_that_was_read(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *table, *path;
    } cases[] = {{"model2vec_f32", "embeddings", ""},
                 {"model2vec_int8", "embeddings", ""},
                 {"static_f32", "embedding.weight", NULL},
                 {"static_f16", "embedding.weight", NULL}};
    const test_folder f = folder_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char from[128], to[256], path[320];
        float before[TEXTS * MAX_DIM], after[TEXTS * MAX_DIM], again[TEXTS * MAX_DIM];
        att_sentence *m;
        att_training *t;
        att_training_report r = {.size = sizeof r};
        snprintf(from, sizeof from, GOLDEN "/%s", cases[i].folder);
        snprintf(to, sizeof to, "%s/%s", f.path, cases[i].folder);
        const att_sentence_training_options o = sentence_options_of(ATT_SENTENCE_LOSS_COSINE_SIMILARITY, 2);
        if (att_sentence_open_for_training(ctx, from, NULL, &m) || att_sentence_training_new(m, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        const int64_t dim = embed(m, before);
        for (int k = 0; k < 3; k++)
            assert_int_equal(att_training_step(t, &r), ATT_OK);
        embed(m, after);
        assert_memory_not_equal(before, after, (size_t)(TEXTS * dim) * sizeof *before);
        if (att_sentence_write(m, to, 0))
            fail_msg("%s", att_error(ctx));
        att_training_free(t);
        att_sentence_free(m);
        assert_int_equal(att_sentence_open(ctx, to, NULL, &m), ATT_OK);
        embed(m, again);
        assert_memory_equal(after, again, (size_t)(TEXTS * dim) * sizeof *after);
        att_sentence_free(m);
        if (cases[i].path) {
            att_safetensors *file;
            snprintf(path, sizeof path, "%s/model.safetensors", to);
            assert_int_equal(att_safetensors_open(ctx, path, &file), ATT_OK);
            assert_true(att_safetensors_find(file, cases[i].table) >= 0);
            att_safetensors_free(file);
        }
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_has_the_loss_of_sentence_transformers),
        cmocka_unit_test(a_model_is_written_in_the_format_that_was_read),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
