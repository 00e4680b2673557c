/* The captioner: PyTorch's numbers and losses with each decoder; the same bits at once and word by word, alone and in
 * company; settings that are wrong. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "fixtures/golden_text.h"
#include "caption/captioner.h"

#define GOLDEN "tests/golden/captioner.txt"

/* As in make_captioner.py */
enum {
    IMAGES = 2,
    SIDE = 8,
    CHANNELS = 3,
    FEATURES = 6,
    LOCATIONS = 4,
    VOCABULARY = 9,
    END = 8,
    PRESENCE = 3,
    STEPS = 12
};
enum { CAPTIONS = 3, WORDS = 11 };
static const int64_t offsets[] = {0, 4, 6, WORDS}, of_image[] = {0, 2, 3};
static const float lengths[] = {4, 2, 5};
static int32_t words[WORDS];
static float pixels[IMAGES * SIDE * SIDE * CHANNELS], present[IMAGES * PRESENCE];

#define ENCODER                                                                                                        \
    "{\"model_type\": \"attend-captioner\", \"encoder\": \"cnn\", \"image_size\": 8, \"num_channels\": 3, "            \
    "\"channels\": [4, 6], \"presence\": 3, \"hidden_size\": 6, \"vocab_size\": 9, \"max_positions\": 12, "            \
    "\"unk_token_id\": 7, \"eos_token_id\": 8, "
