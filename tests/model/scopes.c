/* Models of all kinds have the same names of scopes (attend_model.h): a hook hears of each that ends, in this order and
 * with results of these shapes. */
#include "fixtures/check.h"
#include "fixtures/model_cases.h"
#include "caption/caption_model.h"
#include "translate/seq2seq.h"
#include "translate/transformer.h"

enum { TEXT = 1 << 14 };
typedef struct heard {
    char text[TEXT];
    size_t n;
} heard;

static void add(heard *h, const char *scope, int64_t rows, int64_t width)
{
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%s [%lld, %lld]\n", scope, (long long)rows,
                             (long long)width);
    assert_true(h->n < sizeof h->text);
}

static void hear(void *user, const att_tape_event *e)
{
    if (strcmp(e->op, "scope") != 0)
        return;
    assert_true(e->output->rank >= 2 && !e->plan && !e->args);
    add(user, e->scope, e->output->dim[0], att_count(e->output) / (e->output->dim[0] ? e->output->dim[0] : 1));
}

/* What an encoder or decoder should have told; cross: its layers attend to a source */
static void expect_layers(heard *h, const char *side, int64_t layers, bool cross, int64_t rows, int64_t hidden)
{
    static const char *const parts[] = {"/attention", "/cross", "/feed_forward", ""};
    char scope[100];
    snprintf(scope, sizeof scope, "%s/embeddings", side);
    add(h, scope, rows, hidden);
    for (int64_t i = 0; i < layers; i++)
        for (int p = 0; p < 4; p++) {
            snprintf(scope, sizeof scope, "%s/layer.%lld%s", side, (long long)i, parts[p]);
            if (p != 1 || cross)
                add(h, scope, rows, hidden);
        }
}

static const int32_t ids[] = {1, 0, 1, 1, 0, 2, 1};
static const int64_t all[] = {0, 5}, some[] = {0, 3, 7};

static att_transformer_info transformer(const att_encoder_decoder *m)
{
    att_transformer_info i = {.size = sizeof i};
    captioner_need(att_transformer_describe((const att_transformer *)m, &i));
    return i;
}

/* Each applies a model on t, and says what should be heard. */

static att_var *encoder(att_tape *t, const att_encoder *e, heard *h)
{
    att_encoder_info i = {.size = sizeof i};
    captioner_need(att_encoder_describe(e, &i));
    expect_layers(h, "encoder", i.layers, false, 7, i.hidden);
    add(h, "encoder", 7, i.hidden);
    return att_encoder_apply(t, e, ids, some, 2, NULL);
}

static att_var *sentence(att_tape *t, const void *m, heard *h) { return encoder(t, att_sentence_encoder(m), h); }

static att_var *classifier(att_tape *t, const void *m, heard *h)
{
    return encoder(t, att_text_classifier_encoder(m), h);
}

static att_var *language(att_tape *t, const void *g, heard *h)
{
    const att_language_model *m = att_text_generator_model(g);
    att_language_model_info i = {.size = sizeof i};
    captioner_need(att_language_model_describe(m, &i));
    expect_layers(h, "decoder", i.layers, false, 5, i.hidden);
    add(h, "decoder", 5, i.vocabulary);
    return att_language_model_apply(t, m, ids, all, 1, NULL, NULL);
}

static att_var *translator(att_tape *t, const void *translator, heard *h)
{
    const att_encoder_decoder *m = att_translator_model(translator);
    const att_sequence_pairs pairs = {.size = sizeof pairs,
                                      .n = 2,
                                      .source = ids,
                                      .source_offsets = some,
                                      .target = ids + 2,
                                      .target_offsets = (const int64_t[]){0, 2, 4}};
    att_encoder_decoder_info i = {.size = sizeof i};
    captioner_need(att_encoder_decoder_describe(m, &i));
    if (strcmp(i.architecture, "rnn") != 0) {
        const att_transformer_info x = transformer(m);
        expect_layers(h, "encoder", x.encoder_layers, false, 7, x.hidden);
        add(h, "encoder", 7, x.hidden);
        expect_layers(h, "decoder", x.decoder_layers, true, 4, x.hidden);
        add(h, "decoder", 4, x.hidden);
        add(h, "output", 4, x.target_vocabulary);
    } else {
        const att_seq2seq_config *c = &((const att_seq2seq *)m)->config;
        add(h, "encoder/embeddings", 7, c->embedding);
        add(h, "decoder/embeddings", 4, c->embedding);
        for (int step = 0; step < 2; step++) /* additive */
            add(h, "decoder/cross", 2, c->units);
    }
    return att_encoder_decoder_logits(t, m, &pairs, NULL);
}

