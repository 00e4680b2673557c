/* Preprocessing gives the numbers of `transformers` and timm, bit by bit; what is not supported is refused by name. */
#include "image/processor.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "fixtures/images.h"
#include "fixtures/write_files.h"

#include "fixtures/context.h"

#include <jansson.h>
#include <zlib.h>

/* ---- goldens */

static att_image open_image(const char *name)
{
    char path[256];
    att_image image;
    snprintf(path, sizeof path, GOLDEN_IMAGES "%s", name);
    if (att_image_open(ctx, path, NULL, &image))
        fail_msg("%s", att_error(ctx));
    return image;
}

static int64_t dimension(const json_t *line, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(line, "shape"), i));
}

/* `text` is for messages. */
static void check_case(const json_t *line, const char *text)
{
    const test_folder folder = folder_new();
    char *settings = json_dumps(json_object_get(line, "settings"), 0);
    folder_write(&folder, json_string_value(json_object_get(line, "file")), settings);
    const char *model_type = json_string_value(json_object_get(line, "model_type"));
    if (model_type) {
        char config[64];
        snprintf(config, sizeof config, "{\"model_type\": \"%s\"}", model_type);
        folder_write(&folder, "config.json", config);
    }
    att_image_processor *p;
    if (att_image_processor_open(ctx, folder.path, &p))
        fail_msg("%s: %s", text, att_error(ctx));
    att_image_processor_info info = {.size = sizeof info};
    assert_int_equal(att_image_processor_describe(p, &info), ATT_OK);
    assert_int_equal(info.height, dimension(line, 0));
    assert_int_equal(info.width, dimension(line, 1));
    assert_int_equal(info.channels, dimension(line, 2));
    const size_t n = (size_t)(info.height * info.width * info.channels);
    float *out = malloc(n * sizeof *out);
    assert_non_null(out);
    att_image image = open_image(json_string_value(json_object_get(line, "image")));
    if (att_image_processor_apply(p, &image, out))
        fail_msg("%s: %s", text, att_error(ctx));
    for (size_t i = 0; i < 6; i++) {
        const double expected = json_number_value(json_array_get(json_object_get(line, "first"), i));
        if (out[i] != (float)expected)
            fail_msg("%s: value %zu is %.9g, not %.9g", text, i, (double)out[i], expected);
    }
    if ((json_int_t)crc32(0, (const Bytef *)out, (uInt)(n * sizeof *out)) !=
        json_integer_value(json_object_get(line, "crc32")))
        fail_msg("%s: the checksum of all values differs", text);
    free(out);
    free(settings);
    att_image_free(ctx, &image);
    att_image_processor_free(p);
    folder_remove(&folder);
}

static void numbers_are_those_of_transformers_and_timm(void **state)
{
    (void)state;
    char text[4096];
    int n = 0;
    FILE *file = fopen("tests/golden/processors.jsonl", "r");
    assert_non_null(file);
    for (; fgets(text, sizeof text, file); n++) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        check_case(line, text);
        json_decref(line);
    }
    fclose(file);
    assert_true(n >= 32);
}

/* ---- settings */

#define VIT "{\"image_processor_type\": \"ViTImageProcessor\""
#define BIT "{\"image_processor_type\": \"BitImageProcessor\""
#define TIMM "{\"architecture\": \"vit_tiny_patch16_224\", \"pretrained_cfg\": {"

