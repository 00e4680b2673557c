/* The forward drivers: many queries (forward.c), few queries (decode.c). */
#ifndef ATT_ATTN_FORWARD_H
#define ATT_ATTN_FORWARD_H

#include "attn/block/block.h"

/* The running maximum and sum of the softmax, [columns] each, and the output so far, o [value_dim][columns] in
 * forward.c and [columns][value_dim] in decode.c. */
typedef struct att_accumulator {
    float *max, *sum, *o;
    bool begun; /* o has been written */
} att_accumulator;

/* What has no value joins the softmax of rows that attend to something, maximum and sum [rows]; left [rows]: what
 * remains of their o. Of a plan with a sink. */
void att_add_sink(const att_plan *plan, const att_head_view *view, int rows, float *max, float *sum, float *left);
/* Few queries over many keys (decode.c): the same bits, another way. */
enum { ATT_DECODE_QUERIES = 8 }; /* queries of heads that share keys, together */
bool att_decode_suits(const att_call *call);
att_status att_decode(const att_call *call);
size_t att_decode_workspace(const att_call *call); /* bytes, over all threads */

/* Floats of scratch that one thread needs in forward, where the longest sequence has tk keys. */
size_t att_forward_scratch(const att_plan *plan, bool copies, int64_t tk);

#endif
