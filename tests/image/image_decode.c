/* Image files to pixels: each kind of JPEG, PNG and WebP has the pixels that Pillow gives. */
// labels: threads
#include "image/image.h"
#include "fixtures/images.h"
#include "fixtures/png_write.h"

#include "attend_util.h"

#include "fixtures/context.h"

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
    static const char *const names[] = {"444.jpg",
                                        "422.jpg",
                                        "420.jpg",
                                        "progressive.jpg",
                                        "restarts.jpg",
                                        "rgb.jpg",
                                        "gray.jpg",
                                        "cmyk.jpg",
                                        "ycck.jpg",
                                        "one_pixel.jpg",
                                        "gray_progressive.jpg",
                                        "orientation_1.jpg",
                                        "orientation_2.jpg",
                                        "orientation_3.jpg",
                                        "orientation_4.jpg",
                                        "orientation_5.jpg",
                                        "orientation_6.jpg",
                                        "orientation_7.jpg",
                                        "orientation_8.jpg",
                                        NULL};
    (void)state;
    compare(names, false);
}

static const char *const transparent_png[] = {"gray_alpha.png",       "gray_alpha_16.png",   "rgba.png",
                                              "rgba_16.png",          "rgba_interlaced.png", "palette_transparent.png",
                                              "gray_transparent.png", "rgb_transparent.png", NULL};

static void every_kind_of_png_has_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {"gray_1.png",        "gray_2.png",        "gray_4.png",
                                        "gray.png",          "gray_16.png",       "palette_1.png",
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
        check_message(ctx, "built without libwebp");
        print_message("skipped: this build has no libwebp\n");
        skip();
    }
    att_image_free(ctx, &image);
    compare(names, false);
    compare(transparent_webp, false);
    compare(transparent_webp, true);
}

static const char *const transparent_tiff[] = {"gray_alpha.tif", "rgba.tif", "rgba_premultiplied.tif", NULL};

static void every_kind_of_tiff_has_the_pixels_of_pillow(void **state)
{
    static const char *const names[] = {"gray_1.tif",
                                        "gray_2.tif",
                                        "gray_4.tif",
                                        "white_1.tif",
                                        "white_8.tif",
                                        "gray_16.tif",
                                        "gray_16_big_endian.tif",
                                        "strips.tif",
                                        "tiles.tif",
                                        "planes.tif",
                                        "planes_tiles.tif",
                                        "rgb_16.tif",
                                        "palette_1.tif",
                                        "palette_4.tif",
                                        "palette_8.tif",
                                        "cmyk.tif",
                                        "orientation_6.tif",
                                        "pages.tif",
                                        "no_alpha.tif",
                                        "planes_extra.tif",
                                        "lzw.tif",
                                        "group4.tif",
                                        "jpeg.tif",
                                        "ycbcr.tif",
                                        NULL};
    (void)state;
    att_image image;
    if (att_image_open(ctx, GOLDEN_IMAGES "strips.tif", NULL, &image) == ATT_ERR_UNSUPPORTED) {
        check_message(ctx, "built without libtiff");
        print_message("skipped: this build has no libtiff\n");
        skip();
    }
    att_image_free(ctx, &image);
    compare(names, false);
    compare(transparent_tiff, false);
    compare(transparent_tiff, true);
}

/* heif-enc of libheif made it of rgb.png, without loss but for the conversion of colors, which takes 2 levels. */
static void a_heic_photo_is_read_where_the_build_can(void **state)
{
    (void)state;
    att_image image;
    if (att_image_open(ctx, GOLDEN_IMAGES "lossless.heic", NULL, &image) == ATT_ERR_UNSUPPORTED) {
        check_message(ctx, "built without -DATT_HEIF=ON");
        print_message("skipped: this build does not read HEIC\n");
        skip();
    }
    check_image_within(&image, "rgb.png", 2);
    att_image_free(ctx, &image);
}

static void an_opaque_image_does_not_change_over_a_background(void **state)
{
    static const char *const names[] = {"420.jpg", "gray_1.png", "palette_8.png", "rgb_16.png", NULL};
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

/* ---- orientation, as Pillow's getexif has it */

static void put(unsigned char **to, uint64_t x, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++)
        *(*to)++ = (unsigned char)(x >> 8 * (big_endian ? bytes - 1 - i : i));
}

typedef struct exif_value {
    int type;
    uint32_t count;
    int numbers, bytes; /* that are there, of each */
    uint64_t number[3];
    int orientation;
} exif_value;

