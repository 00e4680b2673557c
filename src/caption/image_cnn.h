/* A small residual network that makes a grid of vectors of an image (after He et al. 2016). Each stage has half the
 * rows and columns of the one before:
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

/* Adds its layers: of images with `in` channels, channels [stages] after each stage. */
void att_image_cnn_build(att_image_cnn *m, att_nn_params *p, int64_t in, const int64_t *channels, int64_t stages);
/* images [n, height, width, in], both a multiple of 2^stages -> [n, height / 2^stages, width / 2^stages, channels of
 * the last stage]. training: batch norms have the statistics of these images, and move their own. */
att_var *att_image_cnn_apply(att_tape *t, const att_image_cnn *m, att_var *images, bool training);

#endif
