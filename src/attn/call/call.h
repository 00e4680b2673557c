/* A call whose arguments have been checked, and one head of one sequence of it. */
#ifndef ATT_ATTN_CALL_H
#define ATT_ATTN_CALL_H

#include "attn/call/plan.h"
#include "attn/call/rows.h"

/* One head of one sequence. */
typedef struct att_head_view {
    att_head head;
    att_rows q_row, k_row; /* rows of q and k that tiles see: [tq, q_dim], [tk, k_dim], the caller's or transformed */
    att_rows v, out;       /* [tk, value_dim], [tq, value_dim] */
    float *lse;            /* [tq] or NULL */
    int64_t lse_stride;
    int64_t rows;                         /* rows of out and lse; those from tq on become 0 and -inf */
    int64_t k_rows;                       /* of k and v */
    att_dropout_mask dropout;             /* threshold 0: none */
    unsigned inspected;                   /* bit i: mask i's inspect was true for all sequences */
    att_param_view param[ATT_MAX_PARAMS]; /* the plan's */
} att_head_view;

/* Returns the argument of mask i of a plan for a block of one head. */
static inline att_mask_block att_mask_block_of(const att_plan *plan, int i, const att_head_view *view, att_range q,
                                               att_range k)
{
    const att_plan_mask *m = &plan->masks.list[i];
    return (att_mask_block){.size = sizeof(att_mask_block),
                            .head = &view->head,
                            .user = m->stage.user,
                            .value = m->value,
                            .param = view->param + m->param,
                            .q = q.first,
                            .queries = q.last - q.first,
                            .k = k.first,
                            .keys = k.last - k.first,
                            .inspected = view->inspected >> i & 1};
}

/* A call whose arguments have been checked. */
typedef struct att_call {
    const att_plan *plan;
    att_attention_args args; /* of this library's size, whatever the caller's is */
    bool outputs;            /* v, out and lse have been checked, too */
    bool ragged;
    int64_t sequences, max_tq, max_tk;
    int64_t min_tq;                   /* forward: sequences of fewer queries, or of more than max_tq, are left out */
    unsigned inspected;               /* bit i: mask i's inspect was true for all sequences */
    att_tensor param[ATT_MAX_PARAMS]; /* the plan's; all zero if not given */
    att_tensor q_rows, k_rows;        /* rows that the tiles see: args.q and k, or these transformed by
                                       * att_transform_begin */
    bool keys_per_head;               /* k_rows has a head for each head of q, not of k */
    att_range heads;                  /* query heads whose rows are transformed */
    att_tensor floats[2];             /* q and k in f32, if rows are transformed */
    struct {
        float *transformed, *converted;
    } memory[2]; /* memory of rows of q and of k that are not the caller's */
} att_call;

/* Checks a call: q and k, and if `outputs` v, out and lse, too. */
att_status att_call_check(const att_plan *plan, const att_attention_args *args, bool outputs, att_call *call);
/* The rank of q, k, v and out, and the indices of their dimensions: batched, or ragged. */
typedef struct att_axes {
    int rank, head, time, dim;
} att_axes;
static inline att_axes att_call_axes(const att_call *call)
{
    return call->ragged ? (att_axes){3, 1, 0, 2} : (att_axes){4, 1, 2, 3};
}
/* Returns whether numbers for each time step of q, or of k, have the dimension [tokens] instead of [B or 1, T]. Keys in
 * a cache are batched. */
static inline bool att_call_is_ragged(const att_call *call, bool of_keys)
{
    return call->ragged && !(of_keys && call->args.cache);
}
/* Checks that offsets [n + 1] ascend from 0 to `tokens`; *longest receives the length of the longest sequence. */
att_status att_check_offsets(att_ctx *ctx, const char *name, const int64_t *offsets, int64_t n, const char *tokens_name,
                             int64_t tokens, int64_t *longest);
/* Tensors side by side in a struct, and their names. */
typedef struct att_tensor_group {
    const char *name[5]; /* or one for all */
    size_t at;           /* offset of the first tensor in the struct */
    int count;           /* 0 ends a list */
} att_tensor_group;
/* Checks that t shares no memory with the tensors of a struct, other than itself. */
att_status att_check_group_apart(att_ctx *ctx, const char *name, const att_tensor *t, const void *from,
                                 const att_tensor_group *groups);
/* Checks that t shares no memory with the tensors of the call's args. */
att_status att_call_check_apart(const att_call *call, const char *name, const att_tensor *t);
static inline bool att_given(const att_tensor *t) { return t->data || t->rank; }
/* Returns how many numbers one head of a parameter [heads or 1, ...] has. */
int64_t att_param_count(const att_tensor *t);
/* Returns the rows of one head of one sequence in a tensor of the layout of q (of_keys: of k). */
att_rows att_call_rows(const att_call *call, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys);
/* Returns whether blocks of keys and values are copied: if they have another type than f32, are in a cache, or if many
 * queries read rows that are far apart. Such rows share few sets of the processor's first-level cache, and each is in
 * its own page. */
bool att_call_copies(const att_call *call);
/* Views one head of one sequence of the call. */
void att_call_head(const att_call *call, int64_t sequence, int64_t head, att_head_view *view);

/* Checks sequence and head, and finds the head of the sequence. */
att_status att_call_find_head(const att_call *call, int64_t sequence, int64_t head, att_head_view *view);

/* Clears rows [first, last) of out and lse, which attend to nothing. */
void att_head_clear(const att_plan *plan, const att_head_view *view, int64_t first, int64_t last);
/* Set the call's k and v to the shape of its cache, after checks, and find the rows of one key head in the cache
 * (cache.c). */
att_status att_cache_check(att_call *call);
void att_cache_view(const att_cache *cache, int64_t sequence, int64_t kv_head, att_head_view *view);

#endif
