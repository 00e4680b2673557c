/* Traces of captions: where words come from, with recurrent decoders, Transformers, and a vision Transformer as the
 * encoder. */
#include "fixtures/caption_models.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/trace_rows.h"

/* ---- attention */

/* They differ from word to word. */
static void words_have_weights_over_the_locations(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind += 2) {
        const test_folder folder = captioner_folder(decoders[kind], true);
        att_caption_model *m = open_model(&folder);
        att_image_caption c;
        att_trace *t;
        captioner_need(att_caption(m, 1, &images[3], NULL, &c));
        captioner_need(att_caption_trace(m, &images[3], c.ids, c.count, NULL, &t));
        const att_trace_info a = trace_info(t);
        float *weights = trace_weights(t, ATT_TRACE_SIDE_CROSS, -1, -1);
        assert_true(a.target == c.count && a.output_rows == c.count);
        assert_memory_equal(a.target_ids, c.ids, (size_t)c.count * sizeof *c.ids);
        assert_true(a.shifted);
        assert_true(a.grid[0] == 2 && a.grid[1] == 2);
        assert_true(a.source == CAPTIONER_LOCATIONS && a.prefix == 0 && !a.source_ids);
        assert_true(a.image->height == 8 && a.image->width == 8 && a.image->channels == 3);
        for (int64_t i = 0; i < a.target; i++) {
            double sum = 0;
            for (int k = 0; k < CAPTIONER_LOCATIONS; k++) {
                assert_true(weights[i * CAPTIONER_LOCATIONS + k] > 0);
                sum += (double)weights[i * CAPTIONER_LOCATIONS + k];
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
        assert_true(memcmp(weights, weights + CAPTIONER_LOCATIONS, CAPTIONER_LOCATIONS * sizeof *weights) != 0);
        free(weights);
        att_trace_free(t);
        assert_int_equal(att_caption_trace(m, images, (const int32_t[]){9}, 1, NULL, &t), ATT_ERR_ARGUMENT);
        check_message(ctx, "att_caption_trace: words[0] is 9, not in [0, 9)");
        assert_null(t);
        assert_int_equal(att_caption_trace(m, images, c.ids, 7, NULL, &t), ATT_ERR_ARGUMENT);
        check_message(ctx, "att_caption_trace: n is 7, not in [1, 6]");
        assert_int_equal(att_caption_trace(m, images, c.ids, 1,
                                           ATT_OPTIONS(att_trace_options, .hide = &(const int64_t){4}, .n_hide = 1),
                                           &t),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, "options.hide[0] is 4, but the tokens are 0 to 3");
        att_image_caption_free(ctx, &c);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

/* Steps in which the words were found: of each the most probable one. */
static void the_output_of_a_trace_is_the_words(void **state)
{
    (void)state;
    static const int64_t hide[] = {0};
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind += 2) {
        const test_folder folder = captioner_folder(decoders[kind], true);
        const bool transformer = kind == 2;
        att_caption_model *m = open_model(&folder);
        att_image_caption c;
        att_trace *t, *hidden;
        captioner_need(att_caption(m, 1, &images[3], ATT_OPTIONS(att_caption_options, .beam = 1), &c));
        captioner_need(
            att_caption_trace(m, &images[3], c.ids, c.count, ATT_OPTIONS(att_trace_options, .hidden = true), &t));
        captioner_need(att_caption_trace(m, &images[3], c.ids, c.count,
                                         ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1), &hidden));
        const att_trace_info info = trace_info(t);
        assert_int_equal(info.outputs, CAPTIONER_WORDS + 2);
        float *logits = trace_output(t, -1), *others = trace_output(hidden, -1),
              *w = trace_weights(hidden, ATT_TRACE_SIDE_CROSS, -1, -1);
        for (int64_t i = 0; i < info.target; i++) {
            int best = 0;
            for (int k = 1; k < CAPTIONER_WORDS + 2; k++)
                best = logits[i * info.outputs + k] > logits[i * info.outputs + best] ? k : best;
            assert_int_equal(best, c.ids[i]);
            assert_true(w[i * CAPTIONER_LOCATIONS] <= 0);
        }
        trace_check_rows(w, info.target, CAPTIONER_LOCATIONS);
        assert_memory_not_equal(logits, others, (size_t)(info.target * info.outputs) * sizeof *logits);
        const int64_t layers = info.layers[ATT_TRACE_SIDE_DECODER];
        assert_true(transformer ? layers == 2 : layers == 0);
        assert_int_equal(info.attentions, transformer ? 2 * layers : 1);
        if (transformer) {
            float *again = trace_output(t, layers), *before = trace_output(t, 0);
            assert_memory_equal(logits, again, (size_t)(info.target * info.outputs) * sizeof *logits);
            assert_memory_not_equal(logits, before, (size_t)(info.target * info.outputs) * sizeof *logits);
            free(again), free(before);
        } else {
            assert_int_equal(att_trace_output(t, 0, 0, 1, logits), ATT_ERR_ARGUMENT);
        }
        free(logits), free(others), free(w);
        att_trace_free(t);
        att_trace_free(hidden);
        att_image_caption_free(ctx, &c);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

static void without_attention_there_are_no_locations(void **state)
{
    (void)state;
    att_image images[IMAGES];
    att_trace *a;
    make_images(images);
    const test_folder folder = captioner_folder(CAPTIONER_LSTM, false);
    att_caption_model *m = open_model(&folder);
    assert_int_equal(att_caption_trace(m, images, (const int32_t[]){0}, 1, NULL, &a), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "the model has no attention, but one context vector of an image");
    att_caption_model_free(m);
    folder_remove(&folder);
    free_images(images);
}

/* ---- a vision Transformer as the encoder */

/* The grid is what the vision Transformer makes of the patches, without [CLS]: the log probabilities of a caption are
 * those of the captioner with it. */
static void patches_of_a_vision_transformer_are_locations(void **state)
{
    (void)state;
    static float grid[TINY_VIT_NUMBERS];
    static const char *const text = "a red square";
    static const int64_t of_image[] = {0, 1}, offsets[] = {0, 4};
    const test_folder folder = vit_folder(VIT_ENCODER, CAPTIONER_TRANSFORMER);
    att_image images[IMAGES];
    test_folder encoder;
    tiny_images x;
    int32_t words[4];
    double p, expected = 0;
    make_images(images);
    snprintf(encoder.path, sizeof encoder.path, "%.40s/encoder", folder.path);
    att_image_model *v;
    captioner_need(att_image_model_open(ctx, encoder.path, NULL, &v));
    tiny_images_make(&x, 1, VIT_SIDE, VIT_SIDE, 3);
    captioner_need(att_image_processor_apply(att_image_model_processor(v), &images[1], x.pixel));
    assert_int_equal(tiny_vit_apply(att_image_model_vit(v), att_vit_apply, &x.tensor, grid),
                     (1 + VIT_LOCATIONS) * VIT_HIDDEN);
    att_captioner *c;
    att_words w = captioner_words();
    captioner_need(att_captioner_load(ctx, folder.path, NULL, &c));
    words[att_words_encode(&w, text, words, 4)] = att_words_end(&w);
    const att_caption_batch b = {.images = 1, .captions = 1, .of_image = of_image, .words = words, .offsets = offsets};
    att_tape *t;
    att_tensor g, y;
    captioner_need(att_tape_new(ctx, NULL, &t));
    captioner_need(att_wrap(&g, grid + VIT_HIDDEN, ATT_F32, ATT_DIMS(VIT_LOCATIONS, VIT_HIDDEN), NULL));
    captioner_need(att_var_value(t, att_softmax(t, att_captioner_logits(t, c, att_constant(t, &g), &b)), &y));
    for (int i = 0; i < 4; i++)
        expected += log((double)((const float *)y.data)[i * (CAPTIONER_WORDS + 2) + words[i]]);
    att_tape_free(t);
    att_model_free(c);
    att_words_free(&w);
    att_image_model_free(v);

    att_caption_model *m = open_model(&folder);
    att_trace *trace;
    captioner_need(att_caption_score(m, 1, &images[1], 1, &text, NULL, &p));
    assert_true(fabs(p - expected) < 1e-5);
    captioner_need(att_caption_trace(m, &images[1], words, 3, NULL, &trace));
    const att_trace_info a = trace_info(trace);
    assert_true(a.grid[0] == 3 && a.grid[1] == 3 && a.image->height == VIT_SIDE);
    att_trace_free(trace);
    att_caption_model_free(m);
    free_images(images);
    folder_remove(&folder);
}

/* Its own attention is that of the same encoder alone; a hidden patch is hidden on both sides. */
static void a_vision_transformer_s_attention_is_traced_too(void **state)
{
    (void)state;
    static const int32_t words[] = {0, 1, 2};
    static const int64_t hide[] = {1 + 5}; /* after [CLS] */
    const test_folder folder = vit_folder(VIT_ENCODER, CAPTIONER_TRANSFORMER);
    test_folder encoder;
    att_image images[IMAGES];
    att_image_model *v;
    att_trace *alone, *both, *hidden;
    make_images(images);
    snprintf(encoder.path, sizeof encoder.path, "%.40s/encoder", folder.path);
    captioner_need(att_image_model_open(ctx, encoder.path, NULL, &v));
    att_caption_model *m = open_model(&folder);
    captioner_need(att_image_trace(v, &images[1], NULL, &alone));
    captioner_need(att_caption_trace(m, &images[1], words, 3, NULL, &both));
    captioner_need(
        att_caption_trace(m, &images[1], words, 3, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1), &hidden));
    const att_trace_info a = trace_info(both);
    const int64_t layers = a.layers[ATT_TRACE_SIDE_ENCODER];
    assert_true(a.source == 1 + VIT_LOCATIONS && a.prefix == 1 && a.hidden[ATT_TRACE_SIDE_ENCODER] == VIT_HIDDEN);
    assert_true(layers == trace_info(alone).attentions && a.attentions == layers + 4);
    for (int64_t i = 0; i < layers; i++) {
        float *x = trace_weights(alone, ATT_TRACE_SIDE_ENCODER, i, 1),
              *y = trace_weights(both, ATT_TRACE_SIDE_ENCODER, i, 1),
              *z = trace_weights(hidden, ATT_TRACE_SIDE_ENCODER, i, 1);
        assert_memory_equal(x, y, (size_t)(a.source * a.source) * sizeof *x);
        for (int64_t q = 0; q < a.source; q++)
            assert_true(z[q * a.source + hide[0]] <= 0 && x[q * a.source + hide[0]] > 0);
        trace_check_rows(z, a.source, a.source);
        free(x), free(y), free(z);
    }
    assert_int_equal(trace_attention(both, ATT_TRACE_SIDE_CROSS, 0).keys, VIT_LOCATIONS);
    float *w = trace_weights(hidden, ATT_TRACE_SIDE_CROSS, -1, -1);
    for (int64_t q = 0; q < 3; q++)
        assert_true(w[q * VIT_LOCATIONS + hide[0] - 1] <= 0 && w[q * VIT_LOCATIONS + hide[0]] > 0);
    trace_check_rows(w, 3, VIT_LOCATIONS);
    free(w);
    att_trace_free(alone);
    att_trace_free(both);
    att_trace_free(hidden);
    att_caption_model_free(m);
    att_image_model_free(v);
    free_images(images);
    folder_remove(&folder);
}

/* A decoder without attention: what it writes is the model's, and the encoder has its own attention. */
static void an_encoder_alone_may_have_attention(void **state)
{
    (void)state;
    static const int32_t words[] = {0, 1};
    const test_folder folder = vit_folder(VIT_ENCODER, CAPTIONER_LSTM);
    att_image images[IMAGES];
    att_trace *t;
    make_images(images);
    att_caption_model *m = open_model(&folder);
    captioner_need(att_caption_trace(m, &images[0], words, 2, NULL, &t));
    const att_trace_info info = trace_info(t);
    assert_int_equal(info.attentions, info.layers[ATT_TRACE_SIDE_ENCODER]);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_CROSS, -1), -1);
    float *weights = trace_weights(t, ATT_TRACE_SIDE_ENCODER, -1, -1), *logits = trace_output(t, -1);
    trace_check_rows(weights, info.source, info.source);
    assert_true(info.output_rows == 2 && isfinite(logits[2 * info.outputs - 1]));
    free(weights), free(logits);
    att_trace_free(t);
    att_caption_model_free(m);
    free_images(images);
    folder_remove(&folder);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    static const int32_t words[] = {0, 1};
    static const int64_t hide[] = {2};
    static const char *const of[] = {CAPTIONER_TRANSFORMER, CAPTIONER_GRU};
    const att_trace_options o = {.size = sizeof o, .hidden = true, .hide = hide, .n_hide = 1};
    att_image images[IMAGES];
    make_images(images);
    for (int i = 0; i < 2; i++) {
        const test_folder folder = vit_folder(VIT_ENCODER, of[i]);
        att_status s = ATT_ERR_MEMORY;
        for (long at = 1; s; at += check_step(5)) {
            fail_alloc f = {0};
            att_ctx *poor;
            att_caption_model *m;
            att_trace *t;
            float weights[2 * VIT_LOCATIONS], logits[CAPTIONER_WORDS + 2];
            assert_int_equal(att_open(&poor, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))),
                             ATT_OK);
            assert_int_equal(att_caption_model_open(poor, folder.path, NULL, &m), ATT_OK);
            f.fail_at = f.calls + at;
            s = att_caption_trace(m, images, words, 2, &o, &t);
            s = s ? s : att_trace_weights(t, att_trace_find(t, ATT_TRACE_SIDE_CROSS, -1), -1, 0, 2, weights);
            s = s ? s : att_trace_output(t, -1, 1, 1, logits);
            assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
            att_trace_free(t);
            att_caption_model_free(m);
            att_close(poor);
            assert_int_equal(f.live, 0);
        }
        folder_remove(&folder);
    }
    free_images(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_have_weights_over_the_locations),
        cmocka_unit_test(the_output_of_a_trace_is_the_words),
        cmocka_unit_test(without_attention_there_are_no_locations),
        cmocka_unit_test(patches_of_a_vision_transformer_are_locations),
        cmocka_unit_test(a_vision_transformer_s_attention_is_traced_too),
        cmocka_unit_test(an_encoder_alone_may_have_attention),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
