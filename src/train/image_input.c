#include "train/image_input.h"
#include "model/vit.h"

#include "attend_util.h"

/* ViTImageProcessor's, for the size and channels of a model */
static att_image_processor_config default_config(const att_vit_info *m)
{
    return (att_image_processor_config){.info = {.size = sizeof(att_image_processor_info),
                                                 .height = m->image[0],
                                                 .width = m->image[1],
                                                 .channels = m->channels,
                                                 .filter = ATT_FILTER_BILINEAR,
                                                 .mean = {0.5f, 0.5f, 0.5f},
                                                 .deviation = {0.5f, 0.5f, 0.5f},
                                                 .rescale = 1 / 255.0f},
                                        .rescale = 1 / 255.0,
                                        .resized = true,
                                        .size = {.height = m->image[0], .width = m->image[1]}};
}

att_status att_image_input_make(att_ctx *ctx, const att_vit *m, const char *folder, att_image_input *out)
{
    att_vit_info v = {.size = sizeof v};
    *out = (att_image_input){.ctx = ctx};
    att_image_processor_config *c = &out->config;
    att_status e = att_vit_describe(m, &v);
    if (!e && v.channels != 1 && v.channels != 3)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "the model has images of %lld channels; 1 and 3 are supported",
                        (long long)v.channels);
    if (!e && folder)
        e = att_image_processor_config_read(ctx, folder, c);
    else if (!e)
        *c = default_config(&v);
    e = e ? e : att_vit_check_input(m, &c->info, folder);
    c->rounds_offset = false; /* the files that are written cannot say it: they are not timm's */
    out->info = c->info;
    return e ? e : att_image_processor_make(ctx, c, &out->processor);
}

void att_image_input_free(att_image_input *in)
{
    att_image_processor_free(in->processor);
    in->processor = NULL;
}

att_status att_image_input_read(const att_image_input *in, const att_image_set *set, int64_t i, att_image *out)
{
    att_image image;
    *out = (att_image){0};
    att_status e = att_image_set_read(set, i, &image);
    e = e ? e : att_image_processor_crop(in->processor, &image, out);
    att_image_free(in->ctx, &image);
    return e;
}
