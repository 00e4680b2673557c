/* attend._attend.ImageSet: images with classes (image_set.c). */
#ifndef ATT_PYTHON_IMAGE_SET_H
#define ATT_PYTHON_IMAGE_SET_H

#include "attend_vision.h"
#include "module.h"

/* The set of an argument. NULL with an exception: it is something else */
att_image_set *image_set_of(module_state *state, PyObject *object);

#endif
