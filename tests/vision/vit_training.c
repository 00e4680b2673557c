/* Vision Transformers that learn: gradients against differences, steps, dropout, new models, what is written. */
// labels: trains
#include "vision/vit.h"
#include "attend_nn.h"
#include "fixtures/tiny_vit.h"

enum { CLASSES = 5, IMAGES = 2 };
static const int32_t targets[IMAGES] = {3, 1};
static const uint32_t image_ids[IMAGES] = {4, 9};

static att_tape *tape(bool record)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = record), &t), ATT_OK);
    return t;
}

static att_vit *new_vit(const char *settings, uint64_t seed)
{
    att_vit *m;
    if (att_vit_new(ctx, settings, seed, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static float *values(const att_vit *m, int64_t i)
{
    return att_param_value(att_nn_params_at(att_vit_params(m), i, NULL))->data;
}
static int64_t count(const att_vit *m, int64_t i)
{
    return att_count(att_param_value(att_nn_params_at(att_vit_params(m), i, NULL)));
}

/* ---- gradients */

/* Returns the sum of cross entropies, from logits in double. */
static double loss(att_tape *t, const att_vit *m, const att_tensor *images)
{
    att_tensor y;
    att_tape_reset(t);
    if (att_var_value(t, att_vit_logits(t, m, att_input(t, images), NULL), &y))
        fail_msg("%s", att_error(ctx));
    double all = 0;
    for (int i = 0; i < IMAGES; i++) {
        const float *logits = (const float *)y.data + i * CLASSES;
        double sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)logits[c]);
        all += log(sum) - (double)logits[targets[i]];
    }
    return all;
}

static double loss_at(att_tape *t, const att_vit *m, const att_tensor *images, int64_t i, const float *d, double step)
{
    const size_t bytes = (size_t)count(m, i) * sizeof(float);
    float *x = values(m, i), *before = malloc(bytes);
    memcpy(before, x, bytes);
    for (int64_t k = 0; k < count(m, i); k++)
        x[k] += (float)(step * (double)d[k]);
    att_param_invalidate(att_nn_params_at(att_vit_params(m), i, NULL));
    const double y = loss(t, m, images);
    memcpy(x, before, bytes);
    att_param_invalidate(att_nn_params_at(att_vit_params(m), i, NULL));
    free(before);
    return y;
}

/* Along d, of length 1, the loss rises as the gradient says. Ten logits of order 1 are off by some 8 roundings each, so
 * the loss by 8 sqrt(10) 6e-8 = 1.5e-6, and differences of fourth order by 1.4 / STEP times that, 1.4e-4; they cut off
 * 4 STEP^4 / 30 = 8e-9 times the fifth derivative, of some thousands where layers divide by small deviations: 3e-5. */
static void check_direction(att_tape *t, const att_vit *m, const att_tensor *images, int64_t i, const float *grad,
                            float *d)
{
    static const double STEP = 0x1p-6;
    const char *name;
    double squares = 0, expected = 0;
    for (int64_t k = 0; k < count(m, i); k++)
        squares += (double)d[k] * (double)d[k];
    for (int64_t k = 0; k < count(m, i); k++) {
        d[k] = squares > 0 ? (float)((double)d[k] / sqrt(squares)) : 0;
        expected += (double)grad[k] * (double)d[k];
    }
    const double near = loss_at(t, m, images, i, d, STEP) - loss_at(t, m, images, i, d, -STEP);
    const double far = loss_at(t, m, images, i, d, 2 * STEP) - loss_at(t, m, images, i, d, -2 * STEP);
    att_nn_params_at(att_vit_params(m), i, &name);
    check_near((8 * near - far) / (12 * STEP), (float)expected, 2e-4, "%s", name);
}

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    static const char *const models[] = {"vit", "deit_distilled", "dinov2_larger", "registers", "own_patches"};
    static tiny_images images;
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        const test_folder folder = tiny_vit_folder(models[k], NULL);
        att_vit *m = tiny_vit_open(&folder, true);
        att_tape *t = tape(true), *plain = tape(false);
        tiny_images_of(&images, models[k]);
        att_var *logits = att_vit_logits(t, m, att_input(t, &images.tensor), NULL);
        att_var *y = att_cross_entropy(t, logits, targets, ATT_OPTIONS(att_cross_entropy_options, .sum = true));
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        for (int64_t i = 0; i < att_nn_params_count(att_vit_params(m)); i++) {
            const float *grad = att_param_grad(att_nn_params_at(att_vit_params(m), i, NULL))->data;
            assert_non_null(grad);
            float *d = check_numbers(count(m, i), (uint64_t)i + 200);
            check_direction(plain, m, &images.tensor, i, grad, d); /* any */
            memcpy(d, grad, (size_t)count(m, i) * sizeof *d);
            check_direction(plain, m, &images.tensor, i, grad, d); /* the steepest */
            free(d);
        }
        att_tape_free(plain);
        att_tape_free(t);
        att_vit_free(m);
        folder_remove(&folder);
    }
}

