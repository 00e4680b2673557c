/* The images of captions, read block by block, and their features from an encoder. */
#ifndef CLI_CAPTION_CAPTION_IMAGES_H
#define CLI_CAPTION_CAPTION_IMAGES_H

#include "captioner.h"

/* Calls each with images first .. first + count - 1 of those at paths [n], which it reads. unit: for the progress. */
int caption_image_blocks(const cli_captioner *m, const char *const *paths, int64_t n, const char *unit,
                         int (*each)(void *user, int64_t first, int64_t count, const att_image *images), void *user);

/* Computes the features of images at paths [n]: means over all locations of the encoder's grids. out [n,
 * m->info.features]. */
int caption_image_features(const cli_captioner *m, const char *const *paths, int64_t n, double *out);

#endif
