/* The order of training data in an epoch, for all trainings. */
#ifndef ATT_TRAIN_SHUFFLE_H
#define ATT_TRAIN_SHUFFLE_H

#include <stdint.h>

/* Sets x [n] to a permutation of 0 to n - 1 (Fisher, Yates) by random numbers of a seed, stream and number. */
void att_permutation(uint64_t seed, uint32_t stream, int64_t number, int64_t n, uint32_t *x);

#endif