/* ---- learning */

#define SIZES                                                                                                          \
    "\"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 24, "           \
    "\"image_size\": 12, \"num_labels\": 5"
static const char *const news[] = {
    "{\"model_type\": \"vit\", \"patch_size\": 4, " SIZES "}",
    "{\"model_type\": \"attend-vit\", \"stem\": [8, 16], \"pooling\": \"mean\", " SIZES "}",
    "{\"model_type\": \"attend-vit\", \"stem\": [16], \"pooling\": \"cls\", " SIZES "}",
    "{\"model_type\": \"attend-vit\", \"patch_size\": 3, \"pooling\": \"mean\", " SIZES "}",
};
enum { NEWS = sizeof news / sizeof news[0] };

static double step(att_tape *t, const att_vit *m, att_optimizer *o, const att_tensor *images, float dropout,
                   uint64_t seed)
{
    const att_vit_options options = {
        .size = sizeof options, .dropout = dropout, .seed = seed, .sequence_ids = image_ids};
    att_tensor value;
    att_tape_reset(t);
    att_var *y = att_cross_entropy(t, att_vit_logits(t, m, att_input(t, images), &options), targets, NULL);
    if (att_var_value(t, y, &value))
        fail_msg("%s", att_error(ctx));
    const double is = (double)*(const float *)value.data;
    if (o) {
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1e-2), NULL), ATT_OK);
    }
    return is;
}

static void steps_lower_the_loss(void **state)
{
    (void)state;
    static tiny_images images;
    tiny_images_make(&images, IMAGES, 12, 12, 3);
    for (int k = 0; k < NEWS; k++) {
        att_vit *m = new_vit(news[k], 5);
        att_tape *t = tape(true);
        att_optimizer *o;
        assert_int_equal(att_optimizer_new(ctx, NULL, &o), ATT_OK);
        for (int64_t i = 0; i < att_nn_params_count(att_vit_params(m)); i++)
            assert_int_equal(att_optimizer_add(o, att_nn_params_at(att_vit_params(m), i, NULL), NULL), ATT_OK);
        const double first = step(t, m, o, &images.tensor, 0, 0);
        for (int i = 0; i < 30; i++)
            step(t, m, o, &images.tensor, 0.1f, (uint64_t)i);
        const double last = step(t, m, NULL, &images.tensor, 0, 0);
        if (!(last < 0.1 * first))
            fail_msg("%s: the loss was %g and is %g", news[k], first, last);
        att_optimizer_free(o);
        att_tape_free(t);
        att_vit_free(m);
    }
}

