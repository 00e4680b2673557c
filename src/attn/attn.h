/* Inside attention: the plan, a checked call, and what the drivers share. */
#ifndef ATT_ATTN_H
#define ATT_ATTN_H

#include "attn/stage.h"

#include <stdatomic.h>

enum { ATT_MAX_SPARES = 8 };

struct att_plan {
    att_ctx *ctx;
    att_attention_spec spec; /* defaults filled in */
    const att_kernels *kernels;
    const att_score_set *score;
    int n_modifiers, n_masks;
    const att_modifier_set *modifier[ATT_MAX_STAGES];
    unsigned needs; /* of all stages together */
    /* Scratch memory that earlier calls have left, so that most calls allocate nothing; as many as may run at once. */
    _Atomic(float *) spare[ATT_MAX_SPARES];
};

/* A call whose arguments have been checked. */
typedef struct att_call {
    const att_plan *plan;
    att_attention_args args; /* whatever the caller's size of it */
    bool ragged;
    int64_t sequences, max_tq, max_tk;
} att_call;

/* outputs: out and lse are used; without them only q and k are looked at. */
att_status att_call_check(const att_plan *plan, const att_attention_args *args, bool outputs, att_call *call);
/* One head of one sequence of the call. */
void att_call_site(const att_call *call, int64_t sequence, int64_t head, att_site *site);

/* Floats of scratch that one thread needs. */
size_t att_plan_scratch(const att_plan *plan);

/* What masks leave of a block of queries by a block of at most ATT_KEY_BLOCK keys. */
typedef struct att_cut {
    int n_runs;
    att_run run[ATT_KEY_BLOCK / ATT_SUB_TILE]; /* keys, counted from k0, where anything attends; ascending */
    bool partial;                              /* some pairs in the runs do not attend: */
    uint64_t bits[ATT_KEY_BLOCK];              /* bit i: query q0 + i attends to the key */
} att_cut;
void att_cut_block(const att_plan *plan, const att_site *site, int64_t q0, int queries, int64_t k0, int keys,
                   att_cut *cut);
/* Scores, modified and masked, of the runs: s [keys][panel], turned queries q [head_dim][panel]. */
void att_score_block(const att_plan *plan, const att_site *site, int64_t q0, int queries, int64_t k0,
                     const att_cut *cut, const float *q, float *s);

/* The definition, in double, one row at a time; what the tests hold everything else against. weights [tk] or NULL,
 * out [value_dim] or NULL; returns the row's log-sum-exp. */
double att_ref_attention_row(const att_plan *plan, const att_site *site, int64_t q, double *weights, double *out);

#endif
