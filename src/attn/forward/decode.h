/* Declarations that the files of decoding share. decode.c runs the segments, decode_segment.c computes one. */
#ifndef ATT_ATTN_DECODE_H
#define ATT_ATTN_DECODE_H

#include "attn/forward/accumulator.h"
#include "attn/forward/forward.h"

/* The query heads that share a key head. A column is one query of one of them: queries of head 0, of head 1 ... */
typedef struct att_decode_group {
    const att_plan *plan;
    int heads, tq, columns;
    att_head_view head[ATT_DECODE_QUERIES];
} att_decode_group;

/* Scratch memory of one thread. */
typedef struct att_decode_scratch {
    float *q;               /* [columns][q_dim], scaled */
    float *s;               /* [columns][ATT_KEY_BLOCK] scores, then weights */
    float *rescale;         /* [columns] */
    float *tile, *packed_q; /* for stages that work on tiles: [ATT_KEY_BLOCK][q_tile], [q_dim][q_tile] */
    float *keys, *values;   /* [ATT_KEY_BLOCK][dim], converted */
    float *terms;           /* [q_tile + ATT_KEY_BLOCK], if the score has a term of each row, queries before keys */
    float *rows;            /* [tq, q_dim], converted */
    float *groups, *masks;  /* two att_decode_group, one of mask tiles: too large for small stacks */
    att_prefetch prefetch;
} att_decode_scratch;
/* Lays scratch memory for up to `columns` columns out from p on and returns how many floats that takes. */
size_t att_decode_lay_out(const att_call *call, int columns, float *p, att_decode_scratch *w);

/* Returns how far rows of o are apart, [columns][o_stride]. */
static inline int64_t att_decode_o_stride(const att_plan *plan) { return att_round_up(plan->spec.value_dim, 16); }
/* Accumulates keys [first, last), a segment; maximum is -inf and sum 0 for columns that attend to none. next: the group
 * whose keys are read after these, from next_key on. */
void att_decode_segment(const att_decode_group *g, int64_t first, int64_t last, att_decode_scratch *w,
                        att_accumulator to, const att_decode_group *next, int64_t next_key);

#endif
