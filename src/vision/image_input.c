#include "vision/image_input.h"
#include "io/parallel_status.h"
#include "vision/image_set.h"
#include "vision/vit.h"

#include "attend_util.h"

static att_status read_from_set(const void *images, int64_t i, att_image *out)
{
    return att_image_set_read(images, i, out);
}

att_image_source att_image_source_of_set(const att_image_set *set)
{
    return (att_image_source){.images = set, .read = read_from_set, .classes = set->classes};
}

/* ViTImageProcessor's, for the size and channels of a model */
static att_image_processor_config default_config(const int64_t size[2], int64_t channels)
{
    return (att_image_processor_config){.info = {.size = sizeof(att_image_processor_info),
                                                 .height = size[0],
                                                 .width = size[1],
                                                 .channels = channels,
                                                 .filter = ATT_IMAGE_FILTER_BILINEAR,
                                                 .mean = {0.5f, 0.5f, 0.5f},
                                                 .deviation = {0.5f, 0.5f, 0.5f},
                                                 .rescale = 1 / 255.0f},
                                        .rescale = 1 / 255.0,
                                        .resized = true,
                                        .size = {.height = size[0], .width = size[1]}};
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
        *c = default_config(v.image, v.channels);
    e = e ? e : att_vit_check_input(m, &c->info, folder);
    c->rounds_offset = false; /* the files that are written cannot express it: they are not timm's */
    out->info = c->info;
    return e ? e : att_image_processor_make(ctx, c, &out->processor);
}

att_status att_image_input_of_size(att_ctx *ctx, const int64_t size[2], int64_t channels, att_image_input *out)
{
    *out = (att_image_input){.ctx = ctx, .config = default_config(size, channels)};
    out->info = out->config.info;
    return att_image_processor_make(ctx, &out->config, &out->processor);
}

void att_image_input_free(att_image_input *in)
{
    att_image_processor_free(in->processor);
    in->processor = NULL;
}

att_status att_image_input_read(const att_image_input *in, const att_image_source *from, int64_t i, att_image *out)
{
    att_image image;
    *out = (att_image){0};
    att_status e = from->read(from->images, i, &image);
    e = e ? e : att_image_processor_crop(in->processor, &image, out);
    att_image_free(in->ctx, &image);
    return e;
}

typedef struct pixels_job {
    const att_image_input *in;
    const att_image_source *from;
    int64_t first;
    float *pixels;
} pixels_job;

static att_status read_pixels(void *arg, int i)
{
    const pixels_job *j = arg;
    att_image image;
    const att_status e = att_image_input_read(j->in, j->from, j->first + i, &image);
    if (e)
        return e;
    att_image_processor_normalize(j->in->processor, &image, j->pixels + i * att_image_input_values(j->in));
    att_image_free(j->in->ctx, &image);
    return ATT_OK;
}

att_status att_image_input_pixels(const att_image_input *in, const att_image_source *from, int64_t first, int64_t n,
                                  float *pixels)
{
    pixels_job j = {in, from, first, pixels};
    return att_parallel_all(in->ctx, (int)n, read_pixels, &j);
}
