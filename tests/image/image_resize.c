/* Resampling and conversion have the pixels that Pillow gives, also on photos. */
#include "fixtures/images.h"
#include "fixtures/real_files.h"

#include "fixtures/context.h"

#include <zlib.h>

static const struct {
    const char *name;
    att_image_filter filter;
} filters[] = {{"nearest", ATT_IMAGE_FILTER_NEAREST},
               {"bilinear", ATT_IMAGE_FILTER_BILINEAR},
               {"bicubic", ATT_IMAGE_FILTER_BICUBIC},
               {"lanczos", ATT_IMAGE_FILTER_LANCZOS}};
enum { N_FILTERS = sizeof filters / sizeof filters[0] };

static void compare(const char *from, const char *prefix, int filter, int64_t height, int64_t width)
{
    char name[64];
    att_image image = golden_image(from), out;
    assert_int_equal(att_image_resize(ctx, &image, height, width, filters[filter].filter, &out), ATT_OK);
    snprintf(name, sizeof name, "%s%s-%d-%d", prefix, filters[filter].name, (int)height, (int)width);
    check_image(&out, name);
    att_image_free(ctx, &out);
    free(image.pixels);
}

static void every_filter_has_the_pixels_of_pillow(void **state)
{
    static const int64_t sizes[][2] = {{5, 7}, {13, 25}, {5, 17}, {11, 3}, {1, 1}, {12, 16}, {3, 31}};
    (void)state;
    for (int f = 0; f < N_FILTERS; f++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            compare("rgb.png", "", f, sizes[i][0], sizes[i][1]);
        compare("gray", "gray-", f, 6, 9);
    }
}

static void the_same_size_is_a_copy(void **state)
{
    (void)state;
    for (int f = 0; f < N_FILTERS; f++) {
        att_image image = golden_image("rgb.png"), out;
        assert_int_equal(att_image_resize(ctx, &image, image.height, image.width, filters[f].filter, &out), ATT_OK);
        assert_ptr_not_equal(out.pixels, image.pixels);
        check_image(&out, "rgb.png");
        att_image_free(ctx, &out);
        free(image.pixels);
    }
}

static void gray_is_the_luma_of_pillow_and_three_equal_channels(void **state)
{
    (void)state;
    att_image image = golden_image("rgb.png"), gray, again, three;
    assert_int_equal(att_image_convert(ctx, &image, 1, &gray), ATT_OK);
    check_image(&gray, "luma");
    assert_int_equal(att_image_convert(ctx, &gray, 3, &three), ATT_OK);
    for (int64_t i = 0; i < 3 * gray.height * gray.width; i++)
        assert_int_equal(three.pixels[i], gray.pixels[i / 3]);
    assert_int_equal(att_image_convert(ctx, &three, 1, &again), ATT_OK);
    check_image(&again, "luma");
    att_image_free(ctx, &again);
    att_image_free(ctx, &three);
    att_image_free(ctx, &gray);
    free(image.pixels);
}

/* One photo with one filter: a line of photos.txt. PNG files have the very pixels, JPEG files those of another version
 * of libjpeg within one level. */
static void check_photo(const char *name, const char *path, int filter)
{
    enum { SIDE = 224, STEP = 56, VALUES = 3 * (SIDE / STEP) * (SIDE / STEP) };
    char line[256];
    double expected[1 + VALUES];
    att_image photo, out;
    if (att_image_open(ctx, path, NULL, &photo))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_image_resize(ctx, &photo, SIDE, SIDE, filters[filter].filter, &out), ATT_OK);
    snprintf(line, sizeof line, "%s-%s", name, filters[filter].name);
    assert_int_equal(golden_line("tests/golden/photos.txt", line, expected, 1 + VALUES), 1 + VALUES);
    for (int i = 0; i < VALUES; i++) {
        const int y = i / 3 / (SIDE / STEP) * STEP, x = i / 3 % (SIDE / STEP) * STEP;
        const int is = out.pixels[3 * (SIDE * y + x) + i % 3];
        if (abs(is - (int)expected[1 + i]) > 1)
            fail_msg("%s: pixel %d, %d is %d, not %d", line, y, x, is, (int)expected[1 + i]);
    }
    const uLong sum = crc32(0, out.pixels, 3 * SIDE * SIDE);
    if (strstr(name, ".png") && sum != (uLong)expected[0])
        fail_msg("%s: the checksum of all pixels is %lu, not %lu", line, sum, (uLong)expected[0]);
    att_image_free(ctx, &out);
    att_image_free(ctx, &photo);
}

static void photos_have_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {
        "coco_000000039769_cats.png", "skimage/astronaut.png", "skimage/camera.png", "skimage/chelsea.png",
        "skimage/coffee.png",         "skimage/coins.png",     "skimage/horse.png",  "skimage/hubble_deep_field.jpg",
        "skimage/retina.jpg",         "skimage/rocket.jpg"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[128];
        snprintf(file, sizeof file, "photos/%s", names[i]);
        const char *path = data_file(file);
        if (!path) {
            print_message("skipped: %s is not in $ATTEND_DATA, nor in ../shared/data\n", file);
            skip();
        }
        for (int f = 1; f < N_FILTERS; f++)
            check_photo(names[i], path, f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filter_has_the_pixels_of_pillow),
        cmocka_unit_test(the_same_size_is_a_copy),
        cmocka_unit_test(gray_is_the_luma_of_pillow_and_three_equal_channels),
        cmocka_unit_test(photos_have_the_pixels_of_pillow),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
