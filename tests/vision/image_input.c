/* What a training sees of an image is what the model that it writes sees: the same bits, whatever the preprocessing of
 * the model that it began with. */
#include "vision/image_input.h"
#include "fixtures/images.h"
#include "fixtures/tiny_vit.h"

#include "attend_util.h"

enum { MAX_VALUES = 3 * 24 * 24 };

/* Makes a set of golden images, each a class of its own. */
static att_image_set *golden_set(const test_folder *folder)
{
    static const char *const names[] = {"rgb.png", "gray.png", "420.jpg", "progressive.jpg"};
    att_image_set *s;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256], name[64];
        size_t bytes;
        snprintf(path, sizeof path, GOLDEN_IMAGES "%s", names[i]);
        snprintf(name, sizeof name, "%zu/%s", i, names[i]);
        unsigned char *data = image_file(path, &bytes);
        FILE *f = folder_open(folder, name);
        assert_int_equal(fwrite(data, 1, bytes, f), bytes);
        assert_int_equal(fclose(f), 0);
        free(data);
    }
    if (att_image_set_open(ctx, folder->path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s))
        fail_msg("%s", att_error(ctx));
    return s;
}

static void expect_same(const att_image_input *in, const att_image_set *set, const test_folder *written)
{
    static float seen[MAX_VALUES], inferred[MAX_VALUES];
    att_image_processor *p;
    att_image_set_info info = {.size = sizeof info};
    if (att_image_processor_write(ctx, written->path, &in->config) || att_image_processor_open(ctx, written->path, &p))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_image_set_describe(set, &info), ATT_OK);
    const size_t values = (size_t)att_image_input_values(in);
    assert_true(values <= MAX_VALUES && info.images == 4);
    const att_image_source from = att_image_source_of_set(set);
    for (int64_t i = 0; i < info.images; i++) {
        att_image image, whole;
        assert_int_equal(att_image_input_read(in, &from, i, &image), ATT_OK);
        att_image_processor_normalize(in->processor, &image, seen);
        assert_int_equal(att_image_set_read(set, i, &whole), ATT_OK);
        assert_int_equal(att_image_processor_apply(p, &whole, inferred), ATT_OK);
        assert_memory_equal(seen, inferred, values * sizeof *seen);
        att_image_free(ctx, &image);
        att_image_free(ctx, &whole);
    }
    att_image_processor_free(p);
}

#define SIDES(side) "\"size\": {\"height\": " side ", \"width\": " side "}"

static void a_training_sees_what_its_model_will_see(void **state)
{
    (void)state;
    static const char *const files[] = {
        NULL, /* none: the default */
        "{\"image_processor_type\": \"ViTImageProcessor\", " SIDES("12") "}",
        "{\"image_processor_type\": \"DeiTImageProcessor\", " SIDES(
            "15") ", \"crop_size\": 12, \"image_mean\": "
                  "[0.485, 0.456, 0.406], \"image_std\": [0.229, 0.224, 0.225]}",
        "{\"image_processor_type\": \"BitImageProcessor\", \"size\": {\"shortest_edge\": 13}, \"crop_size\": 12}",
        "{\"image_processor_type\": \"DeiTImageProcessor\", \"do_resize\": false, \"crop_size\": 12}",
        "{\"image_processor_type\": \"ViTImageProcessor\", " SIDES(
            "12") ", \"rescale_factor\": 0.0078125, \"resample\": "
                  "0}",
        "{\"image_processor_type\": \"ViTImageProcessor\", " SIDES("12") ", \"do_rescale\": false, \"do_normalize\": "
                                                                         "false}"};
    const test_folder folder = tiny_vit_folder("vit", NULL), images = folder_new(), written = folder_new();
    att_vit *m = tiny_vit_open(&folder, true);
    att_image_set *set = golden_set(&images);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        att_image_input in;
        if (files[i])
            folder_write(&folder, "preprocessor_config.json", files[i]);
        if (att_image_input_make(ctx, m, files[i] ? folder.path : NULL, &in))
            fail_msg("%zu: %s", i, att_error(ctx));
        expect_same(&in, set, &written);
        att_image_input_free(&in);
    }
    att_image_set_free(set);
    att_vit_free(m);
    folder_remove(&folder);
    folder_remove(&images);
    folder_remove(&written);
}

/* Gray models, and timm's preprocessing, whose crop is rounded in a way that the written file cannot say. */
static void so_does_one_of_gray_images_or_of_timm(void **state)
{
    (void)state;
    static const char gray[] = "{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, \"num_channels\": 1, "
                               "\"num_labels\": 4, \"hidden_size\": 8, \"num_hidden_layers\": 1, "
                               "\"num_attention_heads\": 2, \"intermediate_size\": 8}";
    const test_folder folder = tiny_vit_folder("timm_vit", NULL), images = folder_new(), written = folder_new();
    att_image_set *set = golden_set(&images);
    att_image_input in;
    att_vit *m;
    assert_int_equal(att_vit_new(ctx, gray, 1, &m), ATT_OK);
    assert_int_equal(att_image_input_make(ctx, m, NULL, &in), ATT_OK);
    assert_int_equal(in.info.channels, 1);
    expect_same(&in, set, &written);
    att_image_input_free(&in);
    att_vit_free(m);
    m = tiny_vit_open(&folder, true);
    char *config = strdup(golden_words(TINY_VIT_GOLDEN, tiny_vit_key("timm_vit", "config")));
    memcpy(strstr(config, "\"crop_pct\": 0.9") + 12, "0.8", 3); /* of 15 pixels, which timm crops from the second */
    folder_write(&folder, "config.json", config);
    free(config);
    if (att_image_input_make(ctx, m, folder.path, &in))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(in.config.size.shortest, 15);
    expect_same(&in, set, &written);
    att_image_input_free(&in);
    att_vit_free(m);
    att_image_set_free(set);
    folder_remove(&folder);
    folder_remove(&images);
    folder_remove(&written);
}

static void preprocessing_that_does_not_fit_the_model_is_refused(void **state)
{
    (void)state;
    const test_folder folder = tiny_vit_folder("vit", NULL);
    att_vit *m = tiny_vit_open(&folder, true);
    att_image_input in;
    folder_write(&folder, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", " SIDES("24") "}");
    assert_int_equal(att_image_input_make(ctx, m, folder.path, &in), ATT_ERR_FORMAT);
    assert_non_null(
        strstr(att_error(ctx), "images of 24 x 24 x 3 (height, width, channels), but the model has 12 x 12"));
    att_image_input_free(&in);
    att_vit_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_sees_what_its_model_will_see),
        cmocka_unit_test(so_does_one_of_gray_images_or_of_timm),
        cmocka_unit_test(preprocessing_that_does_not_fit_the_model_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
