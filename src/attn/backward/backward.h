/* Declarations that the backward's files share. backward.c runs the tasks; step.c makes one step of a task: its keys by
 * some tiles of queries; split.c computes log-sum-exps that are too large for a float. */
#ifndef ATT_ATTN_BACKWARD_H
#define ATT_ATTN_BACKWARD_H

#include "attn/backward/params_back.h"
#include "attn/backward/transform_back.h"
#include "attn/block/block.h"
#include "attn/call/transform.h"
#include "attn/call/scratch.h"

#include <math.h>
#include <string.h>

enum { ATT_BACKWARD_Q_TILES = 4 }; /* query tiles of a step: dK and dV are sums of chains of this length */

/* The queries of a step, n = ATT_BACKWARD_Q_TILES * q_tile of them, prepared for its products. */
typedef struct att_backward_queries {
    float *origin;                 /* [n] of split log-sum-exps, else 0 */
    float *lse, *delta;            /* [n], lse less the origin, in units of log2 */
    float *q_packed, *dout_packed; /* [ATT_BACKWARD_Q_TILES][dim][q_tile] */
    float *q_rows, *dout_rows;     /* [panels of dim][n][nr] */
    float *query, *dout;           /* [n][dim], where they are not f32 */
    float *terms;                  /* [n], if the score has a term of each row */
    float *pairs[2];               /* rows of q and of dO in pairs of bf16, where these are multiplied */
} att_backward_queries;

/* Scratch memory of one thread. */
typedef struct att_backward_scratch {
    att_backward_queries q;
    float *p, *ds;                /* [ATT_KEY_BLOCK][n] */
    float *saved[ATT_MAX_STAGES]; /* [ATT_KEY_BLOCK][n]: the inputs of modifiers that are not additive */
    float *products;              /* [ATT_KEY_BLOCK][n]: products q . k that the score changes */
    float *dk, *dv;               /* [blocks of a task][ATT_KEY_BLOCK][dim, in whole panels] */
    float *dq_rows;               /* [q_tile][q_dim] */
    float *key, *value;           /* [blocks][ATT_KEY_BLOCK][dim], if they are copied */
    float *packed_keys;           /* keys in pairs of bf16 */
    float *dterm;                 /* [blocks][ATT_KEY_BLOCK] of the keys' terms */
    float *precomputed;           /* [blocks][ATT_KEY_BLOCK][att_precomputed_count] */
    float *row;                   /* [the largest dimension] */
    double *pair;                 /* [att_pair_scratch] */
} att_backward_scratch;

/* The log-sum-exp of a row, origin + rest. */
typedef struct att_split_lse {
    float origin, rest;
} att_split_lse;

typedef struct att_backward_job {
    const att_call *call;
    const att_attention_grads *grads;
    att_row_grads rows;
    att_backward_tasks tasks;
    float *memory; /* scratch of all threads, then dq and params */
    size_t scratch_count;
    float *dq; /* [tasks.slots][heads of a group][max_tq in whole tiles][q_dim], tile by tile, transposed or not; after
                * each head, if the score has terms of rows, their gradients [max_tq in whole tiles] */
    int64_t dq_count;  /* numbers of one head */
    int64_t dterms_at; /* where the gradients of the terms of rows begin */
    float *params;     /* [tasks][params_count] each task's part of the parameters' gradients */
    int64_t params_count;
    double *sums;         /* [att_params_back_sums] */
    att_split_lse *split; /* [sequences][heads][max_tq], set where the log-sum-exp is large; NULL: nowhere */
} att_backward_job;

/* Returns whether a log-sum-exp must be split. */
static inline bool att_lse_is_large(float lse) { return fabsf(lse) > ATT_LARGE_SCORE && fabsf(lse) < INFINITY; }

/* Returns where the split log-sum-exp of a query is; job->split is not NULL. */
static inline att_split_lse *att_split_lse_at(const att_backward_job *job, const att_head_view *view, int64_t q)
{
    const int64_t head = view->head.sequence * job->call->plan->spec.heads + view->head.head;
    return &job->split[head * job->call->max_tq + q];
}

/* dK or dV of a block of keys, which the steps accumulate. */
typedef struct att_grad_block {
    att_rows to;         /* the head's rows in the caller's tensor */
    int64_t dim, padded; /* numbers of a row, and these in whole panels */
    float *from;         /* the sums: in scratch memory, or in the caller's tensor itself */
    int64_t stride;      /* of from */
    bool add;            /* add to the tensor's numbers */
    bool begun;          /* `from` has been written */
} att_grad_block;

/* A block of the task's keys. */
typedef struct att_kv_block {
    int64_t k0;
    int keys;
    att_floats key, value;  /* values in pairs of bf16, if such pairs are multiplied */
    att_floats packed_keys; /* keys in such pairs */
    float *precomputed;     /* [keys][att_precomputed_count] */
    float *dterm;           /* [keys] sums of the gradients of their numbers */
    att_grad_block dk, dv;
} att_kv_block;

/* The current query head. */
typedef struct att_backward_head {
    att_head_view view;
    att_rows dout, dq, dlse;
    float *dq_sum;                        /* [query tiles][q_dim][q_tile] */
    float *dterm;                         /* [query tiles][q_tile]: sums of the gradients of row terms */
    att_param_view param[ATT_MAX_PARAMS]; /* the plan's, with gradients of this task's own */
} att_backward_head;

/* One task: all query heads of a key head against some blocks of its keys. */
typedef struct att_backward_work {
    const att_backward_job *job;
    const att_plan *plan;
    const att_backward_task *task;
    att_backward_head head;
    att_kv_block blocks[ATT_BACKWARD_TASK_BLOCKS];
    int n_blocks;
    att_kv_block *keys;          /* the current block */
    int64_t step;                /* counted over all heads of the task */
    att_floats query, dout_rows; /* of the step */
    att_prefetch prefetch;       /* what this step writes and the next step reads */
    att_block block;             /* the current tile */
    att_backward_scratch w;
} att_backward_work;

static inline bool att_score_is_dot(const att_plan *plan) { return plan->builtin->is_dot; }

/* Zeroes rows [first, last) of the sums, unless they are begun: no query attends to these keys in this step. */
static inline void att_grad_block_clear(att_grad_block *g, int first, int last)
{
    const int64_t rows = g->stride > g->padded ? 1 : last - first; /* at once */
    for (int64_t key = first; !g->begun && key < last; key += rows)
        memset(g->from + key * g->stride, 0, (size_t)(rows * g->padded) * sizeof *g->from);
}

/* Copies the caller's gradients to g and checks them against the call (grads.c). g->dparam becomes dparam
 * [ATT_MAX_PARAMS], the gradients of the plan's parameters. */
att_status att_backward_check(const att_call *call, const att_attention_grads *grads, att_attention_grads *g,
                              att_tensor *dparam);
size_t att_backward_workspace(const att_call *call); /* bytes */

/* Returns whether the log-sum-exp of any row of a call is large. (split.c) */
bool att_backward_any_large(const att_call *call);
/* Splits the log-sum-exps of the current query head that are large. */
void att_backward_split_head(const att_backward_work *x);

/* Sets what the blocks of a head have in common; called before its first step. */
void att_backward_begin(att_backward_work *x);
/* Processes the task's keys by the tiles of queries from q0 on. Adds to dQ when the task's ticket is due. */
void att_backward_step(att_backward_work *x, int64_t q0);

#endif
