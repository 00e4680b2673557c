/* Tensor views: properties, and the checks that each public function makes before it computes. */
#ifndef ATT_TENSOR_H
#define ATT_TENSOR_H

#include "base/base.h"
#include "util/shape.h"
#include "util/util.h"

/* Number of elements of a view that passed att_wrap or att_check; 1 for rank 0. */
int64_t att_count(const att_tensor *t);
/* Is it a type of blocks: ATT_Q8_0 or a similar one? */
bool att_is_quantized(att_dtype t);
/* f32, f16, bf16, or quantized: what att_tensor_convert converts into one another */
bool att_is_real(att_dtype t);
/* Rows of blocks (quantize.c): blocks -> x [n], and x [n] -> blocks, n in whole blocks */
void att_dequantize(att_dtype t, int64_t n, const void *blocks, float *x);
void att_quantize(att_dtype t, int64_t n, const float *x, void *blocks);
/* Dense: row-major without gaps. */
bool att_is_dense(const att_tensor *t);
/* Do the byte ranges of two views overlap (even if no element is shared)? */
bool att_overlap(const att_tensor *a, const att_tensor *b);

/* Checks: ATT_OK, or an error that names the argument and both values. */

/* A valid view: known dtype, rank and sizes in range, data not NULL unless empty. */
att_status att_check_view(att_ctx *ctx, const char *name, const att_tensor *t);
/* A valid view of this dtype and rank. */
att_status att_check(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* A valid output: also, no two elements overlap. */
att_status att_check_output(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* t->dim[i] == value, the size of `what`: att_check_dim(ctx, "b", b, 0, "a.dim[1]", a->dim[1]). */
att_status att_check_dim(att_ctx *ctx, const char *name, const att_tensor *t, int i, const char *what, int64_t value);
/* The last dimension is contiguous. */
att_status att_check_contiguous(att_ctx *ctx, const char *name, const att_tensor *t);
/* Equal rank and dimensions: "out is [2, 3] but x is [2, 4]". */
att_status att_check_same_shape(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                                const att_tensor *other);
/* No overlap. */
att_status att_check_apart(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                           const att_tensor *other);

#endif
