/* A block of queries by a block of keys: its mask, its scores, dropout, and the backward from their gradient. */
#ifndef ATT_ATTN_BLOCK_H
#define ATT_ATTN_BLOCK_H

#include "attn/call/call.h"

/* Narrows the keys of a block of queries to [*first, *last), whole blocks: masks exclude all others. */
void att_span(const att_plan *plan, const att_head_view *view, int64_t q0, int64_t queries, int64_t *first,
              int64_t *last);

/* The mask of a block of queries by a block of at most ATT_KEY_BLOCK keys. Keys are counted from k0. */
typedef struct att_mask_tile {
    int n_ranges;
    att_range range[ATT_KEY_BLOCK / ATT_SUB_TILE]; /* [n_ranges] keys to which some query attends; ascending */
    att_range partial;                             /* all pairs of the ranges outside these keys attend */
    uint64_t bits[ATT_KEY_BLOCK];                  /* of the keys in `partial`: see att_mask_tile_bits */
} att_mask_tile;
/* Returns which queries attend to a key in the ranges: bit i stands for query q0 + i. */
static inline uint64_t att_mask_tile_bits(const att_mask_tile *mask_tile, int64_t key)
{
    return mask_tile->partial.first <= key && key < mask_tile->partial.last ? mask_tile->bits[key] : ~UINT64_C(0);
}
static inline bool att_mask_tile_is_partial(const att_mask_tile *mask_tile)
{
    return mask_tile->partial.first < mask_tile->partial.last;
}
/* Returns the part of range r that is partial. */
att_range att_mask_tile_partial(const att_mask_tile *mask_tile, int r);
void att_mask_tile_make(const att_plan *plan, const att_head_view *view, int64_t q0, int queries, int64_t k0, int keys,
                        att_mask_tile *mask_tile);
/* Appends keys; partial: not all of their pairs attend. */
void att_mask_tile_add(att_mask_tile *mask_tile, int64_t first, int64_t last, bool partial);
/* The ranges of a mask tile without certain keys: those whose row, of K or V, has NaN or Inf and to which some query
 * does not attend. 0 times NaN is NaN, so a weight of 0 must not be multiplied with these rows. They are added
 * afterwards, to the queries that attend. */
typedef struct att_finite_ranges {
    int n_ranges, n_nonfinite;
    att_range range[ATT_KEY_BLOCK / ATT_SUB_TILE + ATT_KEY_BLOCK];
    int64_t nonfinite[ATT_KEY_BLOCK]; /* [n_nonfinite] these keys */
} att_finite_ranges;
/* Finds the finite ranges of x [keys, dim], the rows from k0 on. */
void att_finite_ranges_of(const att_plan *plan, const att_mask_tile *mask_tile, int queries, att_floats x, int64_t dim,
                          att_finite_ranges *clean);
/* Adds x [keys, dim]^T w [keys][q_tile] over the nonfinite keys to o [dim][q_tile], for queries that attend. */
void att_add_nonfinite(const att_plan *plan, const att_mask_tile *mask_tile, const att_finite_ranges *clean,
                       int queries, att_floats x, int64_t dim, att_floats w, float *o);

/* The gradients of a tile, and what they are computed from; unused forward. */
typedef struct att_block_back {
    float *ds;                    /* gradients of the scores, laid out as the block's s */
    float *saved[ATT_MAX_STAGES]; /* the input of modifier i, laid out as s; NULL if it is additive */
    float *products;              /* products q . k that the score changes, laid out as s */
    float *dq;                    /* [q_dim][q_tile], or [q_tile, q_dim] of rows, added to */
    float *dk;                    /* [keys, k_dim], rows dk_stride apart, added to */
    int64_t dk_stride;
    float *dquery_term, *dkey_term; /* [q_tile] [keys], added to */
    double *pair;                   /* [att_pair_scratch] */
} att_block_back;
/* A tile of queries by a block of keys, as the stages compute it. */
typedef struct att_block {
    const att_plan *plan;
    const att_head_view *head;
    const att_mask_tile *mask_tile;
    int64_t q0, k0;
    int queries;
    att_floats query;         /* [queries, q_dim] from q0 on */
    att_floats key;           /* [keys, k_dim] from k0 on */
    const float *q;           /* [q_dim][q_tile], by att_pack_queries; unused where the score reads rows */
    const float *query_term;  /* [q_tile], if the score has terms of rows; those of keys are precomputed */
    const float *precomputed; /* [keys, att_precomputed_count] from k0 on, or NULL */
    bool bf16_pairs;          /* query, key and q are pairs of bf16 */
    float *s;                 /* [keys][q_tile], rows stride apart: scores; in backward then the weights */
    int64_t stride;
    const att_param_view *param; /* the view's, or with gradients of this task's own */
    att_block_back back;
} att_block;