static float pixels[2 * 28 * 28 * 3];
static att_var *images(att_tape *t, int64_t n, int64_t height, int64_t width, int64_t channels)
{
    att_tensor x;
    assert_true(n * height * width * channels <= (int64_t)(sizeof pixels / sizeof *pixels));
    captioner_need(att_wrap(&x, pixels, ATT_F32, ATT_DIMS(n, height, width, channels), NULL));
    return att_constant(t, &x);
}

static att_var *vision(att_tape *t, const void *m, heard *h)
{
    const att_vit *v = att_image_model_vit(m);
    att_vit_info i = {.size = sizeof i};
    captioner_need(att_vit_describe(v, &i));
    const int64_t tokens = i.prefix + i.image[0] / i.patch[0] * (i.image[1] / i.patch[1]);
    expect_layers(h, "encoder", i.layers, false, 2 * tokens, i.hidden);
    add(h, "encoder", 2 * tokens, i.hidden);
    return att_vit_apply(t, v, images(t, 2, i.image[0], i.image[1], i.channels), NULL);
}

static att_var *captioner(att_tape *t, const void *model, heard *h)
{
    const att_captioner *m = ((const att_caption_model *)model)->captioner;
    const att_captioner_config *c = &m->config;
    if (((const att_caption_model *)model)->encoder)
        vision(t, ((const att_caption_model *)model)->encoder, h);
    else
        add(h, "encoder", c->grid[0] * c->grid[1], c->features);
    if (c->decoder == ATT_CAPTIONER_TRANSFORMER) {
        expect_layers(h, "decoder", c->layers, true, 1, m->transformer.hidden);
        add(h, "decoder", 1, m->transformer.hidden);
    } else {
        add(h, "decoder/embeddings", 1, m->recurrent.config.embedding);
        add(h, "decoder/cross", 1, m->recurrent.config.units);
    }
    return att_captioner_kind.prepare(t, m); /* a caption of one word */
}

static att_var *recommender(att_tape *t, const void *m, heard *h)
{
    static const int64_t offsets[] = {0, 3, 4};
    static const int32_t items[] = {1, 0, 2, 1};
    att_recommender_info i = {.size = sizeof i};
    captioner_need(att_recommender_describe(m, &i));
    const char *side = strstr(i.type, "bert4rec") ? "encoder" : "decoder";
    expect_layers(h, side, i.layers, false, 4, i.hidden);
    add(h, side, 4, i.hidden);
    return att_recommender_apply(t, m, items, offsets, 2, NULL);
}

static att_var *(*const apply_of[])(att_tape *t, const void *m, heard *h) = {
    [ATT_SUBJECT_SENTENCE] = sentence,    [ATT_SUBJECT_LANGUAGE] = language, [ATT_SUBJECT_TRANSLATE] = translator,
    [ATT_SUBJECT_VISION] = vision,        [ATT_SUBJECT_CAPTION] = captioner, [ATT_SUBJECT_RECOMMEND] = recommender,
    [ATT_SUBJECT_CLASSIFIER] = classifier};

static void scopes_of_all_models_end_with_the_results_that_attend_model_h_names(void **state)
{
    (void)state;
    static heard expected, got;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        att_any_model *m;
        att_tape *t;
        att_tensor v;
        expected.n = got.n = 0;
        captioner_need(att_any_model_open(ctx, path.text, ATT_SUBJECT_NONE, NULL, &m));
        captioner_need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = hear, .hook_user = &got), &t));
        captioner_need(att_var_value(t, apply_of[k->subject](t, att_any_model_as(m, k->subject), &expected), &v));
        if (strcmp(got.text, expected.text) != 0)
            fail_msg("%s has the scopes\n%s\nnot\n%s", k->name, got.text, expected.text);
        att_tape_free(t);
        att_any_model_free(m);
        folder_remove(&f);
    }
}

/* One token more, from caches, on the same names */
static void a_step_of_a_translation_has_the_same_names(void **state)
{
    (void)state;
    static heard expected, got;
    const test_folder f = case_translator_folder();
    att_generator g;
    att_translator *m;
    att_tape *t;
    att_tensor v;
    captioner_need(att_translator_open(ctx, f.path, NULL, &m));
    const att_encoder_decoder *model = att_translator_model(m);
    const att_transformer_info i = transformer(model);
    captioner_need(att_architecture_of(model)->start(model, ids, some, 2, &g));
    captioner_need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = hear, .hook_user = &got), &t));
    captioner_need(att_var_value(t, g.step(g.user, t, (const int32_t[]){1, 2}), &v));
    expect_layers(&expected, "decoder", i.decoder_layers, true, 2, i.hidden);
    add(&expected, "decoder", 2, i.hidden);
    assert_string_equal(got.text, expected.text);
    att_tape_free(t);
    g.free(g.user);
    att_translator_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_of_all_models_end_with_the_results_that_attend_model_h_names),
        cmocka_unit_test(a_step_of_a_translation_has_the_same_names),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
