/* The forward: many queries (tiles.c), few queries (decode.c), and which of them a call is (forward.c). */
#ifndef ATT_ATTN_FORWARD_H
#define ATT_ATTN_FORWARD_H

#include "attn/call/call.h"

/* Splits a call into the sequences that are decoded, having few queries, and the others, so that a sequence is computed
 * as if it were alone; false: all are computed in the same way, or it makes no difference. */
bool att_forward_split(const att_call *call, att_call *decoded, att_call *tiled);
/* Does the call compute this sequence? */
static inline bool att_forward_supports(const att_call *call, const att_head_view *view)
{
    return view->rows > 0 && call->min_tq <= view->head.tq && view->head.tq <= call->max_tq;
}

att_status att_attend_tiles(const att_call *call);
/* Floats of scratch that one thread needs for tiles, where the longest sequence has tk keys. */
size_t att_tiles_scratch(const att_plan *plan, bool copies, int64_t tk);

/* Few queries over many keys: the same bits, computed otherwise. */
enum { ATT_DECODE_QUERIES = 8 }; /* queries of heads that share keys, together */
bool att_decode_suits(const att_call *call);
att_status att_decode(const att_call *call);
size_t att_decode_workspace(const att_call *call); /* bytes, over all threads */

#endif
