/* Reads the first page of TIFF files with libtiff, if the build has it. Samples are unpacked here, not by libtiff's
 * RGBA interface, so that pixels are those of Pillow. */
#include "image/image.h"
#include "util/util.h"

#include <errno.h>
#include <string.h>

#ifdef ATT_TIFF
#include <stdio.h>
#include <tiffio.h>

/* The fields with which raw photos of cameras differ from TIFF files that have an image */
enum { DNG_VERSION = 50706 };
/* Samples of a pixel that are used: up to four colors, and alpha */
enum { MAX_COLORS = 4, MAX_SAMPLES = MAX_COLORS + 1 };

typedef enum kind { GRAY, PALETTE, RGB, CMYK, RGBA_BY_LIBTIFF } kind;

typedef struct reader {
    const att_image_file *file;
    att_image *out;
    uint64_t at; /* of the next byte that is read */
    TIFF *tiff;
    char why[256]; /* libtiff's first error, */
    int number;    /* and its errno */
    uint32_t width, height;
    uint16_t bits, samples, photometric, planes, compression;
    uint16_t *map[3]; /* of a palette */
    kind kind;
    int colors; /* samples of a color */
    int used;   /* these, and alpha if there is one */
    bool alpha, premultiplied;
} reader;

/* ---- the file in memory */

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t n)
{
    reader *r = handle;
    const uint64_t rest = r->at < r->file->bytes ? r->file->bytes - r->at : 0;
    const size_t bytes = (uint64_t)n < rest ? (size_t)n : (size_t)rest;
    if (bytes)
        memcpy(to, r->file->data + r->at, bytes);
    r->at += bytes;
    return (tmsize_t)bytes;
}

static tmsize_t write_nothing(thandle_t handle, void *from, tmsize_t n)
{
    (void)handle, (void)from, (void)n;
    return 0;
}

static toff_t seek(thandle_t handle, toff_t to, int whence)
{
    reader *r = handle;
    r->at = whence == SEEK_CUR ? r->at + to : whence == SEEK_END ? r->file->bytes + to : to;
    return r->at;
}

static int close_nothing(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) { return ((const reader *)handle)->file->bytes; }

static int map_bytes(thandle_t handle, void **base, toff_t *size)
{
    const reader *r = handle;
    *base = (void *)(uintptr_t)r->file->data; /* libtiff does not change it */
    *size = r->file->bytes;
    return 1;
}

static void unmap_nothing(thandle_t handle, void *base, toff_t size) { (void)handle, (void)base, (void)size; }

/* ---- errors */

static int keep_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    reader *r = user;
    (void)tiff, (void)module;
    if (!*r->why) {
        r->number = errno;
        vsnprintf(r->why, sizeof r->why, format, args);
    }
    return 1;
}

static int ignore_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    (void)tiff, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

/* Fails after a function of libtiff, before which errno was 0. */
static att_status damaged(const reader *r)
{
    if ((*r->why ? r->number : errno) == ENOMEM)
        return att_fail(r->file->ctx, ATT_ERR_MEMORY, "%s: out of memory", r->file->label);
    return att_fail(r->file->ctx, ATT_ERR_FORMAT, "%s: the TIFF file is damaged: %s", r->file->label,
                    *r->why ? r->why : "its pixels cannot be read");
}

static att_status unsupported(const reader *r, const char *what, int value, const char *instead)
{
    return att_fail(r->file->ctx, ATT_ERR_UNSUPPORTED, "%s: the TIFF file has %s %d, which is not supported; %s",
                    r->file->label, what, value, instead);
}

/* ---- the header */

/* Returns the value of a field of 16 bits, or its default. */
static uint16_t field(const reader *r, uint32_t tag)
{
    uint16_t value = 0;
    TIFFGetFieldDefaulted(r->tiff, tag, &value);
    return value;
}