static void dropout_follows_its_seed(void **state)
{
    (void)state;
    static tiny_images images;
    tiny_images_make(&images, IMAGES, 12, 12, 3);
    att_vit *m = new_vit(news[0], 5);
    att_tape *t = tape(false);
    const double none = step(t, m, NULL, &images.tensor, 0, 0), one = step(t, m, NULL, &images.tensor, 0.5f, 1);
    assert_true(one == step(t, m, NULL, &images.tensor, 0.5f, 1));
    assert_true(one != step(t, m, NULL, &images.tensor, 0.5f, 2));
    assert_true(one != none);
    att_vit_free(m);
    const test_folder folder = tiny_vit_folder("vit", NULL);
    m = tiny_vit_open(&folder, false);
    const att_vit_options options = {.size = sizeof options, .dropout = 0.5f, .sequence_ids = image_ids};
    att_tape_reset(t);
    att_tensor y;
    assert_int_equal(att_var_value(t, att_vit_logits(t, m, att_input(t, &images.tensor), &options), &y),
                     ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "the model is not trainable"));
    assert_true(att_nn_params_count(att_vit_params(m)) > 0 && !att_nn_params_trainable(att_vit_params(m)));
    att_tape_free(t);
    att_vit_free(m);
    folder_remove(&folder);
}

/* ---- new, written, opened */

static void a_new_model_follows_its_seed(void **state)
{
    (void)state;
    att_vit *a = new_vit(news[1], 5), *b = new_vit(news[1], 5), *c = new_vit(news[1], 6);
    const char *name;
    assert_int_equal(att_nn_params_count(att_vit_params(a)), 2 + 1 + 2 * 16 + 2 + 2);
    for (int64_t i = 0; i < att_nn_params_count(att_vit_params(a)); i++) {
        const size_t bytes = (size_t)count(a, i) * sizeof(float);
        att_nn_params_at(att_vit_params(a), i, &name);
        const bool vector = att_param_value(att_nn_params_at(att_vit_params(a), i, NULL))->rank == 1;
        assert_memory_equal(values(a, i), values(b, i), bytes);
        const bool position = !strcmp(name, "embeddings.position"); /* sines and cosines */
        assert_int_equal(memcmp(values(a, i), values(c, i), bytes) == 0, vector || position);
        for (int64_t k = 0; k < count(a, i); k++)
            if (vector)
                assert_true(values(a, i)[k] == (strstr(name, "norm.weight") ? 1 : 0));
            else
                assert_true(isfinite(values(a, i)[k]));
    }
    att_vit_free(a);
    att_vit_free(b);
    att_vit_free(c);
}

static void what_is_written_has_the_same_logits(void **state)
{
    (void)state;
    static const char *const labels[CLASSES] = {"cat", "dog", "\"x\"", "\xc3\xa4", "5"};
    static float want[TINY_VIT_NUMBERS], is[TINY_VIT_NUMBERS];
    static tiny_images images;
    tiny_images_make(&images, IMAGES, 12, 12, 3);
    for (int k = 0; k < NEWS; k++) {
        const test_folder folder = folder_new();
        att_vit *m = new_vit(news[k], 5);
        const int64_t n = tiny_vit_apply(m, att_vit_logits, &images.tensor, want);
        assert_int_equal(n, IMAGES * CLASSES);
        if (att_vit_write(m, folder.path, k % 2 ? labels : NULL, 0))
            fail_msg("%s", att_error(ctx));
        att_vit_free(m);
        m = tiny_vit_open(&folder, false);
        tiny_vit_apply(m, att_vit_logits, &images.tensor, is);
        assert_memory_equal(is, want, (size_t)n * sizeof *is);
        assert_int_equal(att_vit_write(m, folder.path, NULL, 0), ATT_ERR_ARGUMENT);
        att_vit_free(m);
        m = tiny_vit_open(&folder, true);
        assert_int_equal(att_vit_write(m, folder.path, labels, ATT_F16), ATT_OK);
        att_vit_free(m);
        m = tiny_vit_open(&folder, false);
        tiny_vit_apply(m, att_vit_logits, &images.tensor, is);
        for (int64_t i = 0; i < n; i++)
            assert_true(fabs((double)(is[i] - want[i])) < 0.02);
        att_vit_free(m);
        folder_remove(&folder);
    }
}

