/* Groups of images that belong together. */
#ifndef ATT_VISION_IMAGE_GROUPS_H
#define ATT_VISION_IMAGE_GROUPS_H

#include "vision/image_set.h"

enum { ATT_GROUP_STREAM = 4 }; /* of att_permutation */

/* Marks images of whole groups at random, about `share` of each class. Each class keeps one at least, and has one
 * marked if groups permit. *n: how many are marked. marked [images] is false before. */
att_status att_image_groups_mark(const att_image_set *s, double share, uint64_t seed, bool *marked, int64_t *n);

#endif
