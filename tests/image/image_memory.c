/* Everything that an image needs in memory at once, from its file to a model's input, counts against the limit. */
#include "fixtures/fail_alloc.h"
#include "fixtures/images.h"
#include "fixtures/png_write.h"
#include "fixtures/write_files.h"

#include "fixtures/context.h"

enum { SIDE = 1 << 18, MIB = 1 << 20 };

/* Reads with a limit of pixels, and in at most the bytes that these allow; words: or is refused by them. */
static void check_read(const char *what, att_image_bytes file, int64_t max_pixels, const char *words)
{
    const long limit = 2 * 3 * max_pixels + MIB;
    fail_alloc f = {.fail_at = 0};
    att_ctx *own = fail_open(&f);
    const long before = f.bytes;
    f.peak = before;
    att_image image;
    const att_status s = att_image_decode(own, "a/picture", file.data, file.bytes,
                                          ATT_OPTIONS(att_image_options, .max_pixels = max_pixels), &image);
    if (words)
        check_file_refused(own, s, ATT_ERR_UNSUPPORTED, "a/picture", words);
    else if (s)
        fail_msg("%s: %s", what, att_error(own));
    if (f.peak - before > limit)
        fail_msg("%s: %ld bytes were in use, more than %ld", what, f.peak - before, limit);
    att_image_free(own, &image);
    att_close(own);
    free(file.data);
}

static void png_files_of_every_shape_and_kind_stay_within_the_limit(void **state)
{
    static const png_kind kinds[] = {{1, 0, false}, {8, 0, true}, {16, 0, false}, {8, 2, false}, {16, 2, true},
                                     {1, 3, false}, {8, 3, true}, {8, 4, false},  {8, 6, false}, {16, 6, true}};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i += (size_t)check_step(3)) {
        char what[64];
        snprintf(what, sizeof what, "%d bits, type %d%s", kinds[i].bits, kinds[i].type,
                 kinds[i].interlaced ? ", interlaced" : "");
        check_read(what, png_zeros(kinds[i], 1, SIDE), SIDE, NULL);
        check_read(what, png_zeros(kinds[i], 3, SIDE / 3), SIDE, NULL);
        check_read(what, png_zeros(kinds[i], 512, 512), SIDE, NULL);
        check_read(what, png_zeros(kinds[i], SIDE / 5, 5), SIDE, NULL);
    }
}

/* libpng has two rows of the widest kind of pixel in memory. */
static void png_files_whose_rows_need_more_are_refused_with_both_sizes(void **state)
{
    static const png_kind kinds[] = {{16, 2, false}, {16, 6, true}};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        check_read("wide", png_zeros(kinds[i], SIDE, 1), SIDE,
                   "MB of memory at once, the maximum is 2.6 MB, by the limit of 262144 pixels");
}

/* The coefficients of a progressive file take six bytes a pixel where no channel is halved. */
static void coefficients_of_progressive_jpeg_files_count(void **state)
{
    (void)state;
    att_image_bytes file;
    file.data = image_file(GOLDEN_IMAGES "progressive.jpg", &file.bytes);
    unsigned char *frame = memmem(file.data, file.bytes, "\xff\xc2", 2);
    memcpy(frame + 5, "\x10\0\x10\0", 4); /* 4,096 x 4,096 */
    frame[11] = 0x11;                     /* of the first channel as of the others */
    check_read("progressive", file, 1 << 24, "needs 151.0 MB of memory at once, the maximum is 101.7 MB");
}

static void memory_of_webp_files_counts(void **state)
{
    (void)state;
    att_image image;
    att_image_bytes file;
    if (att_image_open(ctx, GOLDEN_IMAGES "lossless.webp", NULL, &image))
        skip(); /* this build has no libwebp */
    att_image_free(ctx, &image);
    file.data = image_file(GOLDEN_IMAGES "lossless.webp", &file.bytes);
    memcpy(file.data + 21, "\xff\xcf\xff\3", 4); /* 4,096 x 4,096 */
    check_read("lossless", file, 1 << 24, "needs 117.4 MB of memory at once, the maximum is 101.7 MB");
}

