/* Batches of images that are changed at random (augmented), decoded by a thread, one batch ahead. */
#ifndef ATT_VISION_IMAGE_BATCHES_H
#define ATT_VISION_IMAGE_BATCHES_H

#include "vision/image_input.h"
#include "vision/image_order.h"

typedef struct att_augmentation {
    int64_t crop, cutout; /* as in att_image_training_options */
    bool flip;
    double mixup;
    uint64_t seed;
    int64_t repeats; /* images of a batch, if an epoch may have an image several times, each changed in its own way; or
                      * 0 */
} att_augmentation;

typedef struct att_image_batch {
    int64_t epoch, batch, first, n; /* rows [first, first + n) */
    float *pixels;                  /* [n, height, width, channels], normalized */
    const uint32_t *images;         /* [n] */
    int32_t *classes;               /* [n]; 0 if the source has no classes */
    int32_t *partners;              /* [n]: classes of the images that are mixed in */
    float share;                    /* of an image in its mixture; 1: none is mixed in */
} att_image_batch;

typedef struct att_image_batches att_image_batches;
/* Makes the batches. `in` and the source's images must outlive them. max: images of a batch. */
att_status att_image_batches_new(att_ctx *ctx, const att_image_input *in, const att_image_source *from,
                                 const att_augmentation *how, int64_t max, att_image_batches **out);
void att_image_batches_free(att_image_batches *b);
/* Returns the batch `now`, which is valid until the next call, and begins to make `next`. A batch has the same bits
 * whatever was requested before. *waited: seconds. */
att_status att_image_batches_get(att_image_batches *b, const att_image_choice *now, const att_image_choice *next,
                                 const att_image_batch **out, double *waited);

/* The smallest alpha. If it were much smaller, 1 / alpha would be infinite; with this alpha all shares are already near
 * 0 or 1. */
#define ATT_MIN_MIXUP 1e-3
/* Returns the share of a batch, which depends on the seed, from the beta distribution with both parameters alpha >=
 * ATT_MIN_MIXUP. */
double att_mixup_share(double alpha, uint64_t seed, int64_t epoch, int64_t batch);

#endif
