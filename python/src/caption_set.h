/* attend._attend.CaptionSet: images with captions (caption_set.c). */
#ifndef ATT_PYTHON_CAPTION_SET_H
#define ATT_PYTHON_CAPTION_SET_H

#include "attend_caption.h"
#include "module.h"

/* The set of an argument. NULL with an exception: it is something else */
att_caption_set *caption_set_of(module_state *state, PyObject *object);

#endif
