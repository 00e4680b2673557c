/* Applies a model to images of any sizes, in batches. */
#ifndef ATT_VISION_IMAGE_RUN_H
#define ATT_VISION_IMAGE_RUN_H

#include "io/progress.h"
#include "model/model.h"
#include "attend_vision.h"

typedef struct att_image_run {
    const att_model *model; /* whose compute the tape has */
    const att_image_processor *processor;
    int64_t batch; /* images that are computed together; a number below 1 counts as 1 */
    int64_t width; /* numbers of an image's result */
    /* Returns the results of images [n, height, width, channels]: n times `width` numbers. */
    att_var *(*apply)(att_tape *t, const void *user, att_var *images);
    const void *user;
    att_progress *progress; /* in images; or NULL */
} att_image_run;

/* Applies the model to images [n]: out [n, width]. */
att_status att_image_run_all(const att_image_run *r, int64_t n, const att_image *images, float *out);
/* Computes the result of one image, as a variable. */
att_var *att_image_run_one(att_tape *t, const att_image_run *r, const att_image *image);

#endif
