/* Functions that quantization and search share. */
#ifndef ATT_VECTORS_VECTORS_H
#define ATT_VECTORS_VECTORS_H

#include "attend_vectors.h"

static inline bool att_precision_has_ranges(att_precision p)
{
    return p == ATT_PRECISION_INT8 || p == ATT_PRECISION_UINT8;
}

/* Checks p, sizes and ranges. call: the name of the function, for errors. */
att_status att_check_vectors(att_ctx *ctx, const char *call, att_precision p, int64_t n, int64_t dim,
                             const float *ranges);

/* Quantize x [dim] to codes, and return number d of the vector with these codes. att_check_vectors must have accepted
 * the arguments. ranges [2, dim] or NULL. */
void att_quantize_vector(att_precision p, const float *x, int64_t dim, const float *ranges, void *codes);
double att_dequantized(att_precision p, const void *codes, int64_t dim, const float *ranges, int64_t d);

#endif
