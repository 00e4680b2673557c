/* Row prologues: what a score does to each row of queries, and of keys, by itself. */
#ifndef ATT_ATTN_PROLOGUE_H
#define ATT_ATTN_PROLOGUE_H

#include "attn/call/call.h"

/* Does the prologue use the score's parameter n, so that tiles do not see it? */
bool att_prologue_has(const att_plan *plan, int n);
/* Bytes that prepared rows of a call take. */
size_t att_prologue_bytes(const att_call *call);

/* Prepares the rows of a call where its score says so: call->q_rows and k_rows. */
att_status att_prologue_begin(att_call *call);
void att_prologue_end(att_call *call);

#endif
