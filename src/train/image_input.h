/* Images of a set as the input of a model. */
#ifndef ATT_TRAIN_IMAGE_INPUT_H
#define ATT_TRAIN_IMAGE_INPUT_H

#include "attend_vision.h"

typedef struct att_image_input {
    att_ctx *ctx;
    att_image_processor_info info;
    float value[3][256]; /* of a channel's levels, normalised */
} att_image_input;
/* The input of a model: images are resized to its size. folder: of the pre-trained model whose filter, mean and
 * deviation are used; NULL: bilinear, and 0.5 is both, as in ViTImageProcessor. */
att_status att_image_input_make(att_ctx *ctx, const att_vit *m, const char *folder, att_image_input *out);
/* Image i of a set in the size and with the channels of the model. */
att_status att_image_input_read(const att_image_input *in, const att_image_set *set, int64_t i, att_image *out);
/* Normalises such an image -> out [height, width, channels]. */
void att_image_input_normalise(const att_image_input *in, const att_image *image, float *out);
/* The number of values of an image. */
static inline int64_t att_image_input_values(const att_image_input *in)
{
    return in->info.height * in->info.width * in->info.channels;
}

#endif