/* Makes a PNG file of one pixel and a packed text of n line ends. */
static att_image_bytes png_with_text(const char *keyword, size_t n)
{
    enum { HEADER = 33 };
    att_image_bytes pixel = png_zeros((png_kind){8, 2, false}, 1, 1), file;
    uLongf packed = compressBound(n);
    unsigned char *text = malloc(n), *chunk = malloc(packed + 64);
    file.data = malloc(pixel.bytes + packed + 64);
    assert_non_null(text);
    assert_non_null(chunk);
    assert_non_null(file.data);
    memset(text, '\n', n);
    const size_t head = (size_t)sprintf((char *)chunk, "%s", keyword) + 1;
    chunk[head] = 0;
    assert_int_equal(compress(chunk + head + 1, &packed, text, n), Z_OK);
    memcpy(file.data, pixel.data, HEADER);
    unsigned char *end = png_put_chunk(file.data + HEADER, "zTXt", chunk, head + 1 + packed);
    memcpy(end, pixel.data + HEADER, pixel.bytes - HEADER);
    file.bytes = (size_t)(end - file.data) + pixel.bytes - HEADER;
    free(text);
    free(chunk);
    free(pixel.data);
    return file;
}

static const char *const keywords[] = {"XML:com.adobe.xmp", "Raw profile type exif", "Raw profile type APP1"};
enum { N_KEYWORDS = sizeof keywords / sizeof keywords[0] };

static void texts_of_png_files_are_unpacked_within_the_limit(void **state)
{
    (void)state;
    for (int i = 0; i < N_KEYWORDS; i++)
        check_read(keywords[i], png_with_text(keywords[i], 8 * MIB), 1, NULL);
}

static void each_failing_allocation_of_a_text_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < N_KEYWORDS; i++) {
        const att_image_bytes file = png_with_text(keywords[i], 99);
        att_status s = ATT_ERR_MEMORY;
        for (long n = 1; s; n++) {
            fail_alloc f = {.fail_at = 0};
            att_ctx *own = fail_open(&f);
            const long live = f.live;
            f.fail_at = f.calls + n;
            att_image image;
            s = att_image_decode(own, "a/picture", file.data, file.bytes, NULL, &image);
            if (s && s != ATT_ERR_MEMORY)
                fail_msg("%s, allocation %ld: %s: %s", keywords[i], n, att_status_name(s), att_error(own));
            att_image_free(own, &image);
            assert_int_equal(f.live, live);
            att_close(own);
        }
        free(file.data);
    }
}

/* ---- resized */

static att_status resize(att_ctx *own, const att_image *image, int64_t height, int64_t width, att_image *out)
{
    return att_image_resize(own, image, height, width, ATT_IMAGE_FILTER_LANCZOS, out);
}

/* Weights of one pixel of the result are 170,000. */
static void resizing_long_sides_takes_little_memory(void **state)
{
    enum { LONG = 1 << 20, SHORT = 37 };
    (void)state;
    fail_alloc f = {.fail_at = 0};
    att_ctx *own = fail_open(&f);
    att_image tall = {LONG, 1, 1, calloc(LONG, 1)}, wide = {1, LONG, 1, tall.pixels}, low, narrow;
    assert_non_null(tall.pixels);
    memset(tall.pixels + LONG / 2, 200, LONG / 2);
    const long before = f.bytes;
    f.peak = before;
    assert_int_equal(resize(own, &tall, SHORT, 1, &low), ATT_OK);
    assert_int_equal(resize(own, &wide, 1, SHORT, &narrow), ATT_OK);
    assert_in_range(f.peak - before, 0, 7 * MIB); /* those of all would be 25 MB */
    assert_memory_equal(low.pixels, narrow.pixels, SHORT);
    for (int i = 0; i < SHORT; i++)
        if (abs(i - SHORT / 2) > 3)
            assert_int_equal(low.pixels[i], i < SHORT / 2 ? 0 : 200);
    att_image_free(own, &low);
    att_image_free(own, &narrow);
    att_close(own);
    free(tall.pixels);
}

static void a_pixel_cannot_be_the_sum_of_too_many(void **state)
{
    (void)state;
    enum { LONG = 3 << 23 };
    att_image tall = {LONG, 1, 1, calloc(LONG, 1)}, out;
    assert_non_null(tall.pixels);
    assert_int_equal(resize(ctx, &tall, 1, 1, &out), ATT_ERR_UNSUPPORTED);
    check_message(
        ctx, "of 25165824 pixels on one side cannot be resized to 1: each would be a sum of 25165824, the maximum is "
             "16777216");
    assert_null(out.pixels);
    free(tall.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_files_of_every_shape_and_kind_stay_within_the_limit),
        cmocka_unit_test(png_files_whose_rows_need_more_are_refused_with_both_sizes),
        cmocka_unit_test(coefficients_of_progressive_jpeg_files_count),
        cmocka_unit_test(memory_of_webp_files_counts),
        cmocka_unit_test(texts_of_png_files_are_unpacked_within_the_limit),
        cmocka_unit_test(each_failing_allocation_of_a_text_is_reported),
        cmocka_unit_test(resizing_long_sides_takes_little_memory),
        cmocka_unit_test(a_pixel_cannot_be_the_sum_of_too_many),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