/* Refuses raw photos of cameras, which begin with a small preview. */
static att_status refuse_raw(const reader *r)
{
    uint32_t type = 0;
    uint16_t count;
    const void *version;
    TIFFGetField(r->tiff, TIFFTAG_SUBFILETYPE, &type);
    const bool raw = (type & FILETYPE_REDUCEDIMAGE) || TIFFGetField(r->tiff, DNG_VERSION, &count, &version) ||
                     (r->file->bytes > 10 && !memcmp(r->file->data + 8, "CR", 2));
    return raw ? att_fail(
                     r->file->ctx, ATT_ERR_UNSUPPORTED,
                     "%s: the first page of the TIFF file is a preview, as in raw photos of cameras; develop it to "
                     "JPEG, PNG or TIFF first",
                     r->file->label)
               : ATT_OK;
}

/* Sets alpha, if the first extra sample is that. */
static void find_alpha(reader *r)
{
    uint16_t n = 0, *types = NULL;
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_EXTRASAMPLES, &n, &types);
    r->alpha = r->samples > r->colors && n > 0 && types &&
               (types[0] == EXTRASAMPLE_UNASSALPHA || types[0] == EXTRASAMPLE_ASSOCALPHA);
    r->premultiplied = r->alpha && types[0] == EXTRASAMPLE_ASSOCALPHA;
    r->used = r->colors + r->alpha;
}

/* Returns whether a field has no memory: libtiff reports no error of that, and would use it. */
static bool lacks_memory(const reader *r)
{
    uint32_t bytes = 0;
    const void *tables = NULL;
    const bool has = r->compression == COMPRESSION_JPEG && TIFFGetField(r->tiff, TIFFTAG_JPEGTABLES, &bytes, &tables);
    return (has && bytes > 0 && !tables) || (r->kind == PALETTE && (!r->map[0] || !r->map[1] || !r->map[2]));
}

/* Finds what the samples of a pixel are. */
static att_status find_kind(reader *r)
{
    static const struct {
        uint16_t photometric;
        kind kind;
        int colors;
    } kinds[] = {{PHOTOMETRIC_MINISWHITE, GRAY, 1}, {PHOTOMETRIC_MINISBLACK, GRAY, 1}, {PHOTOMETRIC_RGB, RGB, 3},
                 {PHOTOMETRIC_PALETTE, PALETTE, 1}, {PHOTOMETRIC_SEPARATED, CMYK, 4},  {PHOTOMETRIC_YCBCR, RGB, 3}};
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && kinds[i].photometric != r->photometric)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return unsupported(r, "the colors (PhotometricInterpretation)", r->photometric,
                           "gray, RGB, palettes, CMYK and YCbCr are");
    r->kind = kinds[i].kind;
    r->colors = kinds[i].colors;
    if (r->photometric == PHOTOMETRIC_YCBCR && r->compression == COMPRESSION_JPEG)
        TIFFSetField(r->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    else if (r->photometric == PHOTOMETRIC_YCBCR || r->compression == COMPRESSION_OJPEG)
        r->kind = RGBA_BY_LIBTIFF;
    if (r->kind == PALETTE && !TIFFGetField(r->tiff, TIFFTAG_COLORMAP, &r->map[0], &r->map[1], &r->map[2]))
        return att_fail(r->file->ctx, ATT_ERR_FORMAT, "%s: the TIFF file is damaged: it has no colors of its palette",
                        r->file->label);
    if (r->samples < r->colors)
        return att_fail(r->file->ctx, ATT_ERR_FORMAT,
                        "%s: the TIFF file is damaged: its pixels have %d samples, but its colors %d", r->file->label,
                        r->samples, r->colors);
    if (r->kind == PALETTE && r->bits > 8)
        return unsupported(r, "a palette of bits:", r->bits, "1, 2, 4 and 8 are");
    if (lacks_memory(r))
        return att_fail(r->file->ctx, ATT_ERR_MEMORY, "%s: out of memory", r->file->label);
    find_alpha(r);
    return ATT_OK;
}