static const struct {
    const char *name, *settings;
} kinds[] = {{"gru", ENCODER "\"decoder\": \"gru\", \"attention\": \"additive\", \"gate\": true, "
                             "\"embedding_size\": 4, \"num_layers\": 1}"},
             {"lstm", ENCODER "\"decoder\": \"lstm\", \"attention\": \"none\", \"embedding_size\": 4, "
                              "\"num_layers\": 2}"},
             {"transformer", ENCODER "\"decoder\": \"transformer\", \"num_layers\": 1, \"num_attention_heads\": 2, "
                                     "\"intermediate_size\": 10}"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int set_up(void **state)
{
    int64_t i = 0;
    for (int64_t k = 0, n = 0; k < CAPTIONS; k++) {
        for (; i < offsets[k + 1] - 1; i++, n++)
            words[i] = (int32_t)((5 * n + 2) % END);
        words[i++] = END;
    }
    check_fill(pixels, sizeof pixels / sizeof pixels[0], 50, 0, 1);
    check_fill(present, IMAGES * PRESENCE, 7, 0, 1);
    for (int k = 0; k < IMAGES * PRESENCE; k++)
        present[k] = present[k] > 0;
    return open_context(state);
}

static const att_caption_batch batch = {.images = IMAGES,
                                        .captions = CAPTIONS,
                                        .of_image = of_image,
                                        .words = words,
                                        .offsets = offsets,
                                        .label_smoothing = 0.1f,
                                        .lengths = lengths};

static att_captioner *make(att_ctx *c, const char *text)
{
    att_captioner *m;
    att_settings s;
    att_settings_parse(&s, c, "the model's settings", text, strlen(text));
    if (att_captioner_make(c, &s, 1, &m))
        fail_msg("%s", att_error(c));
    att_settings_close(&s);
    return m;
}

static att_param *param(const att_captioner *m, int64_t i, const char **name)
{
    return att_nn_params_at(att_model_params(&m->model), i, name);
}

/* With the numbers of the script. */
static att_captioner *model(att_ctx *c, int kind)
{
    att_captioner *m = make(c, kinds[kind].settings);
    const char *name;
    att_param *p;
    for (int64_t i = 0; (p = param(m, i, &name)); i++) {
        const att_tensor *value = att_param_value(p);
        if (strstr(name, "running_"))
            continue;
        check_fill(value->data, att_count(value), 100 + (uint64_t)i, 0, 0.5f);
        att_param_invalidate(p);
    }
    return m;
}

static att_tape *tape(att_ctx *c, bool record)
{
    att_tape *t;
    assert_int_equal(att_tape_new(c, ATT_OPTIONS(att_tape_config, .record = record), &t), ATT_OK);
    return t;
}

static const float *floats(att_ctx *c, att_tape *t, att_var *v, int64_t count)
{
    att_tensor x;
    if (att_var_value(t, v, &x))
        fail_msg("%s", att_error(c));
    assert_int_equal(att_count(&x), count);
    return x.data;
}

/* Computes the grids of n images from image `first` on. */
static att_var *encode(att_tape *t, const att_captioner *m, int64_t first, int64_t n, bool training)
{
    att_tensor v;
    att_wrap(&v, pixels + first * SIDE * SIDE * CHANNELS, ATT_F32, ATT_DIMS(n, SIDE, SIDE, CHANNELS), NULL);
    return att_captioner_encode(t, m, att_constant(t, &v), training);
}

/* ---- PyTorch */

static void compare(const char *what, const char *kind, const float *y, int64_t n, double error)
{
    char name[64];
    double expected[WORDS * VOCABULARY];
    snprintf(name, sizeof name, "%s_%s", what, kind);
    assert_int_equal(golden_line(GOLDEN, name, expected, WORDS * VOCABULARY), n);
    for (int64_t j = 0; j < n; j++)
        check_near(expected[j], y[j], error, "%s [%lld]", name, (long long)j);
}

/* Four convolutions of up to 54 products, batch norms that divide by deviations near 0.5, and then as in seq2seq.c:
 * some 200 roundings of numbers near 1. */
static void numbers_are_those_of_pytorch(void **state)
{
    (void)state;
    for (att_ctx *c = NULL; check_next_context(&c, 2);)
        for (int i = 0; i < KINDS; i++) {
            att_captioner *m = model(c, i);
            att_tape *t = tape(c, false);
            att_var *weights = NULL, *grids = encode(t, m, 0, IMAGES, true);
            compare("presence", kinds[i].name,
                    floats(c, t, att_captioner_predict_words(t, m, grids, IMAGES), IMAGES * PRESENCE),
                    IMAGES * PRESENCE, 200 * FLT_EPSILON);
            att_var *x = att_captioner_states(t, m, grids, &batch, i == 0 ? &weights : NULL);
            att_var *y = att_captioner_output(t, m, x);
            compare("logits", kinds[i].name, floats(c, t, y, WORDS * VOCABULARY), WORDS * VOCABULARY,
                    200 * FLT_EPSILON);
            if (i == 0)
                compare("weights", kinds[i].name, floats(c, t, weights, WORDS * LOCATIONS), WORDS * LOCATIONS,
                        200 * FLT_EPSILON);
            att_tape_free(t);
            att_model_free(m);
        }
}

static void twelve_steps_have_the_losses_of_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        att_captioner *m = model(ctx, i);
        att_tape *t = tape(ctx, true);
        att_optimizer *o;
        att_caption_batch b = batch;
        float losses[STEPS];
        const char *name;
        att_param *p;
        b.doubly_stochastic = i == 0 ? 0.5f : 0;
        assert_int_equal(
            att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.01),
                              &o),
            ATT_OK);
        for (int64_t k = 0; (p = param(m, k, &name)); k++)
            if (!strstr(name, "running_")) {
                att_param_set_weight_decay(p, true); /* of all, as in the golden file */
                assert_int_equal(att_optimizer_add(o, p, NULL), ATT_OK);
            }
        for (int step = 0; step < STEPS; step++) {
            att_var *grids = encode(t, m, 0, IMAGES, true);
            att_var *loss =
                att_add(t, att_captioner_loss(t, m, grids, &b),
                        att_binary_cross_entropy(t, att_captioner_predict_words(t, m, grids, IMAGES), present, NULL));
            losses[step] = *floats(ctx, t, loss, 1);
            assert_int_equal(att_tape_backward(t, loss, NULL), ATT_OK);
            att_tape_reset(t);
            assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.01), NULL), ATT_OK);
        }
        /* Weights drift apart by some errors of rounding, as in seq2seq.c. */
        compare("losses", kinds[i].name, losses, STEPS, 2e-4);
        att_optimizer_free(o);
        att_tape_free(t);
        att_model_free(m);
    }
}

/* ---- the same bits */

static att_var *next_logits(const att_generator *g, att_tape *t, const int32_t *ids)
{
    return att_nn_linear_apply(t, g->output, g->step(g->user, t, ids), ATT_ACTIVATION_IDENTITY, NULL);
}

