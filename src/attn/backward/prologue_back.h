/* From gradients of the rows that tiles see to those of the caller's. */
#ifndef ATT_ATTN_PROLOGUE_BACK_H
#define ATT_ATTN_PROLOGUE_BACK_H

#include "attn/call/side.h"

/* Bytes that the gradients of prepared rows take. */
size_t att_prologue_bytes_back(const att_call *call);
/* Where the gradients of the rows that tiles see go: the caller's, or memory from which they go on. */
typedef struct att_row_grads {
    att_tensor dq, dk; /* zero: not wanted */
    bool add_dq, add_dk;
    float *memory[3], *packed, *spare, *param;
} att_row_grads;
/* On failure, too, att_prologue_end_back is due. */
att_status att_prologue_begin_back(const att_call *call, const att_attention_grads *g, att_row_grads *rows);
/* From these to the gradients of q, k and the parameters. */
void att_prologue_back(const att_call *call, const att_attention_grads *g, const att_row_grads *rows);
void att_prologue_end_back(const att_call *call, att_row_grads *rows);

/* The gradient of the parameter, = or += the sum over all rows of x^T slope, or of slope^T x, in ascending order;
 * slopes: the gradients of prepared rows; memory: so many floats. (side_param.c) */
size_t att_side_param_count(const att_call *call, const att_side *x);
void att_side_param_back(const att_call *call, const att_side *x, const att_tensor *slopes, const att_tensor *gradient,
                         bool add, float *memory);

#endif