static att_status read_header(reader *r)
{
    r->bits = field(r, TIFFTAG_BITSPERSAMPLE);
    r->samples = field(r, TIFFTAG_SAMPLESPERPIXEL);
    r->planes = field(r, TIFFTAG_PLANARCONFIG);
    r->compression = field(r, TIFFTAG_COMPRESSION);
    const uint16_t format = field(r, TIFFTAG_SAMPLEFORMAT);
    if (!TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &r->width) ||
        !TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &r->height) ||
        !TIFFGetField(r->tiff, TIFFTAG_PHOTOMETRIC, &r->photometric) || !r->width || !r->height)
        return damaged(r);
    if (r->bits != 1 && r->bits != 2 && r->bits != 4 && r->bits != 8 && r->bits != 16)
        return unsupported(r, "samples of bits:", r->bits, "1, 2, 4, 8 and 16 are");
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
        return unsupported(r, "samples of another format (SampleFormat)", format, "unsigned integers, 1, are");
    if (!TIFFIsCODECConfigured(r->compression))
        return unsupported(r, "the compression", r->compression, "libtiff was built without it");
    const att_status s = refuse_raw(r);
    return s ? s : find_kind(r);
}

/* ---- samples */

/* Returns sample i of a row, reduced to its upper 8 bits if it has 16. */
static uint8_t sample(const uint8_t *row, int64_t i, int bits)
{
    uint16_t wide;
    if (bits == 8)
        return row[i];
    if (bits < 8)
        return (uint8_t)(row[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1 << bits) - 1));
    memcpy(&wide, row + 2 * i, sizeof wide); /* libtiff has put its bytes into the order of this machine */
    return (uint8_t)(wide >> 8);
}

/* Copies the used samples of n pixels of a row, which has `stride` samples a pixel, to the samples `first` to first +
 * count - 1 of to [n, r->used]. */
static void unpack(const reader *r, const uint8_t *row, int64_t n, int64_t stride, int first, int count, uint8_t *to)
{
    for (int64_t x = 0; x < n; x++)
        for (int c = 0; c < count; c++)
            to[x * r->used + first + c] = sample(row, x * stride + c, r->bits);
}

/* Converts the color of a pixel; of fewer than 8 bits the largest number is 255. */
static void color_of(const reader *r, const uint8_t *s, uint8_t rgb[3])
{
    const int highest = r->bits < 8 ? (1 << r->bits) - 1 : 255;
    const int inverted = r->photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
    if (r->kind == CMYK) {
        att_cmyk_to_rgb(s, rgb);
        return;
    }
    for (int c = 0; c < 3; c++)
        rgb[c] = r->kind == PALETTE ? (uint8_t)(r->map[c][s[0]] >> 8)
                                    : (uint8_t)(s[r->kind == RGB ? c : 0] * 255 / highest ^ inverted);
}

/* Converts samples of n pixels [n, r->used] to pixels of the image. */
static void convert(const reader *r, const uint8_t *samples, int64_t n, uint8_t *to)
{
    const int channels = (int)r->out->channels;
    for (int64_t x = 0; x < n; x++, samples += r->used, to += channels) {
        uint8_t rgb[3];
        const uint8_t alpha = r->alpha ? samples[r->colors] : 255;
        color_of(r, samples, rgb);
        for (int c = 0; c < 3; c++)
            to[c] = !r->premultiplied || alpha == 255 || !alpha
                        ? rgb[c]
                        : (uint8_t)att_min(255, 255 * (int64_t)rgb[c] / alpha); /* Pillow's RGBa to RGBA */
        if (channels == 4)
            to[3] = alpha;
    }
}

/* ---- strips and tiles */

/* A part of the image that is decoded at once: a row, or a tile. */
typedef struct part {
    uint8_t *bytes;         /* as libtiff decodes it */
    tmsize_t size;          /* of bytes */
    tmsize_t row_bytes;     /* of one of its rows */
    uint32_t height, width; /* of a part; at the edges of the image it may have fewer pixels */
    uint8_t *samples;       /* [width, r->used], or of the whole image if its planes are separate */
    bool tiled, separate;
} part;