/* Words of the first captions of both images one by one: rows 0 and 1 have captions 0 and 2. */
static void check_steps(const att_captioner *m, const float *grids, const float *at_once)
{
    static const int64_t caption[IMAGES] = {0, 2};
    att_generator s;
    att_tape *t = tape(ctx, false);
    int32_t ids[IMAGES] = {END, END};
    if (att_captioner_start(m, grids, IMAGES, &s))
        fail_msg("%s", att_error(ctx));
    for (int64_t i = 0; i < offsets[1]; i++) {
        const float *y = floats(ctx, t, next_logits(&s, t, ids), IMAGES * VOCABULARY);
        for (int64_t b = 0; b < IMAGES; b++) {
            const int64_t word = offsets[caption[b]] + i;
            assert_memory_equal(y + b * VOCABULARY, at_once + word * VOCABULARY, VOCABULARY * sizeof *y);
            ids[b] = words[word];
        }
        att_tape_reset(t);
    }
    s.free(s.user);
    att_tape_free(t);
}

/* Caption 2 of image 1 alone */
static void check_alone(const att_captioner *m, const float *together)
{
    const int64_t one[] = {0, 1}, n = offsets[3] - offsets[2], ends[] = {0, n};
    const att_caption_batch b = {
        .images = 1, .captions = 1, .of_image = one, .words = words + offsets[2], .offsets = ends};
    att_tape *t = tape(ctx, true);
    const float *y = floats(ctx, t, att_captioner_logits(t, m, encode(t, m, 1, 1, false), &b), n * VOCABULARY);
    assert_memory_equal(y, together + offsets[2] * VOCABULARY, (size_t)(n * VOCABULARY) * sizeof *y);
    att_tape_free(t);
}

static void a_caption_alone_and_word_by_word_has_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        att_captioner *m = model(ctx, i);
        att_tape *t = tape(ctx, false);
        float copy[IMAGES * LOCATIONS * FEATURES];
        att_var *grids = encode(t, m, 0, IMAGES, false);
        memcpy(copy, floats(ctx, t, grids, IMAGES * LOCATIONS * FEATURES), sizeof copy);
        const float *y = floats(ctx, t, att_captioner_logits(t, m, grids, &batch), WORDS * VOCABULARY);
        check_steps(m, copy, y);
        check_alone(m, y);
        att_tape_free(t);
        att_model_free(m);
    }
}

static void a_folder_has_the_same_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const test_folder f = folder_new();
        att_captioner *m = model(ctx, i), *again = NULL;
        att_tape *t = tape(ctx, false), *u = tape(ctx, false);
        if (att_captioner_save(m, f.path, ATT_F32) || att_captioner_load(ctx, f.path, NULL, &again))
            fail_msg("%s", att_error(ctx));
        const float *x =
            floats(ctx, t, att_captioner_logits(t, m, encode(t, m, 0, IMAGES, false), &batch), WORDS * VOCABULARY);
        const float *y = floats(ctx, u, att_captioner_logits(u, again, encode(u, again, 0, IMAGES, false), &batch),
                                WORDS * VOCABULARY);
        assert_memory_equal(x, y, WORDS * VOCABULARY * sizeof *y);
        att_tape_free(t);
        att_tape_free(u);
        att_model_free(m);
        att_model_free(again);
        folder_remove(&f);
    }
}

/* ---- what is wrong */

