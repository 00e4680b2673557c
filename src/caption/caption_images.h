/* The images of a captioner's training, as grids. The CNN under training computes them, or a vision Transformer, whose
 * features are computed once. */
#ifndef ATT_CAPTION_CAPTION_IMAGES_H
#define ATT_CAPTION_CAPTION_IMAGES_H

#include "caption/captioner.h"
#include "caption/caption_encoder.h"
#include "vision/image_batches.h"
#include "attend_caption.h"

typedef struct att_caption_images {
    att_ctx *ctx;
    const att_caption_set *set[2]; /* for training, and for validation or NULL */
    int64_t n[2], batch;           /* images of each set; images of a batch, at most */
    const att_captioner *model;
    att_progress progress; /* of computing features */
    double waited;         /* seconds that all steps have waited for images */
    /* of a CNN */
    att_image_input input; /* its processor is the model's */
    att_image_batches *batches;
    float *pixels; /* [batch, height, width, channels]: for validation */
    /* of a vision Transformer */
    att_caption_encoder encoder; /* its model belongs to the caller; NULL: there is none */
    uint16_t *grids[2];          /* f16, [images, locations, features] */
    float *grid;                 /* [batch, locations, features]: of the current batch */
    uint64_t sum;                /* a checksum of grids[0]; 0: none */
} att_caption_images;

/* Opens the images of a model. The caller has set all members above `waited`, and the input or the encoder. max_bytes:
 * the limit of memory for features. */
att_status att_caption_images_open(att_caption_images *i, const att_augmentation *how, int64_t max_bytes);
void att_caption_images_free(att_caption_images *i);
/* Returns the grids of a batch in training, [n * locations, features], and begins to decode the next batch. */
att_var *att_caption_images_get(att_caption_images *i, att_tape *t, const att_image_choice *now,
                                const att_image_choice *next);
/* Returns the grids of n images for validation, from image `first` on: [n * locations, features]. */
att_var *att_caption_images_valid(att_caption_images *i, att_tape *t, int64_t first, int64_t n);

#endif