/* Decodes a part that begins at (y, x), of a plane. */
static att_status decode_part(reader *r, const part *p, uint32_t y, uint32_t x, int plane)
{
    errno = 0;
    const tmsize_t got = p->tiled ? TIFFReadTile(r->tiff, p->bytes, x, y, 0, (uint16_t)plane)
                                  : TIFFReadScanline(r->tiff, p->bytes, y, (uint16_t)plane);
    return got < 0 || *r->why ? damaged(r) : ATT_OK;
}

/* Moves the samples of a decoded part to the image, or to the samples of all planes. */
static void store_part(const reader *r, const part *p, uint32_t y, uint32_t x, int plane)
{
    const uint32_t rows = (uint32_t)att_min(p->height, r->height - y),
                   columns = (uint32_t)att_min(p->width, r->width - x);
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *row = p->bytes + (int64_t)i * p->row_bytes;
        const int64_t at = (int64_t)(y + i) * r->width + x;
        if (p->separate) {
            unpack(r, row, columns, 1, plane, 1, p->samples + at * r->used);
            continue;
        }
        unpack(r, row, columns, r->samples, 0, r->used, p->samples);
        convert(r, p->samples, columns, r->out->pixels + at * r->out->channels);
    }
}

static att_status decode_parts(reader *r, const part *p)
{
    const int planes = p->separate ? r->used : 1;
    att_status s = ATT_OK;
    for (int plane = 0; !s && plane < planes; plane++)
        for (uint32_t y = 0; !s && y < r->height; y += (uint32_t)att_min(p->height, r->height - y))
            for (uint32_t x = 0; !s && x < r->width; x += (uint32_t)att_min(p->width, r->width - x)) {
                s = att_cancelled(r->file->ctx)
                        ? att_fail(r->file->ctx, ATT_ERR_CANCELLED, "%s: cancelled", r->file->label)
                        : decode_part(r, p, y, x, plane);
                if (!s)
                    store_part(r, p, y, x, plane);
            }
    if (!s && p->separate)
        convert(r, p->samples, (int64_t)r->height * r->width, r->out->pixels);
    return s;
}

/* Describes the parts. Error: sizes that do not fit the header. */
static att_status find_parts(reader *r, part *p)
{
    *p = (part){.tiled = TIFFIsTiled(r->tiff), .height = 1, .width = r->width};
    p->separate = r->planes == PLANARCONFIG_SEPARATE && r->samples > 1;
    errno = 0;
    if (*r->why) /* libtiff's state is not defined after an error */
        return damaged(r);
    if (p->tiled && (!TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &p->width) ||
                     !TIFFGetField(r->tiff, TIFFTAG_TILELENGTH, &p->height)))
        return damaged(r);
    p->size = p->tiled ? TIFFTileSize(r->tiff) : TIFFScanlineSize(r->tiff);
    p->row_bytes = p->tiled ? TIFFTileRowSize(r->tiff) : p->size;
    const int64_t samples = (int64_t)p->width * (r->planes == PLANARCONFIG_SEPARATE ? 1 : r->samples);
    if (*r->why || p->size < 1 || !p->width || !p->height || p->row_bytes < att_ceil_div(samples * r->bits, 8) ||
        p->size / p->row_bytes < p->height)
        return damaged(r);
    return ATT_OK;
}

