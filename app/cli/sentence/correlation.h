/* Similarities of vectors, correlations of scores. */
#ifndef CLI_SENTENCE_CORRELATION_H
#define CLI_SENTENCE_CORRELATION_H

#include <attend_sentence.h>

/* Returns the cosine of the vectors a [dim] and b [dim]; 0 if one of them is zero. */
double cli_cosine(const float *a, const float *b, int64_t dim);
/* Returns the similarity of the vectors a [dim] and b [dim] by a measure. */
double cli_similar(att_similarity measure, const float *a, const float *b, int64_t dim);
/* Returns x clamped to [-1, 1], which rounding may exceed. NaN is not changed. */
float cli_clamp_cosine(float x);
/* Returns Pearson's correlation of a [n] and b [n]; NaN if one of them is constant. */
double cli_pearson(const double *a, const double *b, int64_t n);
/* Computes Spearman's correlation of a [n] and b [n]: Pearson's of their ranks. Equal values share their mean rank. NaN
 * if a value is NaN. */
int cli_spearman(const double *a, const double *b, int64_t n, double *correlation);

#endif
