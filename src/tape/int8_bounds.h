/* Bounds of products of many columns from a byte of each number (kernel/int8_bounds.c), over all threads. */
#ifndef ATT_TAPE_INT8_BOUNDS_H
#define ATT_TAPE_INT8_BOUNDS_H

#include "base/base.h"
#include "kernel/kernel.h"
#include "util/util.h"

/* Returns the floats of B [n, k] as int8 copies, k at most ATT_INT8_MAX (SIZE_MAX: overflow). */
size_t att_int8_count(const att_ctx *ctx, int64_t n, int64_t k);

/* Packs B [n, k], whose rows row(of, i, y) writes -> packed [att_int8_count]; false: error set. */
bool att_int8_pack(att_ctx *ctx, int64_t n, int64_t k, void (*row)(const void *of, int64_t i, float *y), const void *of,
                   float *packed);

/* A product for which bounds are computed. */
typedef struct att_int8_product {
    int64_t m, n, k;
    const float *a;      /* [m, k] */
    const float *packed; /* B [n, k], by att_int8_pack */
    const float *bias;   /* [n], or NULL */
} att_int8_product;
/* Bounds the products of each row of A with the columns of B, bias added: upper [m, n] is an upper bound of a product
 * of f32 (gemm.h), and best [m] the largest lower bound. A bound may be NaN if numbers are not finite, and then has no
 * meaning. False: error set. */
bool att_int8_bounds(att_ctx *ctx, const att_int8_product *product, float *upper, float *best);

#endif
