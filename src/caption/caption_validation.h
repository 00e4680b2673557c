/* Computes captions during a training. */
#ifndef ATT_CAPTION_CAPTION_VALIDATION_H
#define ATT_CAPTION_CAPTION_VALIDATION_H

#include "caption/words.h"
#include "caption/caption_images.h"

/* Sets *cider to the CIDEr-D of greedy captions of the first n images for validation, compared with all captions of
 * these images. */
att_status att_caption_greedy_cider(att_caption_images *images, const att_words *words, int64_t n, double *cider);

#endif
