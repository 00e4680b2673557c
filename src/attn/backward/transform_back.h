/* From gradients of the rows that tiles see to those of the caller's. */
#ifndef ATT_ATTN_PROLOGUE_BACK_H
#define ATT_ATTN_PROLOGUE_BACK_H

#include "attn/call/operand.h"

/* Bytes that the gradients of transformed rows take. */
size_t att_transform_back_workspace(const att_call *call);
/* Where the gradients of the rows that tiles see go: the caller's, or memory from which they go on. */
typedef struct att_row_grads {
    att_tensor dq, dk; /* zero: not wanted */
    bool add_dq, add_dk;
    float *memory[3], *packed, *scratch_blocks, *param;
} att_row_grads;
/* On failure, too, att_transform_back_end is due. */
att_status att_transform_back_begin(const att_call *call, const att_attention_grads *g, att_row_grads *rows);
/* From these to the gradients of q, k and the parameters. */
void att_transform_back(const att_call *call, const att_attention_grads *g, const att_row_grads *rows);
void att_transform_back_end(const att_call *call, att_row_grads *rows);

/* The gradient of the parameter, = or += the sum over all rows of x^T slope, or of slope^T x, in ascending order;
 * gradients: the gradients of transformed rows; memory: so many floats. (side_param.c) */
size_t att_projection_back_workspace(const att_call *call, const att_qk_operand *x);
void att_projection_back(const att_call *call, const att_qk_operand *x, const att_tensor *grads,
                         const att_tensor *gradient, bool add, float *memory);

#endif
