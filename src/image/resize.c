/* Resamples images, with the same pixels as Pillow's Image.resize: with separable filters, which become wider if an
 * axis becomes smaller, in integers, rounded to 8 bits between the passes. */
#include "image/image.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* ---- filters: weights by the distance in pixels */

static double bilinear(double x) { return fmax(0, 1 - fabs(x)); }

/* Computes the cubic convolution kernel (Keys 1981). */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(x * pi) / (x * pi);
}

static double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct {
    double (*weight)(double);
    double support; /* weights are 0 beyond */
} filters[] = {[ATT_IMAGE_FILTER_BILINEAR] = {bilinear, 1},
               [ATT_IMAGE_FILTER_BICUBIC] = {bicubic, 2},
               [ATT_IMAGE_FILTER_LANCZOS] = {lanczos, 3}};

/* ---- one axis: which pixels each pixel of the result is a weighted sum of */

enum { FRACTION_BITS = 22 }; /* 32, minus 8 for a pixel, minus 2 because some weights are over 1 or negative */

/* Only the weights of a group of pixels of the result are in memory, because all weights may be many times larger than
 * the image. */
enum { GROUP_WEIGHTS = 1 << 20, MAX_WEIGHTS = 1 << 24 };

typedef struct axis {
    att_image_filter filter;
    int64_t from_size, size; /* of the image, of the result */
    int64_t room;            /* weights per pixel of the result, at most */
    int64_t group;           /* pixels of the result */
    int64_t *first;          /* [group] the first pixel of each sum */
    int64_t *count;          /* [group] */
    int32_t *weights;        /* [group, room] with FRACTION_BITS of fraction */
    double *exact;           /* [room] */
} axis;

static void axis_free(att_ctx *ctx, axis *a)
{
    att_free(ctx, a->first);
    att_free(ctx, a->count);
    att_free(ctx, a->weights);
    att_free(ctx, a->exact);
}

/* Computes the normalized weights of pixel i of the result, and stores them as weights number `to` in the group. */
static void set_weights(const axis *a, int64_t i, int64_t to)
{
    const double scale = (double)a->from_size / (double)a->size, stretch = fmax(scale, 1);
    const double support = filters[a->filter].support * stretch, center = ((double)i + 0.5) * scale;
    const int64_t first = att_max((int64_t)(center - support + 0.5), 0);
    const int64_t count = att_min((int64_t)(center + support + 0.5), a->from_size) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        a->exact[k] = filters[a->filter].weight(((double)(k + first) - center + 0.5) * (1 / stretch));
        sum += a->exact[k];
    }
    for (int64_t k = 0; k < count; k++) {
        const double scaled = (sum != 0 ? a->exact[k] / sum : a->exact[k]) * (1 << FRACTION_BITS);
        a->weights[to * a->room + k] = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    }
    a->first[to] = first;
    a->count[to] = count;
}

/* Computes the weights of the group of pixels from `begin` on; returns how many these are. */
static int64_t set_group(const axis *a, int64_t begin)
{
    const int64_t n = att_min(a->group, a->size - begin);
    for (int64_t i = 0; i < n; i++)
        set_weights(a, begin + i, i);
    return n;
}

static att_status axis_init(att_ctx *ctx, axis *a, int64_t from_size, int64_t size, att_image_filter filter)
{
    const double stretch = fmax((double)from_size / (double)size, 1);
    *a = (axis){.filter = filter, .from_size = from_size, .size = size};
    a->room = att_min((int64_t)ceil(filters[filter].support * stretch) * 2 + 1, from_size);
    if (a->room > MAX_WEIGHTS)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "an image of %lld pixels on one side cannot be resized to %lld: each would be a sum of %lld, "
                        "the maximum is %d",
                        (long long)from_size, (long long)size, (long long)a->room, MAX_WEIGHTS);
    a->group = att_min(att_max(GROUP_WEIGHTS / a->room, 1), size);
    a->first = att_alloc(ctx, (size_t)a->group, sizeof *a->first);
    a->count = att_alloc(ctx, (size_t)a->group, sizeof *a->count);
    a->weights = att_alloc(ctx, (size_t)(a->group * a->room), sizeof *a->weights);
    a->exact = att_alloc(ctx, (size_t)a->room, sizeof *a->exact);
    return a->first && a->count && a->weights && a->exact ? ATT_OK : ATT_ERR_MEMORY;
}

/* ---- sums */

static const int32_t half = 1 << (FRACTION_BITS - 1);

static uint8_t rounded(int32_t sum)
{
    const int32_t x = sum >> FRACTION_BITS;
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Resizes a row of gray pixels into out [n], the pixels of the group. */
static void resize_gray(const axis *a, int64_t n, const uint8_t *row, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t *w = a->weights + i * a->room;
        const uint8_t *x = row + a->first[i];
        int32_t sum = half;
        for (int64_t k = 0; k < a->count[i]; k++)
            sum += x[k] * w[k];
        out[i] = rounded(sum);
    }
}

/* Resizes a row of three channels, whose sums stay in registers, into out [n, 3]. */
static void resize_colors(const axis *a, int64_t n, const uint8_t *row, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t *w = a->weights + i * a->room;
        const uint8_t *x = row + 3 * a->first[i];
        int32_t red = half, green = half, blue = half;
        for (int64_t k = 0; k < a->count[i]; k++) {
            red += x[3 * k] * w[k];
            green += x[3 * k + 1] * w[k];
            blue += x[3 * k + 2] * w[k];
        }
        out[3 * i] = rounded(red);
        out[3 * i + 1] = rounded(green);
        out[3 * i + 2] = rounded(blue);
    }
}

