/* Which parameters decay: all that have more than one dimension, but for those that a model sets, by name. */
#include "fixtures/check.h"
#include "fixtures/captioner.h"

#include "attend_recommend.h"
#include "attend_translate.h"
#include "translate/seq2seq_config.h"
#include "vision/vit.h"

/* Do exactly those decay that have more than one dimension and no name that begins with `except`? At least `excepted`
 * of more dimensions have. */
static void expect_decay(const att_nn_params *p, const char *except, int excepted)
{
    const char *name;
    const att_param *x;
    int n = 0;
    assert_true(att_nn_params_count(p) > 0);
    for (int64_t i = 0; (x = att_nn_params_at(p, i, &name)); i++) {
        const bool matrix = att_param_value(x)->rank > 1, named = !strncmp(name, except, strlen(except));
        n += matrix && named;
        if (att_param_weight_decay(x) != (matrix && !named))
            fail_msg("\"%s\" decays: %d", name, att_param_weight_decay(x));
    }
    assert_int_equal(n, excepted);
}

static void classifiers_leave_tokens_and_positions_as_they_are(void **state)
{
    (void)state;
#define SIZES "\"hidden_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_labels\": 3"
    static const struct {
        const char *settings;
        int excepted;
    } cases[] = {
        {"{\"model_type\": \"vit\", \"image_size\": 32, \"intermediate_size\": 8, " SIZES "}", 2},
        {"{\"model_type\": \"deit\", \"image_size\": 32, \"intermediate_size\": 8, " SIZES "}", 3},
        {"{\"model_type\": \"dinov2_with_registers\", \"image_size\": 28, \"patch_size\": 14, \"mlp_ratio\": 1, " SIZES
         "}",
         3},
        {"{\"model_type\": \"attend-vit\", \"image_size\": 12, \"stem\": [8, 16], \"intermediate_size\": 8, " SIZES "}",
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_vit *m;
        if (att_vit_new(ctx, cases[i].settings, 1, &m))
            fail_msg("%s", att_error(ctx));
        expect_decay(att_model_params(&m->model), "embeddings.", cases[i].excepted);
        att_vit_free(m);
    }
}

static void captioners_leave_embeddings_of_words(void **state)
{
    (void)state;
    static const char *const decoders[] = {CAPTIONER_GRU, CAPTIONER_LSTM, CAPTIONER_TRANSFORMER};
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++) {
        att_captioner *m = captioner_make(CAPTIONER_CNN, decoders[i]);
        expect_decay(att_model_params(&m->model), "target.", 1);
        att_model_free(m);
    }
}

static void recommenders_leave_positions(void **state)
{
    (void)state;
    enum { ITEMS = 3, WIDTH = 5 };
    static const char *const ids[ITEMS] = {"a", "b", "c"}, *const types[] = {"attend-sasrec", "attend-bert4rec"};
    static const float vectors[ITEMS * WIDTH] = {0};
    const att_item_content content = {.size = sizeof content, .vectors = vectors, .width = WIDTH, .add = true};
    for (int i = 0; i < 4; i++) {
        char settings[200];
        att_recommender *m;
        snprintf(settings, sizeof settings,
                 "{\"model_type\": \"%s\", \"hidden_size\": 4, \"num_hidden_layers\": 1, \"num_attention_heads\": 2}",
                 types[i / 2]);
        if (att_recommender_new(ctx, settings, ITEMS, ids, i % 2 ? &content : NULL, 1, &m))
            fail_msg("%s", att_error(ctx));
        int positions = 0;
        const char *name;
        const att_param *p;
        for (int64_t k = 0; (p = att_nn_params_at(att_recommender_params(m), k, &name)); k++) {
            const bool position = !strcmp(name, "position.weight");
            positions += position;
            assert_int_equal(att_param_weight_decay(p), !position && att_param_value(p)->rank > 1);
        }
        assert_int_equal(positions, 1);
        att_recommender_free(m);
    }
}

static void translators_leave_no_matrix(void **state)
{
    (void)state;
    const att_seq2seq_config c = {.size = sizeof c,
                                  .source_vocabulary = 9,
                                  .target_vocabulary = 9,
                                  .embedding = 4,
                                  .units = 6,
                                  .layers = 1,
                                  .attention = ATT_SEQ2SEQ_ADDITIVE,
                                  .max_positions = 16,
                                  .pad = 8,
                                  .start = 8};
    att_seq2seq *m;
    assert_int_equal(att_seq2seq_new(ctx, &c, 1, &m), ATT_OK);
    const att_encoder_decoder *model = att_seq2seq_as_encoder_decoder(m);
    const char *name;
    const att_param *p;
    bool target = false;
    for (int64_t i = 0; (p = att_nn_params_at(att_encoder_decoder_params(model), i, &name)); i++) {
        target |= !strcmp(name, "target.weight");
        assert_int_equal(att_param_weight_decay(p), att_param_value(p)->rank > 1);
    }
    assert_true(target);
    att_seq2seq_free(m);
}

/* With a gradient of 0 AdamW moves only what decays. */
static void optimizers_decay_what_is_set(void **state)
{
    (void)state;
    float x[2] = {1, 1};
    att_tensor value;
    att_param *p;
    att_optimizer *o;
    assert_int_equal(att_wrap(&value, x, ATT_F32, 1, (const int64_t[]){2}, NULL), ATT_OK);
    for (int decay = 0; decay < 2; decay++) {
        assert_int_equal(att_param_new(ctx, &value, &p), ATT_OK);
        assert_true(att_param_weight_decay(p));
        att_param_set_weight_decay(p, decay);
        att_tape *t;
        assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t), ATT_OK);
        assert_int_equal(att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .weight_decay = 0.5), &o), ATT_OK);
        assert_int_equal(att_optimizer_add(o, p, NULL), ATT_OK);
        att_var *v = att_scale(t, att_parameter(t, p), 0);
        assert_int_equal(att_tape_backward(t, v, NULL), ATT_OK);
        assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.5), NULL), ATT_OK);
        assert_true(x[0] == (decay ? 0.75f : 1.0f));
        att_optimizer_free(o);
        att_tape_free(t);
        att_param_free(p);
    }
    assert_false(att_param_weight_decay(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers_leave_tokens_and_positions_as_they_are),
        cmocka_unit_test(captioners_leave_embeddings_of_words),
        cmocka_unit_test(recommenders_leave_positions),
        cmocka_unit_test(translators_leave_no_matrix),
        cmocka_unit_test(optimizers_decay_what_is_set),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
