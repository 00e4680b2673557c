/* The parameters of models of all kinds by name, whatever they were opened for; and a language model's head. */
#include "fixtures/check.h"
#include "fixtures/model_cases.h"

/* By the functions of the subject */
static const att_nn_params *of_subject(const att_any_model *m, att_subject subject)
{
    const void *model = att_any_model_as(m, subject);
    switch (subject) {
    case ATT_SUBJECT_SENTENCE:
        assert_ptr_equal(att_encoder_params(att_sentence_encoder(model)), att_sentence_params(model));
        return att_sentence_params(model);
    case ATT_SUBJECT_CLASSIFIER:
        assert_ptr_equal(att_encoder_params(att_text_classifier_encoder(model)), att_text_classifier_params(model));
        return att_text_classifier_params(model);
    case ATT_SUBJECT_TRANSLATE:
        assert_ptr_equal(att_encoder_decoder_params(att_translator_model(model)), att_translator_params(model));
        return att_translator_params(model);
    case ATT_SUBJECT_LANGUAGE:
        assert_ptr_equal(att_language_model_params(att_text_generator_model(model)), att_text_generator_params(model));
        return att_text_generator_params(model);
    case ATT_SUBJECT_VISION:
        assert_ptr_equal(att_vit_params(att_image_model_vit(model)), att_image_model_params(model));
        return att_image_model_params(model);
    case ATT_SUBJECT_CAPTION:
        return att_caption_model_params(model);
    default:
        return att_recommender_params(model);
    }
}

static void parameters_of_a_model_for_inference_are_had_by_name_as_they_are_kept(void **state)
{
    (void)state;
    att_optimizer *optimizer;
    captioner_need(att_optimizer_new(ctx, NULL, &optimizer));
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        att_any_model *m;
        const att_model_options o = {.size = sizeof o, .weights = ATT_WEIGHT_TYPE_BF16};
        captioner_need(att_any_model_open(ctx, path.text, ATT_SUBJECT_NONE, &o, &m));
        const att_nn_params *p = att_any_model_params(m);
        att_model_weights w = {.size = sizeof w};
        int64_t bytes[ATT_MAX_DTYPES] = {0};
        const char *name;
        att_param *x;
        assert_ptr_equal(p, of_subject(m, k->subject));
        assert_false(att_nn_params_trainable(p));
        assert_int_equal(att_nn_params_optimize(p, optimizer), ATT_ERR_ARGUMENT);
        check_message(ctx, "the parameters are not trainable, as those of a model that was opened for inference");
        assert_true(att_nn_params_count(p) > 10);
        for (int64_t n = 0; (x = att_nn_params_at(p, n, &name)); n++) {
            const att_tensor *v = att_param_value(x);
            assert_ptr_equal(att_nn_params_find(p, name), x);
            bytes[v->dtype] += att_count(v) * (int64_t)att_dtype_size(v->dtype);
        }
        captioner_need(att_any_model_weights(m, &w));
        assert_true(bytes[ATT_BF16] > 0);
        for (int t = 0; t < ATT_MAX_DTYPES; t++)
            if (k->make == case_caption_folder ? bytes[t] > w.used[t] : bytes[t] != w.used[t])
                fail_msg("%s: %lld bytes of %s, but %lld are used", k->name, (long long)bytes[t],
                         att_dtype_name((att_dtype)t), (long long)w.used[t]);
        att_any_model_free(m);
        folder_remove(&f);
    }
    att_optimizer_free(optimizer);
    assert_null(att_any_model_params(NULL));
}

static void quantized_parameters_are_blocks(void **state)
{
    (void)state;
    att_image_model *m;
    const att_model_options o = {.size = sizeof o, .weights = ATT_WEIGHT_TYPE_INT8};
    captioner_need(att_image_model_open(ctx, "models/fashion-mnist", &o, &m));
    const att_param *p = att_nn_params_find(att_image_model_params(m), "layer.0.attention.query.weight");
    assert_non_null(p);
    assert_int_equal(att_param_value(p)->dtype, ATT_Q8_0);
    att_image_model_free(m);
}

