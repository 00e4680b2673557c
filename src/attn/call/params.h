/* The parameters of a call's stages. */
#ifndef ATT_ATTN_PARAMS_H
#define ATT_ATTN_PARAMS_H

#include "attn/call/call.h"

/* Checks the parameters of the args, copies them to the call, and calls `inspect` of the masks that have it. */
att_status att_params_check(att_call *call);
/* Checks the shape and strides of one parameter, or of its gradient. */
att_status att_param_check(const att_call *call, const char *name, const att_tensor *t, const att_param_shape *shape);
/* Returns where a parameter per pair begins for one head, and its strides: 0 if it is broadcast. */
int64_t att_pairs_start(const att_tensor *t, const att_head *at, int64_t stride[2]);

#endif
