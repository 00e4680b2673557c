/* Declarations that traces of models of images share. */
#ifndef ATT_VISION_IMAGE_TRACE_H
#define ATT_VISION_IMAGE_TRACE_H

#include "model/trace.h"
#include "vision/image_run.h"

/* The first member of the data of such a pass. */
typedef struct att_traced_image {
    att_image_run run;
    const att_image *image; /* the caller's, until the model has been applied */
    att_image *crop;        /* the model's input; NULL: only a description is requested */
} att_traced_image;

/* Crops the image, and sets the members of the pass that depend on it: info.image, its bytes, free. Errors: the options
 * have ids; those of preprocessing. */
att_status att_traced_image_open(att_traced_image *x, const att_image *image, const att_trace_options *options,
                                 att_trace_pass *pass);

#endif