static void wrong_settings_are_named(void **state)
{
    (void)state;
    static const char begin[] = "{\"model_type\": \"attend-captioner\", ",
                      words_of[] =
                          "\"vocab_size\": 9, \"max_positions\": 12, \"unk_token_id\": 7, \"eos_token_id\": 8, ";
    static const struct {
        const char *rest, *says;
    } wrong[] = {{"\"encoder\": \"resnet\", ", "\"encoder\" is \"resnet\", which is not supported; cnn or vit is"},
                 {"\"encoder\": \"cnn\", \"num_channels\": 3, \"image_size\": 90, \"channels\": [2, 2], ",
                  "\"image_size\" is 90, but 2 stages need a multiple of 4"},
                 {"\"encoder\": \"cnn\", \"num_channels\": 3, \"channels\": [2, 0.5], ",
                  "\"channels\" is [2.0,0.5], not a list of numbers of channels"},
                 {"\"encoder\": \"cnn\", \"num_channels\": 3, \"channels\": [], ",
                  "\"channels\" is [], not a list of 1 to 8 numbers"},
                 {"\"encoder\": \"vit\", \"grid\": [2, 2], \"encoder_hidden_size\": 4, \"decoder\": \"rnn\", ",
                  "\"decoder\" is \"rnn\", which is not supported; one of gru, lstm and transformer is"},
                 {"\"encoder\": \"vit\", \"grid\": [2, 2], \"encoder_hidden_size\": 4, \"decoder\": \"transformer\", "
                  "\"num_layers\": 1, \"num_attention_heads\": 4, \"intermediate_size\": 4, ",
                  "\"hidden_size\" is 6, which 4 heads cannot share"},
                 {"\"encoder\": \"vit\", \"grid\": [2, 2], \"encoder_hidden_size\": 4, \"decoder\": \"gru\", "
                  "\"num_layers\": 1, \"attention\": \"none\", \"gate\": true, \"embedding_size\": 4, ",
                  "\"gate\" is true, but \"attention\" is \"none\""},
                 {"\"encoder\": \"vit\", \"grid\": [2, 2], \"encoder_hidden_size\": 4, \"decoder\": \"gru\", "
                  "\"num_layers\": 1, \"attention\": \"none\", \"embedding_size\": 4, \"presence\": 10, ",
                  "\"presence\" is 10, but \"vocab_size\" is 9"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[1024];
        att_settings s;
        att_captioner *m;
        snprintf(text, sizeof text, "%s%s%s\"hidden_size\": 6}", begin, wrong[i].rest, words_of);
        att_settings_parse(&s, ctx, "settings", text, strlen(text));
        assert_int_not_equal(att_captioner_make(ctx, &s, 1, &m), ATT_OK);
        assert_null(m);
        check_message(ctx, wrong[i].says);
        att_settings_close(&s);
    }
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    att_captioner *m = model(ctx, 1);
    att_tape *t = tape(ctx, true);
    att_tensor v;
    att_var *weights;
    assert_null(att_captioner_states(t, m, encode(t, m, 0, IMAGES, false), &batch, &weights));
    assert_int_equal(att_var_value(t, NULL, &v), ATT_ERR_ARGUMENT);
    check_message(ctx, "captioner: its decoder has no additive attention to locations");
    att_tape_reset(t);
    att_wrap(&v, pixels, ATT_F32, ATT_DIMS(1, 4, 4, CHANNELS), NULL);
    assert_null(att_captioner_encode(t, m, att_constant(t, &v), false));
    assert_int_equal(att_var_value(t, NULL, &v), ATT_ERR_SHAPE);
    check_message(ctx, "captioner: images are [1, 4, 4, 3], not [n, 8, 8, 3]");
    att_tape_free(t);
    att_model_free(m);
}

/* A model, its loss and a backward, and a step of a caption: all or nothing. */
static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const uint32_t ids[CAPTIONS] = {3, 1, 2};
    att_caption_batch b = batch;
    b.dropout = 0.1f;
    b.sequence_ids = ids;
    static const float grids[IMAGES * LOCATIONS * FEATURES];
    for (int i = 0; i < KINDS; i += 2) {
        att_status e = ATT_ERR_MEMORY;
        for (long at = 1; e; at++) {
            fail_alloc f = {0};
            att_ctx *c = fail_open(&f);
            att_tape *t = tape(c, true), *u = tape(c, false);
            att_tensor x;
            att_captioner *m = NULL;
            att_generator g = {0};
            att_settings s;
            att_settings_parse(&s, c, "settings", kinds[i].settings, strlen(kinds[i].settings));
            f.fail_at = f.calls + at;
            e = att_captioner_make(c, &s, 1, &m);
            b.doubly_stochastic = i == 0;
            att_var *loss = e ? NULL : att_captioner_loss(t, m, encode(t, m, 0, IMAGES, true), &b);
            e = e ? e : att_var_value(t, loss, &x);
            e = e ? e : att_tape_backward(t, loss, NULL);
            e = e ? e : att_captioner_start(m, grids, IMAGES, &g);
            e = e ? e : g.select(g.user, 2, (const int64_t[]){1, 1});
            if (!e)
                e = att_var_value(u, next_logits(&g, u, (const int32_t[]){1, 2}), &x);
            if (e && e != ATT_ERR_MEMORY)
                fail_msg("%s: %s", kinds[i].name, att_error(c));
            if (g.free)
                g.free(g.user);
            att_tape_free(t);
            att_tape_free(u);
            att_model_free(m);
            att_settings_close(&s);
            att_close(c);
            assert_int_equal(f.live, 0);
            assert_true(at < 2000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_pytorch),
        cmocka_unit_test(twelve_steps_have_the_losses_of_pytorch),
        cmocka_unit_test(a_caption_alone_and_word_by_word_has_the_same_bits),
        cmocka_unit_test(a_folder_has_the_same_numbers),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(wrong_calls_are_named),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, close_context);
}