/* Return whether the score reads queries as rows instead of packed, and how many floats it precomputes for each key. */
static inline bool att_score_reads_query_rows(const att_plan *p)
{
    return p->builtin->transforms && p->builtin->transforms->rows;
}
static inline int64_t att_precomputed_count(const att_plan *p)
{
    const att_row_transforms *o = p->builtin->transforms;
    return p->score.term ? 1 : o && o->precomputed_count ? o->precomputed_count(p->k_dim) : 0;
}
/* Precomputes y [n, att_precomputed_count] of n keys. */
void att_precompute(const att_plan *plan, att_floats key, int n, float *y);
/* Compute the score's term of each row -> y [n], if it has terms; and the backward, which adds to dx [n, dim], rows
 * stride apart, the gradients that follow from dterm [n]. */
void att_row_terms(const att_plan *plan, att_floats rows, int n, float *y);
void att_row_terms_back(const att_plan *plan, att_floats rows, int n, const float *dterm, float *dx, int64_t stride);
/* Packs the queries into q [q_dim][q_tile], transposed, and scales them if the plan does so. Does nothing if the score
 * reads rows. */
void att_pack_queries(const att_plan *plan, att_floats query, int queries, float *q);
/* Pairs of bf16 (bf16.c): return the number of pairs in a row, and pack rows, and the values of a block, into pairs.
 * Rows of values that are not finite count as 0 and are listed in `nonfinite`. */
int64_t att_bf16_pairs_in(int64_t dim);
att_floats att_bf16_pack_rows(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim,
                              float *buffer);
void att_bf16_pack_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                          att_finite_ranges *nonfinite);

/* Call these before and after the products of pairs that a thread computes. */
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

/* Computes s: scores, modified and masked, of the mask tile's ranges. */
void att_score_block(const att_block *b);
/* Turns products q . k in s into modified scores, not masked, if the score is the product or a function of it. */
void att_products_block(const att_block *b);
/* From back.ds, the gradient of the modified scores, adds to back.dq, back.dk and the gradients of parameters. For a
 * dot product only the modifiers and the scale are applied to ds: the driver computes its products. */
void att_score_block_back(const att_block *b);

/* Dropout (dropout.c). Bit i of keep[key] states that query q0 + i keeps its weight of the key, in the mask tile's
 * ranges; x is laid out as s. Without dropout these functions do nothing. */
void att_dropout_mask_block(const att_block *b, uint64_t *keep /* [ATT_KEY_BLOCK] */);
void att_dropout_apply_block(const att_block *b, const uint64_t *keep, float *x);
/* Returns the factor of weights that are kept. */
static inline float att_dropout_scale(const att_plan *plan) { return (float)(1 / (1 - (double)plan->spec.dropout)); }

/* Compute a caller's stage that has no version for tiles, pair by pair (formula.c). Pairs that do not attend are
 * skipped.
 */
size_t att_pair_scratch(const att_call *call); /* number of doubles in back.pair */
void att_score_pairs(const att_block *b, const att_score_tile *t);
void att_score_pairs_back(const att_block *b, const att_score_tile *t);
void att_modifier_pairs(const att_block *b, const att_modifier *m, const att_modifier_tile *t);
void att_modifier_pairs_back(const att_block *b, const att_modifier *m, const att_modifier_tile *t);

#endif
