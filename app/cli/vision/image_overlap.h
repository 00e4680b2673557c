/* Images that are both in training and in validation, which then measures too much. */
#ifndef CLI_VISION_IMAGE_OVERLAP_H
#define CLI_VISION_IMAGE_OVERLAP_H

#include "cli/train/training_images.h"

#include <attend_vision.h>

/* Fails if two sets have images of the same group (att_image_set_group). */
int cli_groups_refuse_shared(const att_image_set *train, const att_image_set *valid);
/* Reports images of the second set that have the pixels of images of the first one. Both were checked by t; if it did
 * not decode them, because a training continues, or if memory is lacking, nothing is reported. */
void cli_images_note_twice(const cli_training_images *t, const att_image_set *train, const att_image_set *valid);

#endif