/* Of timm, what has the form of a ViT becomes one, or with means one of our own type. */
static void models_of_other_types_are_written_too(void **state)
{
    (void)state;
    static const char *const models[][2] = {{"timm_vit", "vit"},
                                            {"vit_oblong", "vit"},
                                            {"vit_model", "vit"},
                                            {"dinov2_larger", "dinov2"},
                                            {"registers", "dinov2_with_registers"},
                                            {"dinov2_model", "dinov2"},
                                            {"own_patches", "attend-vit"}};
    static float want[TINY_VIT_NUMBERS], is[TINY_VIT_NUMBERS];
    static tiny_images images;
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        const test_folder from = tiny_vit_folder(models[k][0], NULL), to = folder_new();
        att_vit_info info = {.size = sizeof info};
        att_vit *m = tiny_vit_open(&from, true);
        tiny_images_of(&images, models[k][0]);
        assert_int_equal(att_vit_describe(m, &info), ATT_OK);
        const tiny_vit_function f = info.classes ? att_vit_logits : att_vit_features;
        const int64_t n = tiny_vit_apply(m, f, &images.tensor, want);
        if (att_vit_write(m, to.path, NULL, 0))
            fail_msg("%s", att_error(ctx));
        att_vit_free(m);
        m = tiny_vit_open(&to, false);
        assert_int_equal(att_vit_describe(m, &info), ATT_OK);
        assert_string_equal(info.type, models[k][1]);
        tiny_vit_apply(m, f, &images.tensor, is);
        assert_memory_equal(is, want, (size_t)n * sizeof *is);
        att_vit_free(m);
        folder_remove(&from);
        folder_remove(&to);
    }
}

static void what_no_type_has_is_not_written(void **state)
{
    (void)state;
    static const char *const models[] = {"deit",      "deit_distilled", "dinov2_giant",
                                         "timm_mean", "timm_no_norm",   "timm_deit3"};
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        const test_folder folder = tiny_vit_folder(models[k], NULL);
        att_vit *m = tiny_vit_open(&folder, true);
        assert_int_equal(att_vit_write(m, folder.path, NULL, 0), ATT_ERR_UNSUPPORTED);
        assert_non_null(strstr(att_error(ctx), "cannot be written"));
        att_vit_free(m);
        folder_remove(&folder);
    }
}

static void a_classifier_is_replaced_for_other_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"vit", "timm_vit", "vit_model", "registers", "dinov2_model"},
                             *const numbers[] = {"0", "1", "2", "3", "4", "5", "6"};
    for (int k = 0; k < 5; k++) {
        const test_folder folder = tiny_vit_folder(names[k], NULL);
        att_vit *m, *old = tiny_vit_open(&folder, true);
        att_vit_info info = {.size = sizeof info};
        for (int classes = 5; classes <= 7; classes += 2) {
            if (att_vit_open_for_classes(ctx, folder.path, numbers, classes, NULL, 3, &m))
                fail_msg("%s", att_error(ctx));
            assert_int_equal(att_vit_describe(m, &info), ATT_OK);
            assert_int_equal(info.classes, classes);
            for (int64_t i = 0; i < att_nn_params_count(att_vit_params(m)); i++) {
                const char *name, *same;
                att_nn_params_at(att_vit_params(m), i, &name);
                const bool head = !strncmp(name, "head.", 5);
                if (!head || (classes == 5 && k != 2 && k != 4)) {
                    att_nn_params_at(att_vit_params(old), i, &same);
                    assert_string_equal(name, same);
                    assert_memory_equal(values(m, i), values(old, i), (size_t)count(m, i) * sizeof(float));
                } else
                    assert_int_equal(att_param_value(att_nn_params_at(att_vit_params(m), i, NULL))->dim[0], classes);
            }
            att_vit_free(m);
        }
        att_vit_free(old);
        folder_remove(&folder);
    }
}

