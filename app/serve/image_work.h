/* Probabilities of the classes of images: the work behind /classify of images. */
#ifndef SERVE_IMAGE_WORK_H
#define SERVE_IMAGE_WORK_H

#include "images.h"

/* Computes probabilities -> [images->n, classes], malloc'd. NULL: the request was refused. */
float *serve_classify_images(serve_call *c, serve_model *m, const serve_images *images);

#endif
