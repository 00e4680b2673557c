/* The parameters of a call's stages. */
#ifndef ATT_ATTN_PARAMS_H
#define ATT_ATTN_PARAMS_H

#include "attn/call/call.h"

/* Checks those of the args, takes them into the call, and asks the masks that inspect a call. */
att_status att_params_check(att_call *call);
/* Shape and order of one parameter, or of its gradient. */
att_status att_param_check(const att_call *call, const char *name, const att_tensor *t, const att_param_shape *shape);
/* Where a parameter per pair begins for one head, and its strides: 0 where it is broadcast. */
int64_t att_pairs_start(const att_tensor *t, const att_head *at, int64_t stride[2]);

#endif
