/* The losses of sentence embeddings are those of sentence-transformers, step by step; a classifier learns on after a
 * pause; no text is twice in a batch; what a loss cannot be computed from is named. */
#include "check.h"
#include "golden_text.h"
#include "tiny_bert.h"
#include "train/distinct_batches.h"
#include "train/parallel_corpus.h"
#include "train/training.h"

enum { ROWS = 12, COLUMNS = 3, BATCH = 4, CLASSES = 3, STEPS = 20, SEED = 8 };

/* Those of make_sentence_losses.py */
static const char *const rows[ROWS][COLUMNS] = {
    {"a b c", "a b d", "x y"},   {"e f", "x y z w", "b"},
    {"q", "r s", "a b c"},       {"k l m n o p q r s t", "k l m n o p", "c c c"},
    {"a b c", "c b a", "u v"},   {"h i j", "j i h", "e f"},
    {"a b c", "b c d", "m n"},   {"w", "v w", "h i j"},
    {"f g h", "f g", "t u v w"}, {"z y", "y z", "a b d"},
    {"i j k", "k j", "z y"},     {"o o", "p p", "r s"}};
static const int32_t labels[ROWS] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
static const double scores[ROWS] = {0.9, 0.1, 0.3, 0.75, 1.0, 0.5, 0.8, 0.6, 0.4, 0.95, 0.2, 0.55};
static const att_schedule rates = {
    .size = sizeof rates, .kind = ATT_LINEAR, .max_rate = 0.0005, .warmup = 4, .steps = STEPS};

static test_folder model; /* mean pooling, not normalised, without dropout */

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

/* The rows' first `columns` texts. */
static const char *const *texts_of(int64_t columns)
{
    static const char *texts[ROWS * COLUMNS];
    for (int64_t i = 0; i < ROWS * columns; i++)
        texts[i] = rows[i / columns][i % columns];
    return texts;
}

/* What all trainings here have in common. */
static att_sentence_training_options options_of(att_sentence_loss loss, int64_t columns)
{
    return (att_sentence_training_options){.size = sizeof(att_sentence_training_options),
                                           .pairs = ROWS,
                                           .texts = texts_of(columns),
                                           .columns = columns,
                                           .scores = scores,
                                           .labels = labels,
                                           .classes = CLASSES,
                                           .batch = BATCH,
                                           .weight_decay = 0.01,
                                           .clip = 1,
                                           .schedule = &rates,
                                           .loss = loss,
                                           .seed = SEED};
}

/* Gives the classifier the weights that make_sentence_losses.py has. */
static void set_classifier(const att_training *t)
{
    const char *name;
    att_param *p;
    for (int64_t i = 0; (p = att_training_param(t, i, &name)); i++) {
        const att_tensor *w = att_param_value(p);
        const int64_t n = w->dim[0] * (w->rank > 1 ? w->dim[1] : 1);
        for (int64_t k = 0; !strncmp(name, "classifier.", 11) && k < n; k++)
            ((float *)w->data)[k] = tiny_number(name, (uint64_t)k);
        att_param_invalidate(p);
    }
}

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
    } cases[] = {{"cosine", ATT_LOSS_COSINE_SIMILARITY, 2, 0, 0},
                 {"ranking", ATT_LOSS_MULTIPLE_NEGATIVES_RANKING, 2, 0, 0},
                 {"ranking_negatives", ATT_LOSS_MULTIPLE_NEGATIVES_RANKING, 3, 0, 0},
                 {"triplet", ATT_LOSS_TRIPLET, 3, ATT_DISTANCE_EUCLIDEAN, 0},
                 {"triplet_margin", ATT_LOSS_TRIPLET, 3, ATT_DISTANCE_EUCLIDEAN, 1},
                 {"triplet_cosine", ATT_LOSS_TRIPLET, 3, ATT_DISTANCE_COSINE, 0.25},
                 {"softmax", ATT_LOSS_SOFTMAX, 2, 0, 0}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            double expected[STEPS], worst = 0;
            att_sentence *m;
            att_training *t;
            att_sentence_training_options o = options_of(cases[k].loss, cases[k].columns);
            o.distance = cases[k].distance;
            o.margin = cases[k].margin;
            assert_int_equal(golden_line("tests/golden/sentence_losses.txt", cases[k].name, expected, STEPS), STEPS);
            assert_int_equal(att_sentence_open_for_training(ctx, model.path, &m), ATT_OK);
            if (att_sentence_training_new(m, &o, &t))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_has_the_loss_of_sentence_transformers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
