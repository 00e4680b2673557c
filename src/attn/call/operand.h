/* One side of a call, its queries or its keys, if a score transforms them, row by row. */
#ifndef ATT_ATTN_SIDE_H
#define ATT_ATTN_SIDE_H

#include "attn/call/call.h"

/* One side of a call. Head h of its transformed rows is computed from head h / group of its rows. */
typedef struct att_qk_operand {
    const att_row_transform *how;
    const att_tensor *rows; /* f32 */
    const att_tensor *transformed;
    const att_tensor *param; /* [heads or 1, in, out], or [.., out, in] if how->out_first */
    int64_t in, out, heads, group;
} att_qk_operand;
att_qk_operand att_qk_operand_of(const att_call *call, bool of_keys);
static inline bool att_qk_shares_param(const att_qk_operand *x) { return x->param->dim[0] == 1; }

static inline bool att_is_zero(int64_t n, const float *x)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

/* The rows of one head in a tensor of the layout of q: `outer` times `inner` rows. */
typedef struct att_strided_rows {
    void *at;
    att_dtype dtype;
    int64_t outer, outer_step, inner, step;
} att_strided_rows;
att_strided_rows att_strided_rows_of(const att_call *call, const att_tensor *t, int64_t head);
/* Joins the rows of each tensor into one run, if the strides of both allow that. */
void att_strided_rows_join(att_strided_rows *a, att_strided_rows *b);
static inline void *att_strided_row_at(const att_strided_rows *l, int64_t elements)
{
    return (char *)l->at + elements * (int64_t)att_dtype_size(l->dtype);
}

/* Computes y [n] from x [n], perhaps from u [n], and from itself; f32 unless stated otherwise. */
typedef void att_row_function(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y);
/* Calls f for all rows, on all threads. */
void att_for_each_row(const att_call *call, att_row_function *f, int64_t n, att_strided_rows x, att_strided_rows u,
                      att_strided_rows y);

/* Multiplies x [rows, k] by one head's packed parameter -> y [rows, n]; f32 (transform.c) */
void att_qk_multiply(const att_call *call, att_strided_rows x, att_strided_rows y, int64_t n, int64_t k,
                     const float *packed);
/* Packs one head's parameter for this product; backward: for the product with its transpose. */
void att_qk_pack(const att_call *call, const att_qk_operand *x, int64_t head, bool backward, float *packed);
/* Makes a tensor of rows in new memory: those of `like`, but `heads` of them, of dim numbers, `step` apart. */
att_status att_qk_make_rows(const att_call *call, const att_tensor *like, int64_t heads, int64_t dim, int64_t step,
                            float **memory, att_tensor *t);
/* Return the caller's q, or k, and how many rows one head has in all sequences. */
const att_tensor *att_qk_rows(const att_call *call, bool of_keys);
int64_t att_qk_count(const att_call *call, bool of_keys);

#endif
