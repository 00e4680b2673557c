/* The forward: many queries (tiles.c), few queries (decode.c), and the choice between them (forward.c). */
#ifndef ATT_ATTN_FORWARD_H
#define ATT_ATTN_FORWARD_H

#include "attn/call/call.h"

/* Splits a call into the sequences that are decoded, because they have few queries, and the others, so that each is
 * computed as if it were alone. False: all are computed in the same way, or it makes no difference. */
bool att_forward_split(const att_call *call, att_call *decoded, att_call *tiled);
/* Returns whether the call computes this sequence. */
static inline bool att_forward_supports(const att_call *call, const att_head_view *view)
{
    return view->rows > 0 && call->min_tq <= view->head.tq && view->head.tq <= call->max_tq;
}

att_status att_attend_tiles(const att_call *call);
/* Returns the floats of scratch memory that one thread needs for tiles, if the longest sequence has tk keys. */
size_t att_tiles_scratch(const att_plan *plan, bool copies, int64_t tk);

/* Decoding: few queries over many keys, with the same bits as tiles. */
enum { ATT_DECODE_QUERIES = 8 }; /* maximum number of queries of all heads that share keys */
bool att_decode_suits(const att_call *call);
att_status att_decode(const att_call *call);
size_t att_decode_workspace(const att_call *call); /* bytes, over all threads */

#endif
