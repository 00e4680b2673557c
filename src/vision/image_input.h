/* Images of a set as the input of a model. The same processor makes them in training and for the written model, so that
 * the pixels are equal. */
#ifndef ATT_VISION_IMAGE_INPUT_H
#define ATT_VISION_IMAGE_INPUT_H

#include "image/processor.h"

typedef struct att_image_input {
    att_ctx *ctx;
    att_image_processor_config config;
    att_image_processor *processor; /* of config */
    att_image_processor_info info;  /* config.info */
} att_image_input;
/* The source of images. */
typedef struct att_image_source {
    const void *images;
    att_status (*read)(const void *images, int64_t i, att_image *out); /* decodes image i; many threads may call it at
                                                                        * the same time */
    const int32_t *classes;                                            /* of images; NULL: they have none */
} att_image_source;
att_image_source att_image_source_of_set(const att_image_set *set);

/* Makes the input of a model. folder: of the pre-trained model whose preprocessing is used; NULL: images are resized to
 * the model's size (bilinear), and mean and deviation are 0.5, as in ViTImageProcessor. Error: the preprocessing does
 * not fit the model. The caller frees *out. */
att_status att_image_input_make(att_ctx *ctx, const att_vit *m, const char *folder, att_image_input *out);
/* Makes the input of a model that has no folder. Its images are [height, width] with 1 or 3 channels. */
att_status att_image_input_of_size(att_ctx *ctx, const int64_t size[2], int64_t channels, att_image_input *out);
void att_image_input_free(att_image_input *in);
/* Reads image i of a source, in the size and with the channels of the model. */
att_status att_image_input_read(const att_image_input *in, const att_image_source *from, int64_t i, att_image *out);
/* Reads images first to first + n - 1 into pixels [n, height, width, channels], normalized, with all threads. */
att_status att_image_input_pixels(const att_image_input *in, const att_image_source *from, int64_t first, int64_t n,
                                  float *pixels);
/* Returns the number of values of an image. */
static inline int64_t att_image_input_values(const att_image_input *in)
{
    return in->info.height * in->info.width * in->info.channels;
}

#endif
