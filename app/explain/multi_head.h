/* A part of the chapter multi-head. */
#ifndef EXPLAIN_MULTI_HEAD_H
#define EXPLAIN_MULTI_HEAD_H

#include "layer.h"

enum { MULTI_HEAD_OUT = 2, MULTI_HEAD_PARAMETERS = 5 };

/* Shows layers that are not registered as parameters, in a list instead of nn.ModuleList. value
 * [MULTI_HEAD_PARAMETERS]: W_q, W_k, W_v, W_o, b_o; plan: causal, of the heads. */
void multi_head_unregistered(page *p, const layer *of, const att_plan *plan, const att_tensor *const *value);

#endif