static const struct {
    const char *settings;
    att_status status;
    const char *words;
} wrong[] = {
    {"{}", ATT_ERR_FORMAT, "there is no \"image_processor_type\", and config.json"},
    {"[]", ATT_ERR_FORMAT, "is not a JSON object"},
    {"{\"image_processor_type\": \"SwinImageProcessor\"}", ATT_ERR_UNSUPPORTED,
     "\"image_processor_type\" is \"SwinImageProcessor\", which is not supported; ViTImageProcessor"},
    {VIT ", \"do_pad\": true}", ATT_ERR_UNSUPPORTED, "\"do_pad\" is true"},
    {VIT ", \"resample\": 4}", ATT_ERR_UNSUPPORTED, "\"resample\" is 4, which is not supported; 0 (nearest)"},
    {VIT ", \"resample\": \"bicubic\"}", ATT_ERR_UNSUPPORTED, "\"resample\" is \"bicubic\""},
    {VIT ", \"size\": 0}", ATT_ERR_FORMAT, "\"size\" is 0, not in [1, 16384]"},
    {VIT ", \"size\": [1, 2, 3]}", ATT_ERR_UNSUPPORTED, "\"size\" is [1.0,2.0,3.0], which is not supported"},
    {VIT ", \"size\": {\"longest_edge\": 3}}", ATT_ERR_UNSUPPORTED, "\"size.longest_edge\" is 3"},
    {VIT ", \"size\": {\"height\": 3}}", ATT_ERR_FORMAT, "there is no \"size.width\""},
    {VIT ", \"size\": {\"depth\": 3}}", ATT_ERR_UNSUPPORTED, "\"size.depth\" is not a known setting"},
    {VIT ", \"size\": {\"shortest_edge\": 3, \"width\": 3}}", ATT_ERR_UNSUPPORTED, "\"size.width\" is 3"},
    {VIT ", \"size\": {\"shortest_edge\": 3}}", ATT_ERR_UNSUPPORTED, "\"size\" is of the shortest edge and"},
    {VIT ", \"do_resize\": false}", ATT_ERR_UNSUPPORTED, "inputs of any size are not supported"},
    {VIT ", \"do_resize\": 1}", ATT_ERR_FORMAT, "\"do_resize\" is 1, not true or false"},
    {VIT ", \"do_center_crop\": true}", ATT_ERR_FORMAT, "\"crop_size\" has no height and width"},
    {BIT ", \"crop_size\": {\"shortest_edge\": 3}}", ATT_ERR_FORMAT, "\"crop_size\" has no height and width"},
    {VIT ", \"image_mean\": [0.5, 0.5]}", ATT_ERR_FORMAT, "\"image_mean\" is [0.5,0.5], not a list of 1 or 3 numbers"},
    {VIT ", \"image_mean\": [0.5]}", ATT_ERR_FORMAT, "\"image_mean\" is of 1 channels, but \"image_std\" of 3"},
    {VIT ", \"image_std\": [0.5, 0, 0.5]}", ATT_ERR_FORMAT, "\"image_std\" is [0.5,0.0,0.5], not a list"},
    {VIT ", \"image_std\": 0}", ATT_ERR_FORMAT, "\"image_std\" is 0, not in"},
    {VIT ", \"rescale_factor\": -1}", ATT_ERR_FORMAT, "\"rescale_factor\" is -1, not in"},
    {VIT ", \"image_mean\": [0], \"image_std\": [1], \"do_convert_rgb\": true}", ATT_ERR_UNSUPPORTED,
     "\"do_convert_rgb\" is true"},
};

static const struct {
    const char *settings;
    att_status status;
    const char *words;
} wrong_timm[] = {
    {"{\"model_type\": \"vit\"}", ATT_ERR_IO, "has no preprocessor_config.json, nor \"pretrained_cfg\" in config.json"},
    {TIMM "\"crop_mode\": \"border\"}}", ATT_ERR_UNSUPPORTED, "\"pretrained_cfg.crop_mode\" is \"border\""},
    {TIMM "\"interpolation\": \"box\"}}", ATT_ERR_UNSUPPORTED, "\"pretrained_cfg.interpolation\" is \"box\""},
    {TIMM "\"input_size\": [3, 8, 9]}}", ATT_ERR_UNSUPPORTED, "\"pretrained_cfg.input_size\" is 8 x 9: with"},
    {TIMM "\"input_size\": [4, 8, 8]}}", ATT_ERR_UNSUPPORTED, "\"pretrained_cfg.input_size\" is [4.0,8.0,8.0]"},
    {TIMM "\"input_size\": [1, 8, 8]}}", ATT_ERR_FORMAT, "is of 1 channels, but \"mean\" and \"std\" of 3"},
    {TIMM "\"crop_pct\": 0}}", ATT_ERR_FORMAT, "\"pretrained_cfg.crop_pct\" is 0, not in"},
};

