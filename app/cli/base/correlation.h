/* Cosines of vectors, correlations of scores. */
#ifndef CLI_CORRELATION_H
#define CLI_CORRELATION_H

#include <stdint.h>

/* The cosine of the vectors a [dim] and b [dim]; 0 where one of them is all zeros. */
double cli_cosine(const float *a, const float *b, int64_t dim);
/* x clamped to [-1, 1], which a cosine may leave by rounding; NaN stays NaN. */
float cli_clamp_cosine(float x);
/* Pearson's correlation of a [n] and b [n]; NaN where one of them is constant. */
double cli_pearson(const double *a, const double *b, int64_t n);
/* Spearman's correlation of a [n] and b [n]: Pearson's of their ranks, where equal values share the mean of theirs;
 * NaN where a value is NaN. */
int cli_spearman(const double *a, const double *b, int64_t n, double *correlation);

#endif
