/* A small residual network that makes a grid of vectors from an image (similar to He et al. 2016). Each stage has half
 * the rows and columns of the one before:
 *
 * x = pool(ReLU(BatchNorm(conv(x)))), x = x + ReLU(BatchNorm(conv(x)))
 *
 * with convolutions of 3 x 3 and max-pooling of 2 x 2. */
#ifndef ATT_CAPTION_IMAGE_CNN_H
#define ATT_CAPTION_IMAGE_CNN_H

#include "attend_nn.h"

enum { ATT_IMAGE_CNN_MAX_STAGES = 8 };

typedef struct att_image_cnn_stage {
    const att_nn_conv *conv[2];
    const att_nn_batch_norm *norm[2];
} att_image_cnn_stage;

typedef struct att_image_cnn {
    int64_t stages;
    att_image_cnn_stage stage[ATT_IMAGE_CNN_MAX_STAGES];
} att_image_cnn;

/* Adds the network's layers, for images with `in` channels. channels [stages] are the numbers after each stage. */
void att_image_cnn_build(att_image_cnn *m, att_nn_params *p, int64_t in, const int64_t *channels, int64_t stages);
/* Applies the network to images [n, height, width, in], whose height and width are multiples of 2^stages. Returns [n,
 * height / 2^stages, width / 2^stages, channels of the last stage]. training: batch norms use the statistics of these
 * images, and update their own. */
att_var *att_image_cnn_apply(att_tape *t, const att_image_cnn *m, att_var *images, bool training);

#endif
