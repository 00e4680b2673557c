/* What the backward's files share: backward.c deals keys to tasks, and backward_step.c takes a task's keys through some
 * panels of queries. */
#ifndef ATT_ATTN_BACKWARD_H
#define ATT_ATTN_BACKWARD_H

#include "attn/backward/params_back.h"
#include "attn/backward/transform_back.h"
#include "attn/block/block.h"
#include "attn/call/transform.h"
#include "attn/call/scratch.h"

#include <string.h>

enum { ATT_BACK_Q_TILES = 4 }; /* of queries at a time: sums over queries are chains of so many panels */

typedef struct att_backward_scratch {
    float *lse, *delta;            /* [ATT_BACK_Q_TILES * panel], lse in units of log2 */
    float *q_packed, *dout_packed; /* [ATT_BACK_Q_TILES][dim][panel] */
    float *q_rows, *dout_rows;     /* [panels of dim][ATT_BACK_Q_TILES * panel][panel] */
    float *p, *ds;                 /* [ATT_KEY_BLOCK][ATT_BACK_Q_TILES * panel] */
    float *saved[ATT_MAX_STAGES];  /* the same, of modifiers that are not additive */
    float *dk, *dv;                /* [blocks of a task][ATT_KEY_BLOCK][dim, whole panels] */
    float *dq_rows;                /* [panel][q_dim] */
    float *query, *dout;           /* [ATT_BACK_Q_TILES * panel][dim], where they are not f32 */
    float *key, *value;            /* [blocks][ATT_KEY_BLOCK][dim], where they are copied */
    float *words[2], *packed_keys; /* rows of queries and dout, and of keys, where bf16 is multiplied in pairs */
    float *precomputed;            /* [blocks][ATT_KEY_BLOCK][att_precomputed_count] */
    float *row;                    /* [the longest of the dims] */
    double *pair;
} att_backward_scratch;

typedef struct att_backward_job {
    const att_call *call;
    const att_attention_grads *grads;
    att_row_grads rows;
    att_backward_tasks tasks;
    float *memory; /* a scratch for each thread; with it all that follows */
    size_t scratch_count;
    float *dq; /* [tasks.slots][heads of a group][whole panels of max_tq][q_dim]: panel by panel, packed_q or not */
    int64_t dq_count; /* numbers of one head */
    float *params;    /* [tasks][params_count]: their part of the parameters' gradients */
    int64_t params_count;
    double *sums; /* [att_params_back_sums] */
} att_backward_job;

/* Rows of dK or dV of a block of keys, those of one head of the tensor: where they are gathered, and whether to add
 * them to what is there. */
typedef struct att_grad_block {
    att_rows to;
    int64_t dim, padded, stride; /* numbers of a row, in whole panels; from row to row */
    float *from;
    bool add;
    bool begun; /* from has numbers */
} att_grad_block;

/* A block of the task's keys. */
typedef struct att_kv_block {
    int64_t k0;
    int keys;
    att_floats key, value; /* values in words where those are multiplied */
    att_floats packed_keys;
    float *precomputed; /* [keys][att_precomputed_count] */
    att_grad_block dk, dv;
} att_kv_block;

/* One query head against the keys of one task. */
typedef struct att_backward_work {
    const att_backward_job *job;
    const att_plan *plan;
    const att_backward_task *task;
    att_head_view site;
    att_rows dout, dq, dlse;
    att_kv_block blocks[ATT_BACKWARD_TASK_BLOCKS], *keys; /* and the one that is computed */
    int n_blocks;
    att_floats query, dout_rows; /* of the step */
    att_backward_scratch w;
    att_prefetch prefetch;                /* what this step stores and the next one reads */
    float *dq_sum;                        /* [panels][q_dim][panel] */
    int64_t step;                         /* of the task: blocks of queries of all its heads, counted */
    att_param_view param[ATT_MAX_PARAMS]; /* the plan's, with gradients of this task's own */
    att_block block;                      /* as the panel of queries that is computed meets it */
} att_backward_work;

static inline bool att_score_is_dot(const att_plan *plan) { return plan->builtin->is_dot; }

/* Keys [first, last) of the block have no part in what is begun. */
static inline void att_grad_block_clear(att_grad_block *g, int first, int last)
{
    const int64_t rows = g->stride > g->padded ? 1 : last - first; /* at once */
    for (int64_t key = first; !g->begun && key < last; key += rows)
        memset(g->from + key * g->stride, 0, (size_t)(rows * g->padded) * sizeof *g->from);
}

/* The gradients of a call, whatever the caller's size of them, checked against it (grads.c). g->dparam becomes dparam
 * [ATT_MAX_PARAMS], those of the plan's parameters. */
att_status att_backward_check(const att_call *call, const att_attention_grads *grads, att_attention_grads *g,
                              att_tensor *dparam);
size_t att_backward_workspace(const att_call *call); /* bytes */

/* Before the first step of a head: what its blocks have in common. */
void att_backward_begin(att_backward_work *x);
/* The task's keys by the queries from q0 on, ATT_BACK_Q_TILES; adds to dQ when the task's turn has come. */
void att_backward_step(att_backward_work *x, int64_t q0);

#endif
