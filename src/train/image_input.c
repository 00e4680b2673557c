#include "train/image_input.h"

#include "attend_util.h"

static att_status read_processor(att_ctx *ctx, const char *folder, att_image_processor_info *out)
{
    att_image_processor *p;
    att_status e = att_image_processor_open(ctx, folder, &p);
    e = e ? e : att_image_processor_describe(p, out);
    att_image_processor_free(p);
    if (!e && out->rescale != 1 / 255.0f)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s: its preprocessing scales by %g; a training needs 1 / 255", folder,
                     (double)out->rescale);
    return e;
}

att_status att_image_input_make(att_ctx *ctx, const att_vit *m, const char *folder, att_image_input *out)
{
    att_vit_info v = {.size = sizeof v};
    *out = (att_image_input){.ctx = ctx,
                             .info = {.size = sizeof out->info,
                                      .filter = ATT_FILTER_BILINEAR,
                                      .mean = {0.5f, 0.5f, 0.5f},
                                      .deviation = {0.5f, 0.5f, 0.5f},
                                      .rescale = 1 / 255.0f}};
    att_image_processor_info *i = &out->info;
    att_status e = att_vit_describe(m, &v);
    e = e || !folder ? e : read_processor(ctx, folder, i);
    if (!e && v.channels != 1 && v.channels != 3)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED, "the model has images of %lld channels; 1 and 3 are supported",
                     (long long)v.channels);
    if (e)
        return e;
    i->height = v.image[0];
    i->width = v.image[1];
    i->channels = v.channels;
    for (int64_t c = 0; c < v.channels; c++)
        for (int level = 0; level < 256; level++)
            out->value[c][level] = ((float)level * i->rescale - i->mean[c]) / i->deviation[c];
    return ATT_OK;
}

/* Where nothing is to be done, the image itself, which is empty then. */
static att_status convert(const att_image_input *in, att_image *image, att_image *out)
{
    const att_image_processor_info *to = &in->info;
    att_image sized = *image;
    att_status e = ATT_OK;
    if (image->height != to->height || image->width != to->width)
        e = att_image_resize(in->ctx, image, to->height, to->width, to->filter, &sized);
    else
        *image = (att_image){0};
    if (e || sized.channels == to->channels) {
        *out = e ? (att_image){0} : sized;
        return e;
    }
    e = att_image_convert(in->ctx, &sized, to->channels, out);
    att_image_free(in->ctx, &sized);
    return e;
}

att_status att_image_input_read(const att_image_input *in, const att_image_set *set, int64_t i, att_image *out)
{
    att_image image;
    att_status e = att_image_set_read(set, i, &image);
    e = e ? e : convert(in, &image, out);
    att_image_free(in->ctx, &image);
    return e;
}

void att_image_input_normalise(const att_image_input *in, const att_image *image, float *out)
{
    const uint8_t *level = image->pixels;
    for (int64_t i = 0; i < in->info.height * in->info.width; i++)
        for (int64_t c = 0; c < in->info.channels; c++)
            *out++ = in->value[c][*level++];
}
