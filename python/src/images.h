/* Images of an argument as the library takes them: pixels of 8 bits. */
#ifndef ATT_PYTHON_IMAGES_H
#define ATT_PYTHON_IMAGES_H

#include "attend_vision.h"
#include "module.h"

typedef struct images {
    att_image *image; /* [n] */
    int64_t n;
} images;

/* Reads a sequence of images: paths (str, os.PathLike), files in memory (buffers of one dimension), or pixels (buffers
 * uint8 [height, width] or [height, width, 1 or 3]). false with an exception that names the number of the image, from
 * `first` on */
bool images_read(module_state *state, PyObject *object, long long first, images *out);
void images_release(module_state *state, images *i);

#endif
