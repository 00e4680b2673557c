/* Properties of numbers, of weights above all, that several chapters name. */
#ifndef EXPLAIN_NUMBERS_H
#define EXPLAIN_NUMBERS_H

#include <stdint.h>

/* Returns the index of the largest of a [n], of the first of equal ones. */
int64_t numbers_largest(const float *a, int64_t n);
/* Returns the entropy of weights [n], in bits. */
double numbers_entropy(const float *w, int64_t n);

#endif
