/* A file that is not an image, or a damaged or hostile one, is an error that names it, in bounded time and memory. */
#include "fixtures/fail_malloc.h"

#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "fixtures/images.h"
#include "fixtures/png_write.h"
#include "fixtures/write_files.h"

#include "fixtures/context.h"

static const char *const files[] = {"420.jpg",
                                    "progressive.jpg",
                                    "gray.jpg",
                                    "orientation_6.jpg",
                                    "rgb_16.png",
                                    "rgba_interlaced.png",
                                    "palette_transparent.png",
                                    "orientation_8.png",
                                    "lossy_alpha.webp",
                                    "lossless.webp",
                                    "orientation_6.webp",
                                    "animated.webp",
                                    "tiles.tif",
                                    "planes.tif",
                                    "jpeg.tif",
                                    "palette_4.tif",
                                    "cmyk.jpg"};
enum { N_FILES = sizeof files / sizeof files[0] };

/* The bytes of golden file i, malloc's; NULL: this build cannot read it. */
static unsigned char *golden_file(int i, size_t *bytes)
{
    char path[256];
    att_image image;
    snprintf(path, sizeof path, GOLDEN_IMAGES "%s", files[i]);
    const att_status s = att_image_open(ctx, path, NULL, &image);
    att_image_free(ctx, &image);
    if (s && !strstr(att_error(ctx), "built without lib"))
        fail_msg("%s", att_error(ctx));
    return s ? NULL : image_file(path, bytes);
}

/* Refused, with nothing left, by a sentence with the label and these words. */
static void check_refused(const void *data, size_t bytes, const att_image_options *options, att_status expected,
                          const char *words)
{
    att_image image = {1, 1, 1, NULL};
    const att_status s = att_image_decode(ctx, "a/picture", data, bytes, options, &image);
    check_file_refused(ctx, s, expected, "a/picture", words);
    assert_null(image.pixels);
    assert_int_equal(image.height, 0);
}

/* ---- files */

static void check_path(const char *path, att_status expected, const char *words)
{
    att_image image;
    check_file_refused(ctx, att_image_open(ctx, path, NULL, &image), expected, path, words);
    assert_null(image.pixels);
}

static void what_is_no_file_or_no_image_is_named(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    folder_write(&f, "empty.png", "");
    folder_write(&f, "text.jpg", "Hello");
    check_path(path_in(&f, "missing.png"), ATT_ERR_IO, "No such file");
    check_path(f.path, ATT_ERR_IO, "is not a file");
    check_path(path_in(&f, "empty.png"), ATT_ERR_FORMAT, "empty.png is empty");
    check_path(path_in(&f, "text.jpg"), ATT_ERR_FORMAT, "is not an image: it does not begin as JPEG");
    assert_int_equal(mkfifo(path_in(&f, "pipe"), 0600), 0);
    check_path(path_in(&f, "pipe"), ATT_ERR_IO, "is not a file");
    FILE *large = folder_open(&f, "large.png");
    assert_int_equal(ftruncate(fileno(large), ((off_t)1 << 30) + 1), 0); /* a sparse file */
    fclose(large);
    check_path(path_in(&f, "large.png"), ATT_ERR_UNSUPPORTED, "has more than 1073741824 bytes");
    folder_remove(&f);
}

static void other_formats_are_named(void **state)
{
    static const struct {
        const char *begin;
        size_t bytes;
        const char *name;
    } others[] = {{"\0\0\0\x18"
                   "ftypheic",
                   12, "HEIC"},
                  {"\0\0\0\x18"
                   "ftypmif1",
                   12, "HEIC or AVIF"},
                  {"\0\0\0\x0cJXL \r\n\x87\n", 12, "JPEG XL"},
                  {"\xff\x0a\x01", 3, "JPEG XL"},
                  {"\0\0\0\x0cjP  \r\n\x87\n", 12, "JPEG 2000"}};
    (void)state;
    check_path(GOLDEN_IMAGES "small.gif", ATT_ERR_UNSUPPORTED, "GIF files are not supported; JPEG");
    check_path(GOLDEN_IMAGES "small.bmp", ATT_ERR_UNSUPPORTED, "BMP files are not supported");
    check_path(GOLDEN_IMAGES "small.avif", ATT_ERR_UNSUPPORTED, "AVIF files are not supported");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        check_refused(others[i].begin, others[i].bytes, NULL, ATT_ERR_UNSUPPORTED, others[i].name);
}

