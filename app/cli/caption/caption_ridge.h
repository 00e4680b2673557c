/* Ridge regression: a classifier that gives each image the one of a few captions whose predicted score is the largest.
 */
#ifndef CLI_CAPTION_CAPTION_RIDGE_H
#define CLI_CAPTION_CAPTION_RIDGE_H

#include <attend.h>

typedef struct caption_ridge {
    int64_t width, kinds;
    double strength;      /* of the ridge, beside features of variance 1 */
    double *mean, *scale; /* [width]: of features, which become (x - mean) * scale */
    double *weight /* [kinds, width] */, *bias /* [kinds] */;
} caption_ridge;

/* Learns scores y [kinds, n] from features x [n, width], which are changed to mean 0 and variance 1. Of a few strengths
 * it uses the one that, trained on four fifths of the images, chooses best for the others. Free *r even after an
 * error. */
int caption_ridge_learn(caption_ridge *r, att_ctx *ctx, double *x, int64_t n, int64_t width, const float *y,
                        int64_t kinds);
/* Returns the kind of an image with features x [width], which become of mean 0 and variance 1 as those that were
 * trained on. */
int64_t caption_ridge_choose(const caption_ridge *r, double *x);
void caption_ridge_free(caption_ridge *r);

#endif
