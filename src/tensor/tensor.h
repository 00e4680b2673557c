/* Tensor views: properties, and the checks that each public function makes before it computes. */
#ifndef ATT_TENSOR_H
#define ATT_TENSOR_H

#include "base/base.h"
#include "util/shape.h"
#include "util/util.h"

/* Returns the number of elements of a view that passed att_wrap or att_check; 1 for rank 0. */
int64_t att_count(const att_tensor *t);
/* Returns whether a type has blocks: ATT_Q8_0 and similar ones. */
bool att_is_quantized(att_dtype t);
/* Returns whether a type is f32, f16, bf16, i8 or quantized: att_tensor_convert converts between these, but not to i8.
 */
bool att_is_real(att_dtype t);
/* Converts x [n] -> y [n]. */
void att_from_i8(int64_t n, const int8_t *x, float *y);
/* Converts rows of blocks -> x [n], n in whole blocks. */
void att_dequantize(att_dtype t, int64_t n, const void *blocks, float *x);
/* Returns whether att_quantize has this type. */
bool att_can_quantize(att_dtype t);
/* Converts x [n] -> rows of blocks. */
void att_quantize(att_dtype t, int64_t n, const float *x, void *blocks);
/* Returns whether a view is dense: row-major without gaps. */
bool att_is_dense(const att_tensor *t);
/* Returns whether the byte ranges of two views overlap (even if no element is shared). */
bool att_overlap(const att_tensor *a, const att_tensor *b);

/* Checks: ATT_OK, or an error that names the argument and both values. */

/* Checks for a valid view: known dtype, rank and sizes in range, data not NULL unless empty. */
att_status att_check_view(att_ctx *ctx, const char *name, const att_tensor *t);
/* Checks for a valid view of this dtype and rank. */
att_status att_check(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* Checks for a valid output: also, no two elements overlap. */
att_status att_check_output(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* Checks that t->dim[i] is value, the size of `what`: att_check_dim(ctx, "b", b, 0, "a.dim[1]", a->dim[1]). */
att_status att_check_dim(att_ctx *ctx, const char *name, const att_tensor *t, int i, const char *what, int64_t value);
/* Checks that the last dimension is contiguous. */
att_status att_check_contiguous(att_ctx *ctx, const char *name, const att_tensor *t);
/* Checks that rank and dimensions are equal: "out is [2, 3] but x is [2, 4]". */
att_status att_check_same_shape(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                                const att_tensor *other);
/* Checks that two views do not overlap. */
att_status att_check_apart(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                           const att_tensor *other);

#endif
