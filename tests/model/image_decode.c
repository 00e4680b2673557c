/* Image files to pixels: each kind of JPEG, PNG and WebP has the pixels that Pillow gives. */
// labels: threads
#include "image_help.h"

#include "attend_util.h"

#include "context.h"

static const uint8_t background[] = {200, 30, 90};

static void open_golden(const char *name, const att_image_options *options, att_image *out)
{
    char path[256];
    snprintf(path, sizeof path, GOLDEN_IMAGES "%s", name);
    if (att_image_open(ctx, path, options, out))
        fail_msg("%s: %s", name, att_error(ctx));
}

/* Opens each and compares; `over`: over the background, instead of without alpha. */
static void compare(const char *const *names, bool over)
{
    for (; *names; names++) {
        char golden[256];
        att_image image;
        open_golden(*names, over ? ATT_OPTIONS(att_image_options, .background = background) : NULL, &image);
        snprintf(golden, sizeof golden, "%s%s", *names, over ? "-over" : "");
        check_image(&image, golden);
        att_image_free(ctx, &image);
        assert_null(image.pixels);
    }
}

static void every_kind_of_jpeg_has_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {"444.jpg",           "422.jpg",           "420.jpg",
                                        "progressive.jpg",   "restarts.jpg",      "rgb.jpg",
                                        "grey.jpg",          "one_pixel.jpg",     "grey_progressive.jpg",
                                        "orientation_1.jpg", "orientation_2.jpg", "orientation_3.jpg",
                                        "orientation_4.jpg", "orientation_5.jpg", "orientation_6.jpg",
                                        "orientation_7.jpg", "orientation_8.jpg", NULL};
    (void)state;
    compare(names, false);
}

static const char *const transparent_png[] = {"grey_alpha.png",       "grey_alpha_16.png",   "rgba.png",
                                              "rgba_16.png",          "rgba_interlaced.png", "palette_transparent.png",
                                              "grey_transparent.png", "rgb_transparent.png", NULL};

static void every_kind_of_png_has_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {"grey_1.png",        "grey_2.png",        "grey_4.png",
                                        "grey.png",          "grey_16.png",       "palette_1.png",
                                        "palette_2.png",     "palette_4.png",     "palette_8.png",
                                        "rgb.png",           "rgb_16.png",        "interlaced.png",
                                        "interlaced_1.png",  "one_pixel.png",     "text.png",
                                        "orientation_6.png", "orientation_8.png", NULL};
    (void)state;
    compare(names, false);
    compare(transparent_png, false);
}

static void png_over_a_background_has_the_pixels_of_pillow(void **state)
{
    (void)state;
    compare(transparent_png, true);
}

static const char *const transparent_webp[] = {"lossy_alpha.webp", "lossless_alpha.webp", NULL};

static void every_kind_of_webp_has_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {"lossy.webp", "lossless.webp", "orientation_6.webp", "animated.webp", NULL};
    (void)state;
    att_image image;
    if (att_image_open(ctx, GOLDEN_IMAGES "lossy.webp", NULL, &image) == ATT_ERR_UNSUPPORTED) {
        check_says(ctx, "built without libwebp");
        print_message("skipped: this build has no libwebp\n");
        skip();
    }
    att_image_free(ctx, &image);
    compare(names, false);
    compare(transparent_webp, false);
    compare(transparent_webp, true);
}

static void an_opaque_image_does_not_change_over_a_background(void **state)
{
    static const char *const names[] = {"420.jpg", "grey_1.png", "palette_8.png", "rgb_16.png", NULL};
    (void)state;
    for (const char *const *name = names; *name; name++) {
        att_image image;
        open_golden(*name, ATT_OPTIONS(att_image_options, .background = background), &image);
        check_image(&image, *name);
        att_image_free(ctx, &image);
    }
}

static void orientation_is_ignored_if_wanted(void **state)
{
    (void)state;
    for (int i = 1; i <= 8; i++) {
        char name[32];
        att_image image;
        snprintf(name, sizeof name, "orientation_%d.jpg", i);
        open_golden(name, ATT_OPTIONS(att_image_options, .ignore_orientation = true), &image);
        check_image(&image, "orientation_1.jpg");
        att_image_free(ctx, &image);
    }
}

static const char *const shared[] = {"420.jpg", "progressive.jpg", "rgb.png", "orientation_6.png"};
enum { N_SHARED = sizeof shared / sizeof shared[0] };

static void open_one(void *images, int i) { open_golden(shared[i % N_SHARED], NULL, (att_image *)images + i); }

static void many_threads_may_decode_at_once(void **state)
{
    enum { N = 64 };
    att_image images[N];
    (void)state;
    att_parallel_for(ctx, N, open_one, images);
    for (int i = 0; i < N; i++) {
        check_image(&images[i], shared[i % N_SHARED]);
        att_image_free(ctx, &images[i]);
    }
}

static void a_png_that_was_written_has_the_same_pixels(void **state)
{
    static const char *const names[] = {"rgb.png", "luma", "one_pixel.png", NULL};
    (void)state;
    for (const char *const *name = names; *name; name++) {
        att_image before = golden_image(*name), after, same;
        att_image_bytes png;
        assert_int_equal(att_image_encode_png(ctx, &before, &png), ATT_OK);
        assert_int_equal(att_image_decode(ctx, "a", png.data, png.bytes, NULL, &after), ATT_OK);
        assert_int_equal(att_image_convert(ctx, &after, before.channels, &same), ATT_OK);
        check_image(&same, *name);
        att_image_free(ctx, &same);
        att_image_free(ctx, &after);
        att_image_bytes_free(ctx, &png);
        free(before.pixels);
    }
}

static void names_of_images_are_known_by_their_end(void **state)
{
    static const char *const good[] = {"a.jpg", "b/c.JPEG", "x.y.png", "webp.WebP", ".png"};
    static const char *const bad[] = {"-", "", "jpg", "a.gif", "a.jpg.txt", "a.jp", "a.jpgx"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(att_image_has_name(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(att_image_has_name(bad[i]));
    assert_false(att_image_has_name(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_jpeg_has_the_pixels_of_pillow),
        cmocka_unit_test(every_kind_of_png_has_the_pixels_of_pillow),
        cmocka_unit_test(png_over_a_background_has_the_pixels_of_pillow),
        cmocka_unit_test(every_kind_of_webp_has_the_pixels_of_pillow),
        cmocka_unit_test(an_opaque_image_does_not_change_over_a_background),
        cmocka_unit_test(orientation_is_ignored_if_wanted),
        cmocka_unit_test(many_threads_may_decode_at_once),
        cmocka_unit_test(a_png_that_was_written_has_the_same_pixels),
        cmocka_unit_test(names_of_images_are_known_by_their_end),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
