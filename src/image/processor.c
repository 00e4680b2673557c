/* Preprocesses images: an image becomes a model's input. */
#include "image/processor.h"
#include "util/util.h"

#include <string.h>

/* Limit of a resized image, before it is cropped. */
#define MAX_PIXELS ((int64_t)1 << 27)

struct att_image_processor {
    att_ctx *ctx;
    att_image_processor_config config;
    float value[3][256]; /* of each channel's levels in the result */
};

/* ---- open */

/* Computes the values in the arithmetic of `transformers`: scales in double, the rest in float. */
static void set_values(att_image_processor *p)
{
    const att_image_processor_info *info = &p->config.info;
    for (int c = 0; c < 3; c++)
        for (int level = 0; level < 256; level++)
            p->value[c][level] = ((float)(level * p->config.rescale) - info->mean[c]) / info->deviation[c];
}

att_status att_image_processor_make(att_ctx *ctx, const att_image_processor_config *config, att_image_processor **out)
{
    att_image_processor *p = *out = att_alloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    p->ctx = ctx;
    p->config = *config;
    set_values(p);
    return ATT_OK;
}

att_status att_image_processor_open(att_ctx *ctx, const char *folder, att_image_processor **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_image_processor_config config;
    const att_status s = att_image_processor_config_read(ctx, folder, &config);
    return s ? s : att_image_processor_make(ctx, &config, out);
}

void att_image_processor_free(att_image_processor *p)
{
    if (p)
        att_free(p->ctx, p);
}

att_status att_image_processor_describe(const att_image_processor *p, att_image_processor_info *info)
{
    if (att_require(__func__, ATT_NAMED({"p", p}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &p->config.info, sizeof p->config.info, "att_image_processor_info");
}

/* ---- resize and crop */

/* Resizes. Sides are below 2^31 and the settings' sizes are small, so products do not overflow. */
static att_status resize(const att_image_processor *p, const att_image *image, att_image *out)
{
    att_image_size to = p->config.size;
    if (to.shortest > 0) {
        const int64_t shorter = att_min(image->height, image->width);
        to.height = to.shortest * image->height / shorter;
        to.width = to.shortest * image->width / shorter;
    }
    if (to.height > MAX_PIXELS / to.width)
        return att_fail(p->ctx, ATT_ERR_UNSUPPORTED,
                        "an image of %lld x %lld pixels would be resized to %lld x %lld before its center is cut out; "
                        "the maximum is %lld pixels",
                        (long long)image->width, (long long)image->height, (long long)to.width, (long long)to.height,
                        (long long)MAX_PIXELS);
    return att_image_resize(p->ctx, image, to.height, to.width, p->config.info.filter, out);
}

/* Returns where a crop of `size` pixels of `from` begins; negative: it begins with zeros. */
static int64_t offset(int64_t from, int64_t size, bool rounds)
{
    const int64_t twice = from - size, floored = (twice - (twice & 1)) / 2;
    if (rounds)
        return floored + (twice & 1 && (twice < 0 || floored & 1));
    return floored;
}

static att_status crop(const att_image_processor *p, const att_image *image, att_image *out)
{
    const att_image_processor_info *info = &p->config.info;
    const int64_t top = offset(image->height, info->height, p->config.rounds_offset);
    const int64_t left = offset(image->width, info->width, p->config.rounds_offset);
    const att_status s = att_image_alloc(p->ctx, info->height, info->width, image->channels, out);
    if (s)
        return s;
    memset(out->pixels, 0, (size_t)(out->height * out->width * out->channels));
    const int64_t first = att_max(top, 0), after = att_min(top + info->height, image->height);
    const int64_t first_column = att_max(left, 0), columns = att_min(left + info->width, image->width) - first_column;
    for (int64_t y = first; y < after; y++)
        memcpy(out->pixels + ((y - top) * out->width + first_column - left) * out->channels,
               image->pixels + (y * image->width + first_column) * image->channels,
               (size_t)(columns * image->channels));
    return ATT_OK;
}

static att_status convert(const att_image_processor *p, const att_image *image, att_image *out)
{
    return att_image_convert(p->ctx, image, p->config.info.channels, out);
}

/* Applies a step: replaces *out by the step's result from *out, or from `image` if it is the first step. */
static att_status apply(const att_image_processor *p, const att_image *image, att_image *out,
                        att_status (*step)(const att_image_processor *, const att_image *, att_image *))
{
    att_image next = {0};
    const att_status s = step(p, out->pixels ? out : image, &next);
    att_image_free(p->ctx, out);
    *out = next;
    return s;
}

att_status att_image_processor_crop(const att_image_processor *p, const att_image *image, att_image *out)
{
    if (out)
        *out = (att_image){0};
    if (att_require(__func__, ATT_NAMED({"p", p}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_image_check(p->ctx, __func__, image);
    if (!s && (image->channels != p->config.info.channels || (!p->config.resized && !p->config.cropped)))
        s = apply(p, image, out, convert);
    if (!s && p->config.resized)
        s = apply(p, image, out, resize);
    if (!s && p->config.cropped)
        s = apply(p, image, out, crop);
    return s;
}

/* ---- all of it */

void att_image_processor_normalize(const att_image_processor *p, const att_image *seen, float *out)
{
    const int64_t channels = seen->channels, n = seen->height * seen->width * channels;
    for (int64_t i = 0; i < n; i += channels)
        for (int64_t c = 0; c < channels; c++)
            out[i + c] = p->value[c][seen->pixels[i + c]];
}

att_status att_image_processor_apply(const att_image_processor *p, const att_image *image, float *out)
{
    if (att_require(__func__, ATT_NAMED({"p", p}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_image seen;
    const att_status s = att_image_processor_crop(p, image, &seen);
    if (s)
        return s;
    att_image_processor_normalize(p, &seen, out);
    att_image_free(p->ctx, &seen);
    return ATT_OK;
}
