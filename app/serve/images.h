/* The images of a request: decoded, with their memory counted. */
#ifndef SERVE_IMAGES_H
#define SERVE_IMAGES_H

#include "call.h"

#include <attend_vision.h>

typedef struct serve_images {
    int64_t n;
    att_image *image; /* [n] */
    size_t bytes;     /* of their pixels, of what requests may use together */
} serve_images;

/* Decodes images: base64, also as a data URL, or the files of a form. Returns false if the request was refused.
 * serve_images_free frees them, also then. */
bool serve_images_read(serve_call *c, const char *field, const serve_texts *given, serve_images *out);
void serve_images_free(const serve_call *c, serve_images *images);
/* Copies the images of a batch's items to `to` [b->n], as views: job i has those that `of` returns. */
void serve_images_gather(const serve_batch *b, const serve_images *(*of)(const serve_job *j), att_image *to);

#endif
