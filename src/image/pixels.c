/* Makes, frees, checks, rearranges and converts images in memory. */
#include "image/image.h"

#include <string.h>

/* With this limit, offsets of pixels stay far below the range of int64_t and size_t. */
#define MAX_BYTES ((int64_t)1 << 40)

att_status att_image_alloc(att_ctx *ctx, int64_t height, int64_t width, int64_t channels, att_image *out)
{
    *out = (att_image){0};
    if (height > MAX_BYTES / channels / width)
        return att_fail(ctx, ATT_ERR_MEMORY, "out of memory for an image of %lld x %lld pixels", (long long)width,
                        (long long)height);
    uint8_t *pixels = att_alloc(ctx, (size_t)(height * width * channels), 1);
    if (!pixels)
        return ATT_ERR_MEMORY;
    *out = (att_image){height, width, channels, pixels};
    return ATT_OK;
}

void att_image_free(att_ctx *ctx, att_image *image)
{
    if (!image)
        return;
    att_free(ctx, image->pixels);
    *image = (att_image){0};
}

att_status att_image_check(att_ctx *ctx, const char *function, const att_image *image)
{
    if (!image->pixels || image->height < 1 || image->width < 1 || image->height > INT32_MAX ||
        image->width > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: the image has %lld x %lld pixels%s", function,
                        (long long)image->width, (long long)image->height, image->pixels ? "" : " and no memory");
    if (image->channels != 1 && image->channels != 3)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: the image has %lld channels, not 1 or 3", function,
                        (long long)image->channels);
    return ATT_OK;
}

/* Returns x / 255, rounded, for x in [0, 255 * 255]. */
static uint8_t divided_by_255(unsigned x)
{
    x += 128;
    return (uint8_t)((x + (x >> 8)) >> 8);
}

void att_cmyk_to_rgb(const uint8_t cmyk[4], uint8_t rgb[3])
{
    const unsigned rest = 255u - cmyk[3];
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(rest - divided_by_255(cmyk[c] * rest));
}

void att_image_composite(att_image *image, const uint8_t *background)
{
    const int64_t n = image->height * image->width;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = image->pixels + 4 * i;
        const unsigned alpha = from[3];
        for (int c = 0; c < 3; c++)
            image->pixels[3 * i + c] = divided_by_255(from[c] * alpha + background[c] * (255 - alpha));
    }
    image->channels = 3;
}

att_status att_image_orient(att_ctx *ctx, att_image *image, int orientation)
{
    static const struct {
        bool transposed, from_bottom, from_right; /* how the stored image is read */
    } reading[] = {{0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1}};
    const bool transposed = reading[orientation - 1].transposed;
    const int64_t h = image->height, w = image->width, channels = image->channels;
    att_image out;
    if (orientation == 1)
        return ATT_OK;
    const att_status s = att_image_alloc(ctx, transposed ? w : h, transposed ? h : w, channels, &out);
    if (s)
        return s;
    uint8_t *to = out.pixels;
    for (int64_t y = 0; y < out.height; y++)
        for (int64_t x = 0; x < out.width; x++, to += channels) {
            const int64_t row = transposed ? x : y, column = transposed ? y : x;
            const int64_t from_row = reading[orientation - 1].from_bottom ? h - 1 - row : row;
            const int64_t from_column = reading[orientation - 1].from_right ? w - 1 - column : column;
            memcpy(to, image->pixels + (from_row * w + from_column) * channels, (size_t)channels);
        }
    att_image_free(ctx, image);
    *image = out;
    return ATT_OK;
}

/* Returns the ITU-R 601-2 luma of red, green and blue, computed with 16 bits of fraction. The factors add up to 1. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000) >> 16);
}

att_status att_image_convert(att_ctx *ctx, const att_image *image, int64_t channels, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_image_check(ctx, __func__, image);
    if (!s && channels != 1 && channels != 3)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: channels is %lld, not 1 or 3", __func__, (long long)channels);
    s = s ? s : att_image_alloc(ctx, image->height, image->width, channels, out);
    if (s)
        return s;
    const int64_t n = image->height * image->width, from = image->channels;
    if (from == channels) {
        memcpy(out->pixels, image->pixels, (size_t)(n * from));
        return ATT_OK;
    }
    for (int64_t i = 0; i < n; i++)
        if (channels == 1)
            out->pixels[i] = luma(image->pixels + 3 * i);
        else
            memset(out->pixels + 3 * i, image->pixels[i], 3);
    return ATT_OK;
}