/* Row i of the head is that of the class with its name; where other names are asked for, it is new. */
static void a_classifier_follows_the_order_of_its_classes(void **state)
{
    (void)state;
    static const char *const orders[][CLASSES] = {
        {"3", "0", "LABEL_4", "1", "2"}, {"3", "0", "4", "1", "owl"}, {"3", "0", "4", "1", "1"}};
    static const int row[CLASSES] = {3, 0, 4, 1, 2};
    const test_folder folder = tiny_vit_folder("vit", NULL);
    att_vit *m, *old = tiny_vit_open(&folder, true);
    for (int k = 0; k < 3; k++) {
        if (att_vit_open_for_classes(ctx, folder.path, orders[k], CLASSES, NULL, 3, &m))
            fail_msg("%s", att_error(ctx));
        for (int64_t i = 0; i < att_nn_params_count(att_vit_params(m)); i++) {
            const char *name;
            att_nn_params_at(att_vit_params(m), i, &name);
            if (strncmp(name, "head.", 5) != 0)
                continue;
            const int64_t width = count(m, i) / CLASSES;
            for (int c = 0; c < CLASSES; c++)
                assert_int_equal(memcmp(values(m, i) + c * width, values(old, i) + row[c] * width,
                                        (size_t)width * sizeof(float)) == 0,
                                 k == 0);
        }
        att_vit_free(m);
    }
    att_vit_free(old);
    folder_remove(&folder);
}

/* Before a training, even if it needs no other classifier */
static void what_cannot_be_written_is_not_opened_for_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"0", "1", "2", "3", "4"};
    const test_folder folder = tiny_vit_folder("deit_distilled", NULL);
    att_vit *m;
    assert_int_equal(att_vit_open_for_classes(ctx, folder.path, names, CLASSES, NULL, 1, &m), ATT_ERR_UNSUPPORTED);
    assert_null(m);
    assert_non_null(strstr(att_error(ctx), "cannot be written"));
    folder_remove(&folder);
}

/* DINOv2 has a ratio instead of the size itself. */
static void every_intermediate_size_is_read_as_it_was_written(void **state)
{
    (void)state;
    static const int64_t hidden[] = {49, 384, 1408};
    const test_folder folder = tiny_vit_folder("dinov2_larger", NULL);
    att_vit *m = tiny_vit_open(&folder, true);
    for (size_t k = 0; k < sizeof hidden / sizeof hidden[0]; k++)
        for (int64_t i = hidden[k] / 50 + 1; i < 6 * hidden[k]; i++) {
            att_vit_config c = m->config, read = {0};
            att_settings s;
            c.info.hidden = hidden[k];
            c.info.heads = 1;
            c.info.intermediate = i;
            att_settings_from_json(&s, ctx, "written", att_vit_config_json(&c, NULL));
            att_vit_config_read(&s, &read);
            if (s.status)
                fail_msg("%s", att_error(ctx));
            att_settings_close(&s);
            assert_int_equal(read.info.intermediate, i);
        }
    att_vit_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(steps_lower_the_loss),
        cmocka_unit_test(dropout_follows_its_seed),
        cmocka_unit_test(a_new_model_follows_its_seed),
        cmocka_unit_test(what_is_written_has_the_same_logits),
        cmocka_unit_test(models_of_other_types_are_written_too),
        cmocka_unit_test(what_no_type_has_is_not_written),
        cmocka_unit_test(a_classifier_is_replaced_for_other_classes),
        cmocka_unit_test(a_classifier_follows_the_order_of_its_classes),
        cmocka_unit_test(what_cannot_be_written_is_not_opened_for_classes),
        cmocka_unit_test(every_intermediate_size_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