static void check_settings(const test_folder *f, const char *file, const char *settings, att_status status,
                           const char *words)
{
    att_image_processor *p;
    folder_write(f, file, settings);
    check_file_refused(ctx, att_image_processor_open(ctx, f->path, &p), status, f->path, words);
    assert_null(p);
}

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_image_processor *p;
    check_file_refused(ctx, att_image_processor_open(ctx, f.path, &p), ATT_ERR_IO, f.path,
                       "has no preprocessor_config.json, nor");
    for (size_t i = 0; i < sizeof wrong_timm / sizeof wrong_timm[0]; i++)
        check_settings(&f, "config.json", wrong_timm[i].settings, wrong_timm[i].status, wrong_timm[i].words);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        check_settings(&f, "preprocessor_config.json", wrong[i].settings, wrong[i].status, wrong[i].words);
    folder_remove(&f);
}

static int64_t height_of(const test_folder *f)
{
    att_image_processor_info info = {.size = sizeof info};
    att_image_processor *p;
    if (att_image_processor_open(ctx, f->path, &p))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_image_processor_describe(p, &info), ATT_OK);
    att_image_processor_free(p);
    return info.height;
}

static void a_processor_of_several_kinds_of_input_counts_first(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    folder_write(&f, "processor_config.json", "{\"image_processor\": " VIT ", \"size\": 24}}");
    assert_int_equal(height_of(&f), 24);
    folder_write(&f, "preprocessor_config.json", VIT ", \"size\": 12}");
    assert_int_equal(height_of(&f), 24);
    check_settings(&f, "processor_config.json", "{\"image_processor\": " VIT ", \"size\": 0}}", ATT_ERR_FORMAT,
                   "processor_config.json: \"image_processor.size\" is 0, not in");
    folder_write(&f, "processor_config.json", "{\"processor_class\": \"ViTProcessor\"}");
    assert_int_equal(height_of(&f), 12);
    folder_remove(&f);
}

/* ---- images */

static att_image_processor *open_settings(const test_folder *f, const char *settings)
{
    att_image_processor *p;
    folder_write(f, "preprocessor_config.json", settings);
    if (att_image_processor_open(ctx, f->path, &p))
        fail_msg("%s", att_error(ctx));
    return p;
}

static void images_that_are_too_oblong_are_refused(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_image_processor *p = open_settings(&f, BIT "}");
    uint8_t pixels[3 * 3000] = {0};
    att_image line = {1, 3000, 3, pixels}, out;
    assert_int_equal(att_image_processor_crop(p, &line, &out), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "an image of 3000 x 1 pixels would be resized to 672000 x 224");
    assert_null(out.pixels);
    line.width = 100;
    assert_int_equal(att_image_processor_crop(p, &line, &out), ATT_OK);
    att_image_free(ctx, &out);
    line.channels = 2;
    assert_int_equal(att_image_processor_crop(p, &line, &out), ATT_ERR_ARGUMENT);
    att_image_processor_free(p);
    folder_remove(&f);
}

static void what_the_model_sees_is_the_crop(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_image_processor *p = open_settings(&f, BIT ", \"do_resize\": false, \"crop_size\": [13, 7]}");
    att_image image = golden_image("rgb.png"), out;
    assert_int_equal(att_image_processor_crop(p, &image, &out), ATT_OK);
    assert_int_equal(out.height, 13);
    assert_int_equal(out.width, 7);
    for (int y = 0; y < 13; y++)
        for (int x = 0; x < 7; x++)
            for (int c = 0; c < 3; c++) {
                const bool inside = y >= 1 && y < 12;
                assert_int_equal(out.pixels[3 * (7 * y + x) + c],
                                 inside ? image.pixels[3 * (17 * (y - 1) + x + 5) + c] : 0);
            }
    att_image_free(ctx, &out);
    free(image.pixels);
    att_image_processor_free(p);
    folder_remove(&f);
}

