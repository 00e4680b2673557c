/* Row transforms: what a score does to each row of queries, and of keys, before the tiles. */
#ifndef ATT_ATTN_PROLOGUE_H
#define ATT_ATTN_PROLOGUE_H

#include "attn/call/call.h"

/* Returns whether the transforms use the score's parameter n, so that tiles do not see it. */
bool att_transform_uses_param(const att_plan *plan, int n);
/* Returns the bytes that transformed rows of a call take. */
size_t att_transform_workspace(const att_call *call);

/* Transforms the rows of a call if its score requires it: sets call->q_rows and k_rows. */
att_status att_transform_begin(att_call *call);
void att_transform_end(att_call *call);

#endif
