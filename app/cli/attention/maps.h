/* Draws the weights that an image's locations get, over the image. */
#ifndef CLI_ATTENTION_MAPS_H
#define CLI_ATTENTION_MAPS_H

#include "attended.h"

/* Show the attention of a vision model, and of a captioner. Functions for attention_kind.show. */
int attention_show_image(attended *a);
int attention_show_caption(attended *a);

#endif