/* EXIF data of one entry, whose numbers follow it if they do not fit. */
static int read_exif(const exif_value *v, bool big_endian)
{
    unsigned char exif[64] = {0}, *at = exif;
    put(&at, big_endian ? 0x4d4d : 0x4949, 2, false);
    put(&at, 42, 2, big_endian);
    put(&at, 8, 4, big_endian); /* where the directory is */
    put(&at, 1, 2, big_endian);
    put(&at, 274, 2, big_endian);
    put(&at, (uint64_t)v->type, 2, big_endian);
    put(&at, v->count, 4, big_endian);
    if (v->numbers * v->bytes > 4) {
        put(&at, 26, 4, big_endian);
        put(&at, 0, 4, big_endian); /* no further directory */
    }
    for (int i = 0; i < v->numbers; i++)
        put(&at, v->number[i], v->bytes, big_endian);
    return att_exif_orientation((att_byte_view){(const char *)exif, (size_t)(at - exif)});
}

static void orientation_is_read_from_numbers_of_any_type(void **state)
{
    enum { BYTE = 1, ASCII, SHORT, LONG, RATIONAL, SBYTE, UNDEFINED, SSHORT, SLONG, SRATIONAL, FLOAT, DOUBLE, IFD };
    static const exif_value values[] = {
        {SHORT, 1, 1, 2, {6}, 6},
        {LONG, 1, 1, 4, {6}, 6},
        {SBYTE, 1, 1, 1, {6}, 6},
        {SSHORT, 1, 1, 2, {8}, 8},
        {SLONG, 1, 1, 4, {3}, 3},
        {IFD, 1, 1, 4, {5}, 5},
        {16, 1, 1, 8, {6}, 6}, /* a long of 8 bytes */
        {RATIONAL, 1, 2, 4, {12, 2}, 6},
        {RATIONAL, 1, 2, 4, {13, 2}, 1},
        {SRATIONAL, 1, 2, 4, {7, 1}, 7},
        {RATIONAL, 1, 2, 4, {6, 0}, 1},
        {FLOAT, 1, 1, 4, {0x40c00000}, 6},
        {FLOAT, 1, 1, 4, {0x7fc00000}, 1}, /* NaN */
        {DOUBLE, 1, 1, 8, {0x4018000000000000}, 6},
        {SHORT, 2, 2, 2, {6, 1}, 6}, /* the first one counts */
        {SHORT, 3, 3, 2, {6, 1, 1}, 6},
        {SHORT, 0, 1, 2, {6}, 0}, /* 0: it has none */
        {LONG, 1, 1, 4, {65536 + 6}, 1},
        {SLONG, 1, 1, 4, {0xfffffffa}, 1}, /* -6 */
        {SHORT, 1, 1, 2, {9}, 1},
        {SHORT, 1, 1, 2, {0}, 1},
        {BYTE, 1, 1, 1, {6}, 1}, /* bytes and texts, which Pillow does not take as numbers */
        {ASCII, 1, 1, 1, {'6'}, 1},
        {UNDEFINED, 1, 1, 1, {6}, 1},
        {14, 1, 1, 2, {6}, 0},
        {200, 1, 1, 2, {6}, 0},
        {SHORT, UINT32_MAX, 1, 2, {6}, 0},
        {DOUBLE, UINT32_MAX, 1, 8, {6}, 0},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof values / sizeof values[0]; i++) {
        const exif_value *v = &values[i / 2];
        const int is = read_exif(v, i % 2);
        if (is != v->orientation)
            fail_msg("type %d, %s-endian: %d is %d, not %d", v->type, i % 2 ? "big" : "little", (int)v->number[0], is,
                     v->orientation);
    }
}

/* In the entry of the golden file, SHORT becomes LONG. */
static void files_of_each_format_are_turned_by_a_long(void **state)
{
    static const char *const names[] = {"orientation_6.png", "orientation_8.png", "orientation_6.webp",
                                        "orientation_6.jpg", "orientation_7.jpg"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        size_t bytes;
        att_image image;
        snprintf(path, sizeof path, GOLDEN_IMAGES "%s", names[i]);
        unsigned char *data = image_file(path, &bytes), *big = memmem(data, bytes, "\1\x12\0\3", 4),
                      *little = memmem(data, bytes, "\x12\1\3\0", 4);
        if (big) {
            big[3] = 4;
            big[11] = big[9];
            big[9] = 0;
        } else
            little[2] = 4;
        unsigned char *chunk = strstr(path, ".png") ? memmem(data, bytes, "eXIf", 4) : NULL;
        if (chunk)
            png_put_chunk(chunk - 4, "eXIf", chunk + 4, chunk[-1]);
        const att_status s = att_image_decode(ctx, "a", data, bytes, NULL, &image);
        free(data);
        if (s && strstr(att_error(ctx), "built without libwebp"))
            continue;
        assert_int_equal(s, ATT_OK);
        check_image(&image, names[i]);
        att_image_free(ctx, &image);
    }
}

