/* Ranges of dimensions, which quantize vectors to int8 and uint8: a matrix [2, dim] of the lowest and highest numbers,
 * in a .npy file next to the vectors. */
#ifndef CLI_SENTENCE_RANGES_H
#define CLI_SENTENCE_RANGES_H

#include <attend_vectors.h>

/* Returns the path of the ranges of vectors in this file, "corpus.npy.ranges.npy", malloc'd; NULL: out of memory. */
char *cli_ranges_path(const char *vectors);
/* Reads ranges [2, dim] from a file; dim is that of the vectors of `model`. *ranges: malloc'd. */
int cli_ranges_read(const char *path, int64_t dim, const char *model, float **ranges);
/* Computes the ranges of vectors in a .npy file. */
int cli_ranges_of_vectors(att_ctx *ctx, const char *path, int64_t dim, const char *model, float **ranges);
int cli_ranges_write(const char *path, int64_t dim, const float *ranges);

#endif
