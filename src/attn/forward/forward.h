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
/* Splits a call into the sequences that are decoded, having few queries, and the others, so that a sequence is computed
 * as if it were alone; false: all are computed in the same way, or it makes no difference (forward.c). */
bool att_forward_split(const att_call *call, att_call *decoded, att_call *tiled);
/* Does the call compute this sequence? */
static inline bool att_forward_supports(const att_call *call, const att_head_view *view)
{
    return view->rows > 0 && call->min_tq <= view->head.tq && view->head.tq <= call->max_tq;
}
att_status att_decode(const att_call *call);
size_t att_decode_workspace(const att_call *call); /* bytes, over all threads */

/* Floats of scratch that one thread needs in forward, where the longest sequence has tk keys. */
size_t att_forward_scratch(const att_plan *plan, bool copies, int64_t tk);

#endif
