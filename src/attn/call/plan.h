/* A plan: a checked spec, with the stages of the running instruction set. */
#ifndef ATT_ATTN_PLAN_H
#define ATT_ATTN_PLAN_H

#include "attn/stage/stage.h"

enum { ATT_MAX_Q_TILES = 32 };

typedef struct att_scratch_pool att_scratch_pool; /* of memory that earlier calls left (scratch.c) */
/* Copies of the spec's modifiers and masks. */
typedef struct att_plan_modifier {
    att_modifier stage;
    const att_modifier *given; /* the caller's pointer, perhaps no longer valid: it only identifies built-in
                                * modifiers */
    double value[2];
    int param; /* its first parameter among the plan's */
    int index; /* its index among all stages of the spec */
} att_plan_modifier;
typedef struct att_plan_modifiers {
    int n, sink; /* sink: index of the sink, or -1 */
    att_plan_modifier list[ATT_MAX_STAGES];
} att_plan_modifiers;
typedef struct att_plan_mask {
    att_mask stage;
    double value[2];
    int param, index; /* as in att_plan_modifier */
} att_plan_mask;
typedef struct att_plan_masks {
    int n;
    att_plan_mask list[ATT_MAX_STAGES];
} att_plan_masks;
/* The parameters that stages declare: of the score from 0 on, then of the stages in the spec's order. */
typedef struct att_plan_param {
    const att_param_shape *shape;
    const char *stage_name;
    int stage; /* index of the stage in the spec; -1: the score */
    int given; /* index in args.param; -1: not used in this plan */
    bool of_mask;
} att_plan_param;
typedef struct att_plan_params {
    int n, n_given; /* n_given: number that calls pass */
    att_plan_param list[ATT_MAX_PARAMS];
} att_plan_params;
/* Where spec.scale is applied; if both are false, to the scores. */
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
    const att_builtin_score *builtin;     /* its built-in functions; with ATT_STAGE_PRODUCT those of dot; otherwise
                                           * none */
    const att_row_transforms *transforms; /* NULL: the tiles see the rows of q and k as they are */
    int64_t q_dim, k_dim;                 /* of rows as the tiles see them */
    att_plan_modifiers modifiers;
    att_plan_masks masks;
    att_plan_params params;
    unsigned flags; /* of all stages together */
    att_plan_scale scale;
    bool bf16_pairs; /* bf16 is multiplied in pairs: in the forward everywhere, in the backward for S and dP */
    att_scratch_pool *scratch;
};

/* Returns the functions on vectors of an instruction set, for stages. */
att_vectors att_vectors_of(const att_kernels *kernels);
/* Returns a head's view of the sink's parameter, of param [n_params]. */
static inline const att_param_view *att_sink_of(const att_plan *plan, const att_param_view *param)
{
    return &param[plan->modifiers.list[plan->modifiers.sink].param];
}
/* Returns whether a function of the score turns products q . k into scores. */
static inline bool att_score_changes_products(const att_plan *plan) { return plan->score.flags & ATT_STAGE_PRODUCT; }
/* Returns the factor of the packed queries. */
static inline float att_query_scale(const att_plan *plan) { return plan->scale.in_queries ? plan->spec.scale : 1; }

#endif
