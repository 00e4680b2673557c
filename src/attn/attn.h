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
/* The gradients of a backward call, whatever the caller's size of them, checked against it. */
att_status att_call_check_grads(const att_call *call, const att_attention_grads *grads, att_attention_grads *g);
/* Where one head of one sequence begins in a tensor of the layout of q (of_keys: of k), and its time steps' stride. */
float *att_call_rows(const att_call *call, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys,
                     int64_t *stride);
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
/* 0 x NaN is NaN: a row of keys or values that is not finite must not meet the weight 0 of a query that does not attend
 * to it. Such keys leave the runs, and are added afterwards to the queries that do attend. */
typedef struct att_clean {
    int n_runs, n_unclean;
    att_run run[ATT_KEY_BLOCK / ATT_SUB_TILE + ATT_KEY_BLOCK];
    int64_t unclean[ATT_KEY_BLOCK]; /* keys, counted from k0 */
} att_clean;
/* x [keys, dim]: the rows from k0 on. */
void att_cut_clean(const att_plan *plan, const att_cut *cut, int queries, const float *x, int64_t stride, int64_t dim,
                   att_clean *clean);
/* o [dim][panel] += x [keys, dim]^T w [keys][panel] over the unclean keys, for queries that attend. */
void att_add_unclean(const att_plan *plan, const att_cut *cut, const att_clean *clean, int queries, const float *x,
                     int64_t stride, int64_t dim, const float *w, int64_t w_stride, float *o);

/* Scores, modified and masked, of the runs: s [keys][panel], rows s_stride apart; turned queries q [head_dim][panel].
 */
void att_score_block(const att_plan *plan, const att_site *site, int64_t q0, int queries, int64_t k0,
                     const att_cut *cut, const float *q, float *s, int64_t s_stride);

/* The definition, in double, one row at a time; what the tests hold everything else against. weights [tk] or NULL,
 * out [value_dim] or NULL; returns the row's log-sum-exp. */
double att_ref_attention_row(const att_plan *plan, const att_site *site, int64_t q, double *weights, double *out);
/* Gradients of one row's sum(dout * out): adds to dq [head_dim], dk [tk, head_dim], dv [tk, value_dim]; weights [tk]
 * and out [value_dim] are those of the row. */
void att_ref_attention_row_backward(const att_plan *plan, const att_site *site, int64_t q, const double *weights,
                                    const double *out, const float *dout, double *dq, double *dk, double *dv);

#endif
