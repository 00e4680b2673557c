/* Reads images from files: finds the format, checks limits, applies the orientation. */
#include "image/image.h"
#include "io/content.h"
#include "io/file.h"
#include "util/util.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_PIXELS = 1 << 27, MAX_BYTES = 1 << 30 };

/* ---- formats, by the bytes that files begin with */

static const struct {
    size_t at, bytes;
    const char *magic, *name;
    att_image_decoder decode; /* NULL: not supported */
} formats[] = {
    {0, 3, "\xff\xd8\xff", "JPEG", att_jpeg_decode},
    {0, 8, "\x89PNG\r\n\x1a\n", "PNG", att_png_decode},
    {8, 4, "WEBP", "WebP", att_webp_decode},
    {0, 4, "GIF8", "GIF", NULL},
    {4, 8, "ftypavif", "AVIF", NULL},
    {4, 8, "ftypavis", "AVIF", NULL},
    {4, 7, "ftypmif", "HEIC or AVIF", NULL},
    {4, 8, "ftypmsf1", "HEIC or AVIF", NULL},
    {4, 7, "ftyphei", "HEIC", att_heif_decode},
    {4, 7, "ftyphev", "HEIC", att_heif_decode},
    {0, 4, "II*\0", "TIFF", att_tiff_decode},
    {0, 4, "MM\0*", "TIFF", att_tiff_decode},
    {0, 4, "II+\0", "TIFF", att_tiff_decode}, /* BigTIFF */
    {0, 4, "MM\0+", "TIFF", att_tiff_decode},
    {0, 2, "BM", "BMP", NULL},
    {0, 2, "\xff\x0a", "JPEG XL", NULL},
    {4, 4, "JXL ", "JPEG XL", NULL},
    {4, 4, "jP  ", "JPEG 2000", NULL},
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static int find_format(const uint8_t *data, size_t bytes)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (bytes >= formats[i].at + formats[i].bytes &&
            !memcmp(data + formats[i].at, formats[i].magic, formats[i].bytes))
            return i;
    return -1;
}

bool att_image_begins_as_one(const uint8_t *data, size_t bytes)
{
    const int i = find_format(data, bytes);
    return i >= 0 && formats[i].decode && strcmp(formats[i].name, "TIFF") != 0 && strcmp(formats[i].name, "HEIC") != 0;
}

#ifdef ATT_WEBP
#define AND_WEBP ", WebP"
#else
#define AND_WEBP ""
#endif
#ifdef ATT_HEIF
#define AND_HEIF ", HEIC"
#else
#define AND_HEIF ""
#endif
#ifdef ATT_TIFF
#define SUPPORTED "JPEG, PNG" AND_WEBP AND_HEIF " and TIFF"
#else
#define SUPPORTED "JPEG" AND_WEBP AND_HEIF " and PNG"
#endif

static att_status refused(const att_image_file *f, int format)
{
    if (f->bytes == 0)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s is empty", f->label);
    const att_status s = att_refuse_pointer(f->ctx, f->label, f->data, f->bytes);
    const att_content content = att_content_of(f->data, f->bytes);
    if (s)
        return s;
    if (format < 0 && *content.text)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s is not an image: it is %s", f->label, content.text);
    if (format < 0)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s is not an image: it does not begin as " SUPPORTED " files do",
                        f->label);
    return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: %s files are not supported; " SUPPORTED " are", f->label,
                    formats[format].name);
}

/* ---- for the decoders */

/* Returns the limit of memory. An image may be in memory twice: as stored and upright, or as the coefficients of its
 * format and as pixels. */
static int64_t max_bytes(const att_image_file *f)
{
    enum { BYTES = 2 * 3, CONSTANT = 1 << 20 };
    const int64_t pixels = att_min(f->options.max_pixels, INT64_MAX / BYTES - CONSTANT);
    return pixels * BYTES + CONSTANT;
}

att_status att_image_file_check(const att_image_file *f, const att_image *image, int64_t besides)
{
    const int64_t max = max_bytes(f), bytes = image->height * image->width * image->channels;
    if (bytes <= max && besides <= max - bytes)
        return ATT_OK;
    return att_fail(
        f->ctx, ATT_ERR_UNSUPPORTED,
        "%s: to read its %lld x %lld pixels needs %.1f MB of memory at once, the maximum is %.1f MB, by the "
        "limit of %lld pixels",
        f->label, (long long)image->width, (long long)image->height, ((double)bytes + (double)besides) / 1e6,
        (double)max / 1e6, (long long)f->options.max_pixels);
}