static void a_captioner_has_an_encoder_where_that_is_a_vision_transformer(void **state)
{
    (void)state;
    test_folder (*const make[])(void) = {case_caption_folder, case_gru_folder};
    for (int i = 0; i < 2; i++) {
        const test_folder f = make[i]();
        att_caption_model *m;
        captioner_need(att_caption_model_open(ctx, f.path, NULL, &m));
        const att_image_model *encoder = att_caption_model_encoder(m);
        assert_true((encoder != NULL) == (i == 0));
        assert_true((att_nn_params_find(att_image_model_params(encoder), "layer.1.attention.query.weight") != NULL) ==
                    (i == 0));
        att_caption_model_free(m);
        folder_remove(&f);
    }
}

/* ---- the head of a language model */

enum { TOKENS = 5 };
typedef struct states {
    float *layer[8]; /* results, copied */
    int n;
    int64_t hidden;
} states;

static void keep(void *user, const att_tape_event *e)
{
    states *s = user;
    const char *last = strrchr(e->scope, '/');
    if (strcmp(e->op, "scope") != 0 || !last || strncmp(last, "/layer.", 7) != 0)
        return;
    assert_true(s->n < 8);
    s->hidden = e->output->dim[1];
    const size_t bytes = (size_t)att_count(e->output) * sizeof(float);
    s->layer[s->n] = malloc(bytes);
    memcpy(s->layer[s->n++], e->output->data, bytes);
}

static void the_head_makes_logits_of_the_results_of_any_layer(void **state)
{
    (void)state;
    static const int32_t ids[TOKENS] = {1, 0, 1, 1, 0};
    static const int64_t offsets[] = {0, TOKENS};
    test_folder (*const make[])(void) = {case_llama_folder, case_gpt2_folder};
    for (int i = 0; i < 2; i++) {
        const test_folder f = make[i]();
        states s = {.n = 0};
        att_language_model *m;
        att_tape *t;
        att_tensor logits, lens, x;
        captioner_need(att_language_model_open(ctx, f.path, NULL, &m));
        captioner_need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = keep, .hook_user = &s), &t));
        captioner_need(att_var_value(t, att_language_model_apply(t, m, ids, offsets, 1, NULL, NULL), &logits));
        assert_true(s.n > 1);
        for (int l = 0; l < s.n; l++) {
            captioner_need(att_wrap(&x, s.layer[l], ATT_F32, ATT_DIMS(TOKENS, s.hidden), NULL));
            captioner_need(att_var_value(t, att_language_model_head(t, m, att_constant(t, &x)), &lens));
            assert_true(lens.rank == 2 && lens.dim[0] == TOKENS && lens.dim[1] == logits.dim[1]);
            const bool same = memcmp(lens.data, logits.data, (size_t)att_count(&lens) * sizeof(float)) == 0;
            assert_true(same == (l == s.n - 1));
        }
        captioner_need(att_wrap(&x, s.layer[0], ATT_F32, ATT_DIMS(TOKENS * s.hidden / 2, 2), NULL));
        assert_null(att_language_model_head(t, m, att_constant(t, &x)));
        assert_int_equal(att_var_value(t, NULL, &lens), ATT_ERR_SHAPE);
        check_message(ctx, "language_model_head: x is [");
        for (int l = 0; l < s.n; l++)
            free(s.layer[l]);
        att_tape_free(t);
        att_language_model_free(m);
        folder_remove(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_a_model_for_inference_are_had_by_name_as_they_are_kept),
        cmocka_unit_test(quantized_parameters_are_blocks),
        cmocka_unit_test(a_captioner_has_an_encoder_where_that_is_a_vision_transformer),
        cmocka_unit_test(the_head_makes_logits_of_the_results_of_any_layer),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