/* Writes the weighted sum of n columns of rows [count, stride] to out [n]. n is at most COLUMNS. */
enum { COLUMNS = 1 << 12 };
static void add_rows(const uint8_t *rows, int64_t stride, const int32_t *weights, int64_t count, int64_t n,
                     uint8_t *out)
{
    int32_t sum[COLUMNS];
    for (int64_t i = 0; i < n; i++)
        sum[i] = half;
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += rows[k * stride + i] * weights[k];
    for (int64_t i = 0; i < n; i++)
        out[i] = rounded(sum[i]);
}

/* ---- the two passes */

static att_status resize_width(att_ctx *ctx, const att_image *image, int64_t width, att_image_filter filter,
                               att_image *out)
{
    axis a;
    const int64_t channels = image->channels;
    att_status s = axis_init(ctx, &a, image->width, width, filter);
    s = s ? s : att_image_alloc(ctx, image->height, width, channels, out);
    for (int64_t x = 0; !s && x < width; x += a.group) {
        const int64_t n = set_group(&a, x);
        for (int64_t y = 0; y < image->height; y++)
            (channels == 3 ? resize_colors : resize_gray)(&a, n, image->pixels + y * image->width * channels,
                                                          out->pixels + (y * width + x) * channels);
    }
    axis_free(ctx, &a);
    return s;
}

static att_status resize_height(att_ctx *ctx, const att_image *image, int64_t height, att_image_filter filter,
                                att_image *out)
{
    axis a;
    const int64_t n = image->width * image->channels;
    att_status s = axis_init(ctx, &a, image->height, height, filter);
    s = s ? s : att_image_alloc(ctx, height, image->width, image->channels, out);
    for (int64_t y = 0; !s && y < height; y++) {
        const int64_t i = y % a.group;
        if (i == 0)
            set_group(&a, y);
        for (int64_t x = 0; x < n; x += COLUMNS)
            add_rows(image->pixels + a.first[i] * n + x, n, a.weights + i * a.room, a.count[i], att_min(n - x, COLUMNS),
                     out->pixels + y * n + x);
    }
    axis_free(ctx, &a);
    return s;
}

typedef att_status (*resize_pass)(att_ctx *ctx, const att_image *image, int64_t size, att_image_filter filter,
                                  att_image *out);

/* Resizes horizontally first; but vertically first if that removes more than twice as many rows as columns, so that
 * rounding between the passes is the same as in Pillow 13. */
static att_status resize_filtered(att_ctx *ctx, const att_image *image, int64_t height, int64_t width,
                                  att_image_filter filter, att_image *out)
{
    att_image between = {0};
    if (width == image->width)
        return resize_height(ctx, image, height, filter, out);
    if (height == image->height)
        return resize_width(ctx, image, width, filter, out);
    const int64_t rows = image->height - height, columns = image->width - width;
    const bool vertically = rows > 0 && rows > 2 * columns;
    const resize_pass first = vertically ? resize_height : resize_width,
                      second = vertically ? resize_width : resize_height;
    att_status s = first(ctx, image, vertically ? height : width, filter, &between);
    s = s ? s : second(ctx, &between, vertically ? width : height, filter, out);
    att_image_free(ctx, &between);
    return s;
}

/* Resizes to the nearest pixels. Positions are added up, and each sum is rounded, as in Pillow. */
static att_status resize_nearest(att_ctx *ctx, const att_image *image, int64_t height, int64_t width, att_image *out)
{
    const double down = (double)image->height / (double)height, right = (double)image->width / (double)width;
    const size_t pixel = (size_t)image->channels;
    const att_status s = att_image_alloc(ctx, height, width, image->channels, out);
    if (s)
        return s;
    double y = 0.5 * down;
    uint8_t *to = out->pixels;
    for (int64_t i = 0; i < height; i++, y += down) {
        const uint8_t *row = image->pixels + att_min((int64_t)y, image->height - 1) * image->width * image->channels;
        double x = 0.5 * right;
        for (int64_t j = 0; j < width; j++, x += right, to += pixel)
            memcpy(to, row + (size_t)att_min((int64_t)x, image->width - 1) * pixel, pixel);
    }
    return ATT_OK;
}

att_status att_image_resize(att_ctx *ctx, const att_image *image, int64_t height, int64_t width,
                            att_image_filter filter, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_image_check(ctx, __func__, image);
    if (!s && (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX))
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: the result has %lld x %lld pixels", __func__, (long long)width,
                     (long long)height);
    if (!s && filter != ATT_IMAGE_FILTER_NEAREST && filter != ATT_IMAGE_FILTER_BILINEAR &&
        filter != ATT_IMAGE_FILTER_BICUBIC && filter != ATT_IMAGE_FILTER_LANCZOS)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: filter is %d, which is not an att_image_filter", __func__,
                     (int)filter);
    if (s)
        return s;
    if (height == image->height && width == image->width)
        return att_image_convert(ctx, image, image->channels, out);
    s = filter == ATT_IMAGE_FILTER_NEAREST ? resize_nearest(ctx, image, height, width, out)
                                           : resize_filtered(ctx, image, height, width, filter, out);
    if (s)
        att_image_free(ctx, out);
    return s;
}