/* ---- writing */

static void what_was_written_is_read_again(void **state)
{
    static const char expected[] = "{\n"
                                   "  \"image_processor_type\": \"ViTImageProcessor\",\n"
                                   "  \"do_resize\": true,\n"
                                   "  \"size\": {\n"
                                   "    \"height\": 28,\n"
                                   "    \"width\": 32\n"
                                   "  },\n"
                                   "  \"resample\": 3,\n"
                                   "  \"do_rescale\": true,\n"
                                   "  \"rescale_factor\": 0.0039215686274509803,\n"
                                   "  \"do_normalize\": true,\n"
                                   "  \"image_mean\": [\n"
                                   "    0.5\n"
                                   "  ],\n"
                                   "  \"image_std\": [\n"
                                   "    0.25\n"
                                   "  ]\n"
                                   "}\n";
    att_image_processor_config config = {.info = {.height = 28,
                                                  .width = 32,
                                                  .channels = 1,
                                                  .filter = ATT_IMAGE_FILTER_BICUBIC,
                                                  .mean = {0.5f},
                                                  .deviation = {0.25f}},
                                         .rescale = 1 / 255.0,
                                         .resized = true,
                                         .size = {28, 32, 0}};
    att_image_processor_info info = config.info, read = {.size = sizeof read};
    (void)state;
    const test_folder f = folder_new();
    att_image_processor *p;
    assert_int_equal(att_image_processor_write(ctx, f.path, &config), ATT_OK);
    file_has(&f, "preprocessor_config.json", expected, sizeof expected - 1);
    for (info.channels = 1; info.channels <= 3; info.channels += 2) {
        for (int i = 0; i < 3; i++) {
            info.mean[i] = 0.1307f + 0.1f * (float)i;
            info.deviation[i] = 1 / (3.f + (float)i);
        }
        config.info = info;
        assert_int_equal(att_image_processor_write(ctx, f.path, &config), ATT_OK);
        assert_int_equal(att_image_processor_open(ctx, f.path, &p), ATT_OK);
        assert_int_equal(att_image_processor_describe(p, &read), ATT_OK);
        assert_int_equal(read.height, info.height);
        assert_int_equal(read.width, info.width);
        assert_int_equal(read.channels, info.channels);
        assert_int_equal(read.filter, info.filter);
        assert_memory_equal(read.mean, info.mean, (size_t)info.channels * sizeof *info.mean);
        assert_memory_equal(read.deviation, info.deviation, (size_t)info.channels * sizeof *info.mean);
        att_image_processor_free(p);
    }
    folder_remove(&f);
    assert_int_equal(att_image_processor_write(ctx, f.path, &config), ATT_ERR_IO);
}

/* ---- memory */

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    const test_folder folder = folder_new();
    folder_write(&folder, "preprocessor_config.json", BIT ", \"size\": 9, \"crop_size\": 8}");
    att_image image = golden_image("rgb.png");
    att_status s = ATT_ERR_MEMORY;
    for (long n = 1; s; n++) {
        float out[8 * 8 * 3];
        fail_alloc f = {.fail_at = 0};
        att_ctx *own = fail_open(&f);
        const long live = f.live;
        att_image_processor *p;
        f.fail_at = f.calls + n;
        s = att_image_processor_open(own, folder.path, &p);
        s = s ? s : att_image_processor_apply(p, &image, out);
        if (s)
            assert_int_equal(s, ATT_ERR_MEMORY);
        att_image_processor_free(p);
        assert_int_equal(f.live, live);
        att_close(own);
    }
    free(image.pixels);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_transformers_and_timm),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(a_processor_of_several_kinds_of_input_counts_first),
        cmocka_unit_test(images_that_are_too_oblong_are_refused),
        cmocka_unit_test(what_the_model_sees_is_the_crop),
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(each_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
