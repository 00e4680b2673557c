/* Captions of a model in training. */
#ifndef ATT_CAPTION_CAPTION_VALIDATION_H
#define ATT_CAPTION_CAPTION_VALIDATION_H

#include "caption/words.h"
#include "caption/caption_images.h"

/* *cider: CIDEr-D of greedy captions of the first n images for validation, against all of theirs. */
att_status att_caption_greedy_cider(att_caption_images *images, const att_words *words, int64_t n, double *cider);

#endif
