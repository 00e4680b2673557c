/* A block of queries by a block of keys: what masks leave of it, its scores, dropout, and back from their gradient. */
#ifndef ATT_ATTN_BLOCK_H
#define ATT_ATTN_BLOCK_H

#include "attn/call/call.h"

/* Blocks of keys, [*first, *last), outside of which masks leave nothing of a block of queries. */
void att_span(const att_plan *plan, const att_head_view *view, int64_t q0, int64_t queries, int64_t *first,
              int64_t *last);

/* What masks leave of a block of queries by a block of at most ATT_KEY_BLOCK keys. */
typedef struct att_mask_tile {
    int n_ranges;
    att_range range[ATT_KEY_BLOCK / ATT_SUB_TILE]; /* keys, counted from k0, where anything attends; ascending */
    att_range partial;                             /* keys among which are all pairs of the runs that do not attend */
    uint64_t bits[ATT_KEY_BLOCK];                  /* of these keys: att_mask_tile_bits */
    int diagonal_split; /* key of the last run from which on only the second half of a panel of queries attends: at a
                         * diagonal
                         */
} att_mask_tile;
/* Of a key in the runs, bit i: query q0 + i attends to it. */
static inline uint64_t att_mask_tile_bits(const att_mask_tile *mask_tile, int64_t key)
{
    return mask_tile->partial.first <= key && key < mask_tile->partial.last ? mask_tile->bits[key] : ~UINT64_C(0);
}
static inline bool att_mask_tile_is_partial(const att_mask_tile *mask_tile)
{
    return mask_tile->partial.first < mask_tile->partial.last;
}
/* The first key of run r that is behind those to which the first half of the queries attends. */
static inline int64_t att_mask_tile_split(const att_mask_tile *mask_tile, int r)
{
    return r == mask_tile->n_ranges - 1 ? mask_tile->diagonal_split : mask_tile->range[r].last;
}
/* The keys of run r among which all its partial are. */
att_range att_mask_tile_partial(const att_mask_tile *mask_tile, int r);
void att_mask_tile_make(const att_plan *plan, const att_head_view *view, int64_t q0, int queries, int64_t k0, int keys,
                        att_mask_tile *mask_tile);
/* Appends keys, to the last run where they follow it; partial: not all pairs of them attend. */
void att_mask_tile_add(att_mask_tile *mask_tile, int64_t first, int64_t last, bool partial);
/* 0 x NaN is NaN: a row of keys or values that is not finite must not load the weight 0 of a query that does not attend
 * to it. Such keys leave the runs, and are added afterwards to the queries that do attend. */
typedef struct att_finite_ranges {
    int n_ranges, n_nonfinite;
    att_range range[ATT_KEY_BLOCK / ATT_SUB_TILE + ATT_KEY_BLOCK];
    int64_t nonfinite[ATT_KEY_BLOCK]; /* keys, counted from k0 */
} att_finite_ranges;
/* x [keys, dim]: the rows from k0 on. */
void att_finite_ranges_of(const att_plan *plan, const att_mask_tile *mask_tile, int queries, const float *x,
                          int64_t stride, int64_t dim, att_finite_ranges *clean);
/* o [dim][panel] += x [keys, dim]^T w [keys][panel] over the nonfinite keys, for queries that attend. */
void att_add_nonfinite(const att_plan *plan, const att_mask_tile *mask_tile, const att_finite_ranges *clean,
                       int queries, const float *x, int64_t stride, int64_t dim, const float *w, int64_t w_stride,
                       float *o);