static void standard_input_is_read_to_its_end(void **state)
{
    (void)state;
    att_image image;
    const int before = dup(STDIN_FILENO);
    assert_non_null(freopen(GOLDEN_IMAGES "rgb.png", "rb", stdin));
    assert_int_equal(att_image_open(ctx, "-", NULL, &image), ATT_OK);
    check_image(&image, "rgb.png");
    att_image_free(ctx, &image);
    assert_int_equal(att_image_open(ctx, "-", NULL, &image), ATT_ERR_FORMAT);
    check_message(ctx, "standard input is empty");
    dup2(before, STDIN_FILENO);
    close(before);
}

/* ---- damage */

/* Bytes that only say that the file ends. In a PNG file: after the last piece of packed pixels, and six of that, its
 * checksum and the sign of its end. */
static size_t bytes_of_end(const char *name, const unsigned char *data, size_t bytes)
{
    if (!strstr(name, ".png"))
        return strstr(name, ".jpg") ? 2 : 0;
    const unsigned char *pixels = data, *next = data;
    while ((next = memmem(next + 1, bytes - (size_t)(next + 1 - data), "IDAT", 4)))
        pixels = next;
    const size_t length = (size_t)pixels[-2] << 8 | pixels[-1];
    return bytes - (size_t)(pixels + 4 + length - data) + 6;
}

static void every_truncated_file_is_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        size_t bytes;
        unsigned char *data = golden_file(i, &bytes);
        const size_t end = data ? bytes_of_end(files[i], data, bytes) : 0;
        for (size_t n = 1; data && n < bytes - end; n++) {
            unsigned char *part = malloc(n); /* so that a sanitizer sees its end */
            assert_non_null(part);
            memcpy(part, data, n);
            const char *why = n < 12 ? "" : strstr(files[i], ".tif") ? "the TIFF file is damaged: " : "truncated";
            check_refused(part, n, NULL, ATT_ERR_FORMAT, why);
            free(part);
        }
        free(data);
    }
}

static void a_png_file_that_lacks_only_its_end_is_shown(void **state)
{
    static const char *const names[] = {"rgb.png", "rgb_16.png", "rgba_interlaced.png", "palette_1.png",
                                        "one_pixel.png"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        size_t bytes;
        att_image image;
        snprintf(path, sizeof path, GOLDEN_IMAGES "%s", names[i]);
        unsigned char *data = image_file(path, &bytes);
        for (size_t n = bytes - bytes_of_end(names[i], data, bytes) + 6; n <= bytes; n++) {
            unsigned char *part = malloc(n);
            assert_non_null(part);
            memcpy(part, data, n);
            if (att_image_decode(ctx, "a/picture", part, n, NULL, &image))
                fail_msg("%s, %zu of %zu bytes: %s", names[i], n, bytes, att_error(ctx));
            check_image(&image, names[i]);
            att_image_free(ctx, &image);
            free(part);
        }
        data[bytes - 1] ^= 1; /* the checksum of the end says nothing of the pixels */
        assert_int_equal(att_image_decode(ctx, "a/picture", data, bytes, NULL, &image), ATT_OK);
        att_image_free(ctx, &image);
        free(data);
    }
}

static void a_png_file_with_fewer_pixels_than_its_header_says_is_damaged(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = image_file(GOLDEN_IMAGES "rgb.png", &bytes);
    data[23]++; /* its height */
    png_put_chunk(data + 8, "IHDR", data + 16, 13);
    check_refused(data, bytes, NULL, ATT_ERR_FORMAT, "the PNG file is damaged: it ends before its pixels");
    free(data);
}

