/* Views: what is known about them, and the checks that every entry makes before it computes. */
#ifndef ATT_TENSOR_H
#define ATT_TENSOR_H

#include "base/base.h"
#include "util/util.h"

/* Elements of a view that passed att_wrap or att_check; 1 for rank 0. */
int64_t att_count(const att_tensor *t);
/* Dense: the last dimension contiguous, each other stride the product of the dimensions behind it. */
bool att_is_dense(const att_tensor *t);
/* The address ranges of two views have a byte in common (the elements themselves need not). */
bool att_overlap(const att_tensor *a, const att_tensor *b);

enum { ATT_SHAPE_TEXT = ATT_MAX_RANK * 22 + 3 };
/* "[2, 3, 64]" into text, which it returns. */
const char *att_shape_text(const att_tensor *t, char text[ATT_SHAPE_TEXT]);

/* The checks: ATT_OK, or an error whose sentence names the argument and both values. */

/* Any sound view: on the CPU, a known dtype, rank and sizes that can exist, memory unless it is empty. */
att_status att_check_view(att_ctx *ctx, const char *name, const att_tensor *t);
/* A sound view of this dtype and rank. */
att_status att_check(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* The same, to be written: no two elements may be one. */
att_status att_check_output(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank);
/* t->dim[i] is `value`, which is that of `what`: att_check_dim(ctx, "b", b, 0, "a.dim[1]", a->dim[1]). */
att_status att_check_dim(att_ctx *ctx, const char *name, const att_tensor *t, int i, const char *what, int64_t value);
/* The last dimension is contiguous. */
att_status att_check_contiguous(att_ctx *ctx, const char *name, const att_tensor *t);
/* Same rank and dimensions: "out is [2, 3] but x is [2, 4]". */
att_status att_check_same_shape(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                                const att_tensor *other);
/* No byte in common. */
att_status att_check_apart(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                           const att_tensor *other);

#endif
