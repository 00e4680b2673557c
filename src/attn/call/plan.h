/* A plan: a checked spec, with the stages of the running instruction set. */
#ifndef ATT_ATTN_PLAN_H
#define ATT_ATTN_PLAN_H

#include "attn/stage/stage.h"

#include <stdatomic.h>

enum { ATT_MAX_SCRATCH_BLOCKS = 8, ATT_MAX_Q_TILES = 32 };

typedef struct att_scratch_block att_scratch_block;
struct att_plan {
    att_ctx *ctx;
    att_attention_spec spec; /* defaults filled in */
    const att_kernels *kernels;
    att_vectors vectors;
    const att_score *score;               /* of the running instruction set, as are the modifiers */
    const att_row_transforms *transforms; /* NULL: the tiles see the rows of q and k as they are */
    int64_t q_dim, k_dim;                 /* of rows as the tiles see them */
    int n_modifiers, n_masks;
    const att_modifier *modifier[ATT_MAX_STAGES];
    const att_mask *mask[ATT_MAX_STAGES];
    unsigned flags;        /* of all stages together */
    bool scale_in_queries; /* the scale is in the packed_q queries */
    bool words;            /* bf16 is multiplied in pairs: forward all of it, backward what S and dP are made of */
    bool scale_in_softmax; /* and then the scale is part of the softmax */
    bool no_params;        /* no stage has a parameter or asks for one, so sites need no view of them */
    int sink;              /* which modifier is the sink, or -1 */
    /* Scratch memory that earlier calls have left, as many as may run at once. */
    _Atomic(att_scratch_block *) scratch_blocks[ATT_MAX_SCRATCH_BLOCKS];
};

/* Of an instruction set. */
att_vectors att_vectors_of(const att_kernels *kernels);
bool att_plan_uses(const att_plan *plan, const att_mask *mask);
/* What the packed_q queries were multiplied with. */
static inline float att_query_scale(const att_plan *plan) { return plan->scale_in_queries ? plan->spec.scale : 1; }

#endif