/* A block of at most a panel of queries by one of keys, on its way through the stages. */
typedef struct att_block {
    const att_plan *plan;
    const att_head_view *head;
    const att_mask_tile *mask_tile;
    int64_t q0, k0;
    int queries;
    att_floats query;         /* [queries, q_dim] from q0 on */
    att_floats key;           /* [keys, k_dim] from k0 on */
    const float *q;           /* [q_dim][panel], packed_q by att_pack_queries; not read where the score takes rows */
    const float *precomputed; /* [keys, k_dim's att_precomputed_count] from k0 on, or NULL */
    bool bf16_pairs;          /* query, key and q are in words of two numbers */
    float *s;                 /* [keys][panel], rows stride apart: scores; in backward then the weights */
    float *ds;                /* backward: the same, gradients */
    int64_t stride;
    float *saved[ATT_MAX_STAGES]; /* backward: what modifier i was given, laid as s; NULL where it is additive */
    float *dq;                    /* backward: [q_dim][panel], or [panel, q_dim] of rows, added to */
    float *dk;                    /* backward: [keys, k_dim], rows dk_stride apart, added to */
    int64_t dk_stride;
    double *pair;                /* [att_pair_scratch] */
    const att_param_view *param; /* the view's, or with gradients of this task's own */
} att_block;

/* Do tiles of its score see rows of queries, not packed_q ones? And what they want made of each key beforehand. */
static inline bool att_score_reads_query_rows(const att_plan *p)
{
    return p->builtin->transforms && p->builtin->transforms->rows;
}
static inline int64_t att_precomputed_count(const att_plan *p)
{
    const att_row_transforms *o = p->builtin->transforms;
    return o && o->precomputed_count ? o->precomputed_count(p->k_dim) : 0;
}
/* Queries packed_q, the scale in them where it belongs there; nothing where the score takes rows. */
void att_pack_queries(const att_plan *plan, att_floats query, int queries, float *q);
/* bf16 in words of two (words.c): whether a plan can, words of so many numbers, rows and values of a block. Rows of
 * values that are not finite count as 0 there and are named in `nonfinite`. */
int64_t att_bf16_pairs_in(int64_t dim);
att_floats att_bf16_pack_rows(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim,
                              float *buffer);
void att_bf16_pack_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                          att_finite_ranges *nonfinite);

/* Around what a thread multiplies in words. */
static inline void att_amx_begin(const att_plan *p)
{
    if (p->bf16_pairs && p->kernels->bf16.amx_begin)
        p->kernels->bf16.amx_begin();
}
static inline void att_amx_end(const att_plan *p)
{
    if (p->bf16_pairs && p->kernels->bf16.amx_end)
        p->kernels->bf16.amx_end();
}

/* Scores, modified and masked, of the mask tile's runs. */
void att_score_block(const att_block *b);
/* Modifiers alone, over the mask tile's runs. */
void att_modifiers_block(const att_block *b);
/* From ds, the gradient of the modified scores, back to dq, dk and the parameters. Of a score that is a dot product
 * only the modifiers and the scale: the driver has its products. */
void att_score_block_back(const att_block *b);

/* Dropout (dropout.c): bit i of keep[key] says whether query q0 + i keeps its weight of the key, in the mask tile's
 * runs; x is laid as s. Without dropout they do nothing. */
void att_dropout_mask_block(const att_block *b, uint64_t *keep /* [ATT_KEY_BLOCK] */);
void att_dropout_apply_block(const att_block *b, const uint64_t *keep, float *x);
/* What weights that are kept are multiplied with. */
static inline float att_dropout_scale(const att_plan *plan) { return (float)(1 / (1 - (double)plan->spec.dropout)); }

/* Pair by pair, for a stage of the caller's without a version for tiles (pairs.c). Those of which the pair does not
 * attend are left out. */
size_t att_pair_scratch(const att_call *call); /* doubles that `pair` must have */
void att_score_pairs(const att_block *b, const att_score_tile *t);
void att_score_pairs_back(const att_block *b, const att_score_tile *t);
void att_modifier_pairs(const att_block *b, const att_modifier *m, const att_modifier_tile *t);
void att_modifier_pairs_back(const att_block *b, const att_modifier *m, const att_modifier_tile *t);

#endif