static att_byte_view view(const char *text) { return (att_byte_view){text, strlen(text)}; }

static void xmp_says_the_orientation_in_any_of_its_spellings(void **state)
{
    static const struct {
        const char *xmp;
        int orientation;
    } packets[] = {{"", 0},
                   {"<x/>", 0},
                   {"<a tiff:Orientation=\"6\"/>", 6},
                   {"<a tiff:Orientation='6'/>", 6},
                   {"<a tiff:Orientation = \"6\"/>", 6},
                   {"<a tiff:Orientation\n=\r\n\t'8'/>", 8},
                   {"<tiff:Orientation>6</tiff:Orientation>", 6},
                   {"<tiff:Orientation>\n  3\n</tiff:Orientation>", 3},
                   {"</tiff:Orientation><a tiff:Orientation='5'/>", 5},
                   {"tiff:Orientation=\"a\" tiff:Orientation=\"\" tiff:Orientation tiff:Orientation=\"7\"", 7},
                   {"tiff:Orientation=\"8\" tiff:Orientation=\"6\"", 8},
                   {"tiff:Orientation=\"6", 6}, /* cut off */
                   {"tiff:Orientation=\"", 0},
                   {"tiff:Orientation=", 0},
                   {"tiff:Orientation", 0},
                   {"tiff:Orientation=6", 0},
                   {"exif:Orientation=\"6\"", 0},
                   {"tiff:Orientation=\"0\"", 1}, /* it is there, but no orientation */
                   {"tiff:Orientation=\"9\"", 1},
                   {"tiff:Orientation=\"12\"", 1},
                   {"tiff:Orientation=\"99999999999999999999999999999999\"", 1},
                   {"tiff:Orientation=\"-6\"", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        const int is = att_xmp_orientation(view(packets[i].xmp));
        if (is != packets[i].orientation)
            fail_msg("%s: %d, not %d", packets[i].xmp, is, packets[i].orientation);
    }
    for (int i = 1; i <= 8; i++) {
        char attribute[64], element[64];
        snprintf(attribute, sizeof attribute, "<a tiff:Orientation=\"%d\"/>", i);
        snprintf(element, sizeof element, "<tiff:Orientation>%d</tiff:Orientation>", i);
        assert_int_equal(att_xmp_orientation(view(attribute)), i);
        assert_int_equal(att_xmp_orientation(view(element)), i);
    }
    assert_int_equal(att_xmp_orientation((att_byte_view){0}), 0);
    assert_int_equal(att_image_orientation((att_byte_view){0}, (att_byte_view){0}), 1);
}

/* Checks that the file, data [bytes], is the golden image, and frees data. */
static void check_decoded(unsigned char *data, size_t bytes, const char *what, const char *golden)
{
    att_image image;
    const att_status s = att_image_decode(ctx, what, data, bytes, NULL, &image);
    free(data);
    if (s && strstr(att_error(ctx), "built without libwebp"))
        return;
    if (s)
        fail_msg("%s: %s", what, att_error(ctx));
    check_image(&image, golden);
    att_image_free(ctx, &image);
}

/* A golden JPEG file with a segment of XMP in front of its EXIF data, whose tag of the orientation may be another. */
static void check_jpeg(int exif, bool has_exif, const char *value, const char *golden)
{
    enum { START = 2, NAME = 29, LIMIT = 2048 };
    char path[64], xmp[100];
    size_t bytes;
    snprintf(path, sizeof path, GOLDEN_IMAGES "orientation_%d.jpg", exif);
    const int n = snprintf(xmp, sizeof xmp, "<a tiff:Orientation=\"%s\"/>", value);
    unsigned char *data = image_file(path, &bytes), *out = malloc(LIMIT), *at = out + START;
    unsigned char *tag = memmem(data, bytes, exif % 2 ? "\1\x12\0\3" : "\x12\1\3\0", 4);
    assert_non_null(out);
    assert_non_null(tag);
    if (!has_exif)
        tag[exif % 2] = 0x13;
    memcpy(out, data, START);
    put(&at, 0xffe1, 2, true);
    put(&at, (uint64_t)(2 + NAME + n), 2, true);
    memcpy(at, "http://ns.adobe.com/xap/1.0/", NAME);
    memcpy(at + NAME, xmp, (size_t)n);
    memcpy(at + NAME + n, data + START, bytes - START);
    free(data);
    check_decoded(out, (size_t)(at - out) + NAME + (size_t)n + bytes - START, xmp, golden);
}

static void jpeg_is_turned_by_xmp_where_exif_has_no_orientation(void **state)
{
    (void)state;
    for (int i = 1; i <= 8; i++) {
        char value[2] = {(char)('0' + i)}, golden[32];
        snprintf(golden, sizeof golden, "orientation_%d.jpg", i);
        check_jpeg(9 - i, false, value, golden);
        check_jpeg(i, true, i == 6 ? "3" : "6", golden); /* EXIF counts, 1 too */
    }
    check_jpeg(6, false, "0", "orientation_1.jpg");
    check_jpeg(6, false, "9", "orientation_1.jpg");
}

/* Its EXIF data, the last chunk, becomes XMP, or XMP follows it. */
static void webp_is_turned_by_xmp_where_exif_has_no_orientation(void **state)
{
    static const char xmp[] = "<tiff:Orientation>6</tiff:Orientation>"; /* with its zero byte an odd number */
    (void)state;
    for (int with_exif = 0; with_exif < 2; with_exif++) {
        size_t bytes;
        unsigned char *data = image_file(GOLDEN_IMAGES "orientation_6.webp", &bytes);
        unsigned char *exif = memmem(data, bytes, "EXIF", 4), *out = calloc(bytes + 100, 1);
        assert_non_null(exif);
        assert_non_null(out);
        const size_t before = with_exif ? bytes : (size_t)(exif - data);
        memcpy(out, data, before);
        unsigned char *at = out + before, *size = out + 4;
        put(&at, 0x20504d58, 4, false);
        put(&at, sizeof xmp, 4, false);
        memcpy(at, with_exif ? "<tiff:Orientation>3</tiff:Orientation>" : xmp, sizeof xmp);
        const size_t all = (size_t)(at - out) + sizeof xmp + sizeof xmp % 2;
        put(&size, all - 8, 4, false);
        free(data);
        check_decoded(out, all, with_exif ? "both" : "XMP", "orientation_6.webp");
    }
}

/* ---- texts of PNG */

typedef struct png_text {
    const char *name, *keyword; /* of the chunk, of the text; after which are: */
    const char *head;           /* [head_bytes] */
    size_t head_bytes;
    const char *text;
    bool packed, exif; /* the text; there is a chunk eXIf, too */
    int orientation;   /* 6 or 8, which golden files have; 1 */
} png_text;

/* Writes the chunk; returns its end. */
static unsigned char *put_text(unsigned char *at, const png_text *t)
{
    unsigned char data[1024], *end = data;
    uLongf packed = sizeof data / 2;
    memcpy(end, t->keyword, strlen(t->keyword) + 1);
    end += strlen(t->keyword) + 1;
    memcpy(end, t->head, t->head_bytes);
    end += t->head_bytes;
    if (t->packed)
        assert_int_equal(compress(end, &packed, (const Bytef *)t->text, strlen(t->text)), Z_OK);
    else
        memcpy(end, t->text, packed = strlen(t->text));
    return png_put_chunk(at, t->name, data, (size_t)(end - data) + packed);
}

/* A golden file with the text behind its header; without eXIf, if the text has none beside it. */
static void check_png(const png_text *t)
{
    enum { HEADER = 33, LIMIT = 4096 };
    static const char *const goldens[] = {[1] = "rgb.png", [6] = "orientation_6.png", [8] = "orientation_8.png"};
    size_t bytes;
    unsigned char *data = image_file(t->exif ? GOLDEN_IMAGES "orientation_8.png" : GOLDEN_IMAGES "rgb.png", &bytes);
    unsigned char *out = malloc(LIMIT);
    assert_non_null(out);
    memcpy(out, data, HEADER);
    unsigned char *at = put_text(out + HEADER, t);
    memcpy(at, data + HEADER, bytes - HEADER);
    free(data);
    check_decoded(out, (size_t)(at - out) + bytes - HEADER, t->text, goldens[t->orientation]);
}

#define XMP_KEYWORD "XML:com.adobe.xmp"
#define XMP_6 "<a tiff:Orientation=\"6\"/>"
#define EXIF_6 "4d4d002a00000008\n000101120003\n00000001000600000000"
#define HEAD(bytes) bytes, sizeof bytes - 1

static void png_is_turned_by_its_texts_where_it_has_no_exif(void **state)
{
    static const png_text texts[] = {
        {"iTXt", XMP_KEYWORD, HEAD("\0\0\0\0"), XMP_6, .orientation = 6},
        {"iTXt", XMP_KEYWORD, HEAD("\0\0en\0key\0"), XMP_6, .orientation = 6},
        {"iTXt", XMP_KEYWORD, HEAD("\1\0en\0key\0"), XMP_6, .packed = true, .orientation = 6},
        {"iTXt", XMP_KEYWORD, HEAD("\1\1\0\0"), XMP_6, .packed = true, .orientation = 1}, /* another method */
        {"iTXt", XMP_KEYWORD, HEAD("\1\0\0\0"), XMP_6, .orientation = 1},                 /* not packed */
        {"iTXt", XMP_KEYWORD, HEAD("\0\0"), "no end", .orientation = 1},
        {"iTXt", XMP_KEYWORD, HEAD(""), "", .orientation = 1},
        {"tEXt", XMP_KEYWORD, HEAD(""), "<tiff:Orientation>8</tiff:Orientation>", .orientation = 8},
        {"zTXt", XMP_KEYWORD, HEAD("\0"), XMP_6, .packed = true, .orientation = 6},
        {"zTXt", XMP_KEYWORD, HEAD(""), "", .orientation = 1},
        {"tEXt", "Comment", HEAD(""), XMP_6, .orientation = 1},
        {"tEXt", XMP_KEYWORD, HEAD(""), XMP_6, .exif = true, .orientation = 8}, /* EXIF counts */
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n      26\n" EXIF_6 "\n", .orientation = 6},
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n      32\n457869660000" EXIF_6, .orientation = 6},
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n32\n4578696600004D4D002A00000008000101120003000000010006",
         .orientation = 6},
        {"zTXt", "Raw profile type exif", HEAD("\0"), "\nexif\n 26\n" EXIF_6, .packed = true, .orientation = 6},
        {"iTXt", "Raw profile type exif", HEAD("\1\0\0\0"), "\nexif\n 26\n" EXIF_6, .packed = true, .orientation = 6},
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n 26\n" EXIF_6, .exif = true, .orientation = 8},
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n", .orientation = 1},
        {"tEXt", "Raw profile type exif", HEAD(""), "\nexif\n4294967295\nzz", .orientation = 1},
        {"tEXt", "Raw profile type APP1", HEAD(""), "\nAPP1\n 32\n457869660000" EXIF_6, .orientation = 6},
        {"zTXt", "Raw profile type APP1", HEAD("\0"),
         "\nAPP1\n 54\n687474703a2f2f6e732e61646f62652e636f6d2f7861702f312e302f00" /* the name of XMP in JPEG */
         "746966663a4f7269656e746174696f6e3d2236223e",
         .packed = true, .orientation = 6},
        {"tEXt", "Raw profile type xmp", HEAD(""), "\nxmp\n 21\n746966663a4f7269656e746174696f6e3d2236223e",
         .orientation = 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_png(&texts[i]);
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
        cmocka_unit_test(every_kind_of_tiff_has_the_pixels_of_pillow),
        cmocka_unit_test(a_heic_photo_is_read_where_the_build_can),
        cmocka_unit_test(an_opaque_image_does_not_change_over_a_background),
        cmocka_unit_test(orientation_is_ignored_if_wanted),
        cmocka_unit_test(orientation_is_read_from_numbers_of_any_type),
        cmocka_unit_test(files_of_each_format_are_turned_by_a_long),
        cmocka_unit_test(xmp_says_the_orientation_in_any_of_its_spellings),
        cmocka_unit_test(jpeg_is_turned_by_xmp_where_exif_has_no_orientation),
        cmocka_unit_test(webp_is_turned_by_xmp_where_exif_has_no_orientation),
        cmocka_unit_test(png_is_turned_by_its_texts_where_it_has_no_exif),
        cmocka_unit_test(many_threads_may_decode_at_once),
        cmocka_unit_test(a_png_that_was_written_has_the_same_pixels),
        cmocka_unit_test(names_of_images_are_known_by_their_end),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
