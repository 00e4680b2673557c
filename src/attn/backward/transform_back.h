/* From the gradients of transformed rows to those of the caller's rows and of the projections' parameters. */
#ifndef ATT_ATTN_TRANSFORM_BACK_H
#define ATT_ATTN_TRANSFORM_BACK_H

#include "attn/call/operand.h"

/* Returns the bytes that the gradients of transformed rows take. */
size_t att_transform_back_workspace(const att_call *call);
/* Where the backward writes the gradients of the rows that its tiles read: the caller's tensors, or scratch memory. */
typedef struct att_row_grads {
    att_tensor dq, dk; /* zero: not wanted */
    bool add_dq, add_dk;
    float *memory[3];
    float *packed, *sums, *param; /* a packed parameter, rows to add up in, scratch of att_projection_back */
} att_row_grads;
/* Prepares where gradients are written. att_transform_back_end must follow, even after an error. */
att_status att_transform_back_begin(const att_call *call, const att_attention_grads *g, att_row_grads *rows);
/* Computes the gradients of q, k and the parameters from those of the transformed rows. */
void att_transform_back(const att_call *call, const att_attention_grads *g, const att_row_grads *rows);
void att_transform_back_end(const att_call *call, att_row_grads *rows);

/* Sets or adds the gradient of a projection's parameter, from the gradients of the projected rows; scratch
 * [att_projection_back_workspace] floats. (projection_back.c) */
size_t att_projection_back_workspace(const att_call *call, const att_qk_operand *x);
void att_projection_back(const att_call *call, const att_qk_operand *x, const att_tensor *grads,
                         const att_tensor *gradient, bool add, float *scratch);

#endif