/* The pixels in two pieces, with a text between them; and whole, with more after a text. */
static void pixels_are_in_one_place(void **state)
{
    enum { SIDE = 64, HEADER = 33 };
    (void)state;
    att_image image;
    const att_image_bytes all = png_zeros((png_kind){8, 2, false}, SIDE, SIDE);
    const unsigned char *pixels = all.data + HEADER + 8;
    const size_t n = (size_t)pixels[-6] << 8 | pixels[-5];
    for (size_t first = 4; first <= n; first += n - 4) {
        unsigned char file[1024], *at = file + HEADER;
        memcpy(file, all.data, HEADER);
        at = png_put_chunk(at, "IDAT", pixels, first);
        at = png_put_chunk(at, "tEXt", "a\0b", 3);
        at = png_put_chunk(at, "IDAT", pixels + (first < n ? first : 0), first < n ? n - first : 4);
        at = png_put_chunk(at, "IEND", "", 0);
        if (first < n)
            check_refused(file, (size_t)(at - file), NULL, ATT_ERR_FORMAT, "Not enough compressed data");
        else
            assert_int_equal(att_image_decode(ctx, "a", file, (size_t)(at - file), NULL, &image), ATT_OK);
    }
    att_image_free(ctx, &image);
    free(all.data);
}

static void no_changed_byte_does_harm(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        size_t bytes;
        unsigned char *data = golden_file(i, &bytes);
        for (size_t n = 0; data && n < bytes; n += (size_t)check_step(3)) {
            att_image image;
            data[n] ^= 0xff;
            const att_status s = att_image_decode(ctx, "a/picture", data, bytes,
                                                  ATT_OPTIONS(att_image_options, .max_pixels = 1 << 16), &image);
            if (s ? !!image.pixels : !image.pixels || image.channels != 3)
                fail_msg("%s: byte %zu: %s, image %s", files[i], n, att_status_name(s),
                         image.pixels ? "there" : "none");
            att_image_free(ctx, &image);
            data[n] ^= 0xff;
        }
        free(data);
    }
}

