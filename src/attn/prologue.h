/* Row prologues: what a score does to each row of queries, and of keys, by itself. */
#ifndef ATT_ATTN_PROLOGUE_H
#define ATT_ATTN_PROLOGUE_H

#include "attn/attn.h"

/* Does the prologue use the score's parameter n, so that tiles do not see it? */
bool att_prologue_has(const att_plan *plan, int n);
/* Bytes that prepared rows of a call take, and, backward, the gradients of all of them. */
size_t att_prologue_bytes(const att_call *call);
size_t att_prologue_bytes_back(const att_call *call);

/* Prepares the rows of a call where its score says so: call->q_rows and k_rows. */
att_status att_prologue_begin(att_call *call);
void att_prologue_end(att_call *call);

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

#endif
