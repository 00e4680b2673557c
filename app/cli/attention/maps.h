/* Weights of what an image's locations get, over the image. */
#ifndef CLI_ATTENTION_MAPS_H
#define CLI_ATTENTION_MAPS_H

#include "attended.h"

/* For attention_kind.show: of a vision model, and of a captioner. */
int attention_show_image(attended *a);
int attention_show_caption(attended *a);

#endif