static void tiff_files_that_are_no_pictures_are_named(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {{"real.tif", "samples of"},
                 {"preview.tif", "the first page of the TIFF file is a preview, as in raw photos of cameras"},
                 {"huge.tif", "has 100000 x 100000 pixels"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[256];
        att_image image;
        snprintf(path, sizeof path, GOLDEN_IMAGES "%s", cases[i].name);
        if (att_image_open(ctx, path, NULL, &image) && strstr(att_error(ctx), "built without lib"))
            skip();
        check_path(path, ATT_ERR_UNSUPPORTED, cases[i].words);
    }
}

/* ---- claims */

/* The golden file with big-endian numbers in it replaced. */
static void check_claim(int file, const char *marker, size_t skipped, int size_bytes, const char *words)
{
    size_t bytes;
    fail_alloc f = {.fail_at = 0};
    unsigned char *data = golden_file(file, &bytes), *at = data ? memmem(data, bytes, marker, strlen(marker)) : NULL;
    if (!data)
        return;
    assert_non_null(at);
    at += strlen(marker) + skipped;
    for (int i = 0; i < 2; i++) /* height and width */
        for (int b = size_bytes - 1, value = size_bytes == 4 ? 100000 : 65500; b >= 0; b--, value >>= 8)
            at[size_bytes * i + b] = (unsigned char)value;
    att_ctx *own = fail_open(&f);
    const long before = f.peak;
    att_image image;
    const att_status s = att_image_decode(own, "a/picture", data, bytes, NULL, &image);
    check_file_refused(own, s, ATT_ERR_UNSUPPORTED, "a/picture", words);
    if (f.peak - before > 1 << 20)
        fail_msg("%s: %ld bytes were allocated", files[file], f.peak - before);
    att_close(own);
    free(data);
}

static void claimed_sizes_are_refused_before_memory_is_allocated(void **state)
{
    (void)state;
    check_claim(0, "\xff\xc0", 3, 2, "has 65500 x 65500 pixels, the maximum is 134217728 in all");
    check_claim(1, "\xff\xc2", 3, 2, "has 65500 x 65500 pixels");
    size_t bytes; /* in a PNG file a checksum follows, so it is written */
    att_image wide = {1, 1 << 20, 1, calloc(1, 1 << 20)};
    att_image_bytes png;
    assert_int_equal(att_image_encode_png(ctx, &wide, &png), ATT_OK);
    check_refused(png.data, png.bytes, ATT_OPTIONS(att_image_options, .max_pixels = (1 << 20) - 1), ATT_ERR_UNSUPPORTED,
                  "has 1048576 x 1 pixels, the maximum is 1048575 in all");
    att_image again;
    assert_int_equal(att_image_decode(ctx, "a", png.data, png.bytes, NULL, &again), ATT_OK);
    assert_int_equal(again.width, 1 << 20);
    att_image_free(ctx, &again);
    att_image_bytes_free(ctx, &png);
    free(wide.pixels);
    unsigned char *huge = image_file(GOLDEN_IMAGES "huge.png", &bytes);
    check_refused(huge, bytes, NULL, ATT_ERR_UNSUPPORTED, "has 100000 x 100000 pixels");
    free(huge);
    unsigned char *webp = golden_file(9, &bytes);
    if (webp)
        check_refused(webp, bytes, ATT_OPTIONS(att_image_options, .max_pixels = 100), ATT_ERR_UNSUPPORTED,
                      "has 17 x 11 pixels, the maximum is 100 in all");
    free(webp);
}

/* A chunk of EXIF data that claims 2 GB, after the first chunk, which ends at byte 33. */
static void claimed_chunks_get_no_memory(void **state)
{
    static const unsigned char chunk[8] = {0x7f, 0xff, 0xff, 0xff, 'e', 'X', 'I', 'f'};
    (void)state;
    size_t bytes;
    att_image image;
    fail_alloc f = {.fail_at = 0};
    att_ctx *own = fail_open(&f);
    const long before = f.peak;
    unsigned char *data = image_file(GOLDEN_IMAGES "rgb.png", &bytes);
    memcpy(data + 33, chunk, sizeof chunk);
    check_file_refused(own, att_image_decode(own, "a/picture", data, bytes, NULL, &image), ATT_ERR_FORMAT, "a/picture",
                       "truncated");
    assert_in_range(f.peak - before, 0, 1 << 20);
    att_close(own);
    free(data);
}

/* Writes a progressive file of 8 x 8 pixels whose scans, of 11 bytes, all set the same coefficient. */
static size_t write_scans(int scans, unsigned char *to)
{
    static const unsigned char tables[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}, /* and 64 factors */
        frame[] = {0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0},
                               codes[] = {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                               scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0, 0x7f}, end[] = {0xff, 0xd9};
    unsigned char *at = to;
    at = (unsigned char *)memcpy(at, tables, sizeof tables) + sizeof tables;
    at = (unsigned char *)memset(at, 1, 64) + 64;
    at = (unsigned char *)memcpy(at, frame, sizeof frame) + sizeof frame;
    at = (unsigned char *)memcpy(at, codes, sizeof codes) + sizeof codes;
    for (int i = 0; i < scans; i++)
        at = (unsigned char *)memcpy(at, scan, sizeof scan) + sizeof scan;
    at = (unsigned char *)memcpy(at, end, sizeof end) + sizeof end;
    return (size_t)(at - to);
}

static void progressive_files_have_a_limit_of_scans(void **state)
{
    (void)state;
    static unsigned char data[1 << 14];
    att_image image;
    assert_int_equal(att_image_decode(ctx, "a", data, write_scans(100, data), NULL, &image), ATT_OK);
    assert_int_equal(image.pixels[0], 128);
    att_image_free(ctx, &image);
    check_refused(data, write_scans(101, data), NULL, ATT_ERR_UNSUPPORTED, "has more than 100 scans");
    check_refused(data, write_scans(1000, data), NULL, ATT_ERR_UNSUPPORTED, "has more than 100 scans");
}

/* ---- arguments */

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    uint8_t pixels[6] = {0};
    att_image out, good = {1, 2, 3, pixels}, two = {1, 2, 2, pixels}, none = {1, 2, 3, NULL}, flat = {0, 2, 3, pixels};
    att_image_bytes png;
    assert_int_equal(att_image_resize(ctx, &two, 1, 1, ATT_IMAGE_FILTER_BICUBIC, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_image_resize: the image has 2 channels, not 1 or 3");
    assert_int_equal(att_image_resize(ctx, &none, 1, 1, ATT_IMAGE_FILTER_BICUBIC, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "2 x 1 pixels and no memory");
    assert_int_equal(att_image_resize(ctx, &good, 1, 0, ATT_IMAGE_FILTER_BICUBIC, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "the result has 0 x 1 pixels");
    assert_int_equal(att_image_resize(ctx, &good, INT64_MAX, 2, ATT_IMAGE_FILTER_BICUBIC, &out), ATT_ERR_ARGUMENT);
    assert_int_equal(att_image_resize(ctx, &good, INT32_MAX, INT32_MAX, ATT_IMAGE_FILTER_NEAREST, &out),
                     ATT_ERR_MEMORY);
    check_message(ctx, "out of memory for an image of 2147483647 x 2147483647 pixels");
    assert_int_equal(att_image_resize(ctx, &good, 1, 1, (att_image_filter)4, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "filter is 4, which is not an att_image_filter");
    assert_int_equal(att_image_convert(ctx, &good, 4, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "channels is 4, not 1 or 3");
    assert_int_equal(att_image_encode_png(ctx, &flat, &png), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_image_encode_png: the image has 2 x 0 pixels");
    assert_int_equal(att_image_decode(ctx, "a", pixels, 6, ATT_OPTIONS(att_image_options, .max_pixels = -1), &out),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "max_pixels is -1");
    att_image_free(ctx, NULL);
    att_image_bytes_free(ctx, NULL);
}

/* ---- memory */

static const uint8_t background[] = {200, 30, 90};

/* Decodes, resizes and writes; what was allocated is freed. */
static att_status work(att_ctx *own, const unsigned char *data, size_t bytes)
{
    att_image image, small = {0};
    att_image_bytes png = {0};
    att_status s = att_image_decode(own, "a/picture", data, bytes,
                                    ATT_OPTIONS(att_image_options, .background = background), &image);
    s = s ? s : att_image_resize(own, &image, 5, 7, ATT_IMAGE_FILTER_LANCZOS, &small);
    s = s ? s : att_image_encode_png(own, &small, &png);
    att_image_free(own, &image);
    att_image_free(own, &small);
    att_image_bytes_free(own, &png);
    return s;
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        size_t bytes;
        unsigned char *data = golden_file(i, &bytes);
        att_status s = data ? ATT_ERR_MEMORY : ATT_OK;
        for (long n = 1; s; n++) {
            fail_alloc f = {.fail_at = 0};
            att_ctx *own = fail_open(&f);
            const long live = f.live;
            f.fail_at = f.calls + n;
            s = work(own, data, bytes);
            if (s && s != ATT_ERR_MEMORY)
                fail_msg("%s, allocation %ld: %s: %s", files[i], n, att_status_name(s), att_error(own));
            assert_int_equal(f.live, live);
            att_close(own);
        }
        free(data);
    }
}

/* Those of libjpeg and libwebp. */
static void each_failing_malloc_is_reported(void **state)
{
    (void)state;
    if (!FAIL_MALLOC_WORKS)
        skip();
    for (int i = 0; i < N_FILES; i++) {
        size_t bytes;
        unsigned char *data = golden_file(i, &bytes);
        att_status s = data ? ATT_ERR_MEMORY : ATT_OK;
        for (long n = 1; s; n++) {
            malloc_fails_at(n);
            s = work(ctx, data, bytes);
            malloc_fails_never();
            if (s && s != ATT_ERR_MEMORY)
                fail_msg("%s, malloc %ld: %s: %s", files[i], n, att_status_name(s), att_error(ctx));
            if (malloc_live != 0)
                fail_msg("%s, malloc %ld: %ld blocks live", files[i], n, (long)malloc_live);
        }
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file_or_no_image_is_named),
        cmocka_unit_test(other_formats_are_named),
        cmocka_unit_test(standard_input_is_read_to_its_end),
        cmocka_unit_test(every_truncated_file_is_an_error),
        cmocka_unit_test(a_png_file_that_lacks_only_its_end_is_shown),
        cmocka_unit_test(a_png_file_with_fewer_pixels_than_its_header_says_is_damaged),
        cmocka_unit_test(pixels_are_in_one_place),
        cmocka_unit_test(no_changed_byte_does_harm),
        cmocka_unit_test(tiff_files_that_are_no_pictures_are_named),
        cmocka_unit_test(claimed_sizes_are_refused_before_memory_is_allocated),
        cmocka_unit_test(claimed_chunks_get_no_memory),
        cmocka_unit_test(progressive_files_have_a_limit_of_scans),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(each_failing_allocation_is_reported),
        cmocka_unit_test(each_failing_malloc_is_reported),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
