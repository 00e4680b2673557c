/* A plan: a checked spec, with the stages of the running instruction set. */
#ifndef ATT_ATTN_PLAN_H
#define ATT_ATTN_PLAN_H

#include "attn/stage/stage.h"

enum { ATT_MAX_Q_TILES = 32 };

typedef struct att_scratch_pool att_scratch_pool; /* of memory that earlier calls have left (scratch.c) */
/* Copies of the spec's modifiers and masks. */
typedef struct att_plan_modifier {
    att_modifier stage;
    const att_modifier *given; /* the caller's pointer, perhaps no longer valid: only to tell built-in ones */
    double value[2];
    int param; /* its first among the plan's */
    int index; /* its number among all stages of the spec */
} att_plan_modifier;
typedef struct att_plan_modifiers {
    int n, sink; /* sink: which one is the sink, or -1 */
    att_plan_modifier list[ATT_MAX_STAGES];
} att_plan_modifiers;
typedef struct att_plan_mask {
    att_mask stage;
    double value[2];
    int param, index; /* as a modifier's */
} att_plan_mask;
typedef struct att_plan_masks {
    int n;
    att_plan_mask list[ATT_MAX_STAGES];
} att_plan_masks;
/* The parameters that stages declare: of the score from 0 on, then of the stages in the spec's order. */
typedef struct att_plan_param {
    const att_param_shape *shape;
    const char *stage_name;
    int stage; /* of the spec's; the score is -1 */
    int given; /* which of args.param, or -1: not used in this plan */
    bool of_mask;
} att_plan_param;
typedef struct att_plan_params {
    int n, n_given; /* n_given: those that calls give */
    att_plan_param list[ATT_MAX_PARAMS];
} att_plan_params;
/* Where spec.scale is applied; else to the scores. */
typedef struct att_plan_scale {
    bool in_queries; /* it is in the packed queries */
    bool in_softmax; /* with bf16_pairs it is part of the softmax */
} att_plan_scale;
struct att_plan {
    att_ctx *ctx;
    att_attention_spec spec; /* defaults filled in */
    const att_kernels *kernels;
    att_vectors vectors;
    att_score score;                      /* a copy, of the running instruction set, as the modifiers are */
    const att_builtin_score *builtin;     /* what it has as a built-in one; with ATT_STAGE_PRODUCT dot, else nothing */
    const att_row_transforms *transforms; /* NULL: the tiles see the rows of q and k as they are */
    int64_t q_dim, k_dim;                 /* of rows as the tiles see them */
    att_plan_modifiers modifiers;
    att_plan_masks masks;
    att_plan_params params;
    unsigned flags; /* of all stages together */
    att_plan_scale scale;
    bool bf16_pairs; /* bf16 is multiplied in pairs: forward all of it, backward what S and dP are made of */
    att_scratch_pool *scratch;
};

/* The functions on vectors of an instruction set, for stages. */
att_vectors att_vectors_of(const att_kernels *kernels);
/* A head's view of the sink's parameter, of param [n_params]. */
static inline const att_param_view *att_sink_of(const att_plan *plan, const att_param_view *param)
{
    return &param[plan->modifiers.list[plan->modifiers.sink].param];
}
/* Does a function of the score change products q . k to scores? */
static inline bool att_score_changes_products(const att_plan *plan) { return plan->score.flags & ATT_STAGE_PRODUCT; }
/* The factor of the packed queries. */
static inline float att_query_scale(const att_plan *plan) { return plan->scale.in_queries ? plan->spec.scale : 1; }

#endif