att_status att_image_file_alloc(const att_image_file *f, int64_t height, int64_t width, int64_t channels,
                                int64_t besides, att_image *out)
{
    if (height > f->options.max_pixels / width)
        return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s has %lld x %lld pixels, the maximum is %lld in all", f->label,
                        (long long)width, (long long)height, (long long)f->options.max_pixels);
    const att_status s = att_image_file_check(f, &(att_image){height, width, channels, NULL}, besides);
    return s ? s : att_image_alloc(f->ctx, height, width, channels, out);
}

att_status att_image_truncated(const att_image_file *f, const char *format)
{
    return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the %s file is truncated", f->label, format);
}

/* ---- decoding */

static att_status set_options(const char *function, att_image_file *f, const att_image_options *options)
{
    if (att_options_read(&f->options, sizeof f->options, options, "att_image_options"))
        return ATT_ERR_ARGUMENT;
    if (f->options.max_pixels < 0)
        return att_fail(f->ctx, ATT_ERR_ARGUMENT, "%s: max_pixels is %lld", function, (long long)f->options.max_pixels);
    if (f->options.max_pixels == 0)
        f->options.max_pixels = MAX_PIXELS;
    return ATT_OK;
}

/* Turns the image upright. Meanwhile it is in memory twice; an image over a background also has memory for alpha. */
static att_status orient(const att_image_file *f, att_image *out, int orientation)
{
    const int64_t channels = f->options.background ? 4 : 3;
    const att_status s = att_image_file_check(f, out, out->height * out->width * channels);
    return s ? s : att_image_orient(f->ctx, out, orientation);
}

static att_status decode(const att_image_file *f, att_image *out)
{
    const int format = find_format(f->data, f->bytes);
    int orientation = 1;
    if (format < 0 || !formats[format].decode)
        return refused(f, format);
    att_status s = formats[format].decode(f, out, &orientation);
    if (!s && !f->options.ignore_orientation && orientation != 1)
        s = orient(f, out, orientation);
    if (s)
        att_image_free(f->ctx, out);
    return s;
}

att_status att_image_decode(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                            const att_image_options *options, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"label", label}, {"data", data}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_image_file f = {.ctx = ctx, .label = label, .data = data, .bytes = bytes};
    const att_status s = set_options(__func__, &f, options);
    return s ? s : decode(&f, out);
}

/* ---- files */

static att_status too_large(const att_bytes *to, const char *label)
{
    return att_fail(to->ctx, ATT_ERR_UNSUPPORTED, "%s has more than %d bytes", label, MAX_BYTES);
}

enum { STEP = 1 << 16 }; /* bytes read at once */

static att_status read_all(int fd, const char *label, att_bytes *to)
{
    for (ssize_t n = 1; n != 0;) {
        if (!att_bytes_reserve(to, STEP))
            return to->status;
        n = read(fd, to->data + to->count, STEP);
        if (n < 0 && errno != EINTR)
            return att_fail(to->ctx, ATT_ERR_IO, "%s: %s", label, strerror(errno));
        to->count += n > 0 ? (size_t)n : 0;
        if (to->count > MAX_BYTES)
            return too_large(to, label);
    }
    return ATT_OK;
}

static att_status read_file(const char *path, att_bytes *to)
{
    struct stat is;
    const int fd = att_open_file(path, &is);
    if (fd < 0)
        return att_fail(to->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
    att_status s = ATT_OK;
    if (!S_ISREG(is.st_mode))
        s = att_fail(to->ctx, ATT_ERR_IO, "%s is not a file", path);
    else if (is.st_size > MAX_BYTES)
        s = too_large(to, path);
    else if (!att_bytes_reserve(to, (size_t)is.st_size + STEP)) /* at once, with room for finding the end */
        s = to->status;
    s = s ? s : read_all(fd, path, to);
    close(fd);
    return s;
}

att_status att_image_open(att_ctx *ctx, const char *path, const att_image_options *options, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const bool standard_input = !strcmp(path, "-");
    att_image_file f = {.ctx = ctx, .label = standard_input ? "standard input" : path};
    att_bytes content = {.ctx = ctx};
    att_status s = set_options(__func__, &f, options);
    if (!s)
        s = standard_input ? read_all(STDIN_FILENO, f.label, &content) : read_file(path, &content);
    f.data = (const uint8_t *)content.data;
    f.bytes = content.count;
    s = s ? s : decode(&f, out);
    att_bytes_free(&content);
    return s;
}

bool att_image_has_name(const char *path)
{
    static const char *const suffixes[] = {".jpg",  ".jpeg", ".png", ".webp", ".tif", ".tiff",
#ifdef ATT_HEIF
                                           ".heic", ".heif"
#endif
    };
    const char *dot = path ? strrchr(path, '.') : NULL;
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (!strcasecmp(dot, suffixes[i]))
            return true;
    return false;
}