/* Decodes by parts, whose samples are unpacked here. */
static att_status decode_samples(reader *r)
{
    att_ctx *ctx = r->file->ctx;
    part p;
    att_status s = find_parts(r, &p);
    if (s)
        return s;
    const int64_t pixels = p.separate ? (int64_t)r->height * r->width : p.width, besides = p.size + pixels * r->used;
    s = att_image_file_alloc(r->file, r->height, r->width, r->file->options.background ? 4 : 3, besides, r->out);
    if (s)
        return s;
    p.bytes = att_alloc(ctx, (size_t)p.size, 1);
    p.samples = att_alloc(ctx, (size_t)pixels, (size_t)r->used);
    s = p.bytes && p.samples ? decode_parts(r, &p) : ATT_ERR_MEMORY;
    att_free(ctx, p.samples);
    att_free(ctx, p.bytes);
    return s;
}

/* Decodes all pixels by libtiff's own conversion, as Pillow does for the kinds of YCbCr that JPEG does not convert. */
static att_status decode_by_libtiff(reader *r)
{
    att_ctx *ctx = r->file->ctx;
    const int64_t pixels = (int64_t)r->height * r->width;
    const int channels = r->file->options.background ? 4 : 3;
    att_status s = att_image_file_alloc(r->file, r->height, r->width, channels,
                                        pixels <= INT64_MAX / 8 ? 4 * pixels : INT64_MAX / 2, r->out);
    uint32_t *raster = s ? NULL : att_alloc(ctx, (size_t)pixels, sizeof *raster);
    if (s || !raster)
        return s ? s : ATT_ERR_MEMORY;
    errno = 0;
    if (*r->why || !TIFFReadRGBAImageOriented(r->tiff, r->width, r->height, raster, field(r, TIFFTAG_ORIENTATION), 1) ||
        *r->why)
        s = damaged(r);
    for (int64_t i = 0; !s && i < pixels; i++) {
        uint8_t *to = r->out->pixels + i * channels;
        to[0] = (uint8_t)TIFFGetR(raster[i]);
        to[1] = (uint8_t)TIFFGetG(raster[i]);
        to[2] = (uint8_t)TIFFGetB(raster[i]);
        if (channels == 4)
            to[3] = (uint8_t)TIFFGetA(raster[i]);
    }
    att_free(ctx, raster);
    return s;
}

/* ---- a file */

/* Opens the first page. Blocks of libtiff's own memory have the limit of the image's. */
static TIFF *open_tiff(reader *r)
{
    enum { BYTES = 2 * 3, CONSTANT = 1 << 20 };
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (!o)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, (tmsize_t)att_min(r->file->options.max_pixels, PTRDIFF_MAX / 16) * BYTES +
                                               CONSTANT);
    TIFFOpenOptionsSetErrorHandlerExtR(o, keep_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(o, ignore_warning, r);
    TIFF *t = TIFFClientOpenExt(r->file->label, "r", r, read_bytes, write_nothing, seek, close_nothing, size_of,
                                map_bytes, unmap_nothing, o);
    TIFFOpenOptionsFree(o);
    return t;
}

att_status att_tiff_decode(const att_image_file *f, att_image *out, int *orientation)
{
    reader r = {.file = f, .out = out};
    errno = 0;
    r.tiff = open_tiff(&r);
    if (!r.tiff)
        return damaged(&r);
    errno = 0;
    att_status s = read_header(&r);
    if (!s && !TIFFLastDirectory(r.tiff))
        att_note(f->ctx, "a TIFF file has several pages; only the first is read");
    if (!s)
        s = r.kind == RGBA_BY_LIBTIFF ? decode_by_libtiff(&r) : decode_samples(&r);
    const uint16_t stored = field(&r, TIFFTAG_ORIENTATION);
    *orientation = stored >= 1 && stored <= 8 ? stored : 1;
    TIFFClose(r.tiff);
    if (!s && f->options.background)
        att_image_composite(out, f->options.background);
    return s;
}

#else

att_status att_tiff_decode(const att_image_file *f, att_image *out, int *orientation)
{
    (void)out, (void)orientation;
    return att_fail(
        f->ctx, ATT_ERR_UNSUPPORTED,
        "%s is a TIFF file, which this build of attend cannot read: it was built without libtiff 4.5 or newer",
        f->label);
}

#endif
