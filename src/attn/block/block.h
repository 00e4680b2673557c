/* A block of queries by a block of keys: what masks leave of it, its scores, dropout, and back from their gradient. */
#ifndef ATT_ATTN_BLOCK_H
#define ATT_ATTN_BLOCK_H

#include "attn/call/call.h"

/* Blocks of keys, [*first, *last), outside of which masks leave nothing of a block of queries. */
void att_span(const att_plan *plan, const att_site *site, int64_t q0, int64_t queries, int64_t *first, int64_t *last);

/* What masks leave of a block of queries by a block of at most ATT_KEY_BLOCK keys. */
typedef struct att_cut {
    int n_runs;
    att_run run[ATT_KEY_BLOCK / ATT_SUB_TILE]; /* keys, counted from k0, where anything attends; ascending */
    att_run holes;                             /* keys among which are all pairs of the runs that do not attend */
    uint64_t bits[ATT_KEY_BLOCK];              /* of these keys: att_cut_bits */
    int second; /* key of the last run from which on only the second half of a panel of queries attends: at a diagonal
                 */
} att_cut;
/* Of a key in the runs, bit i: query q0 + i attends to it. */
static inline uint64_t att_cut_bits(const att_cut *cut, int64_t key)
{
    return cut->holes.first <= key && key < cut->holes.last ? cut->bits[key] : ~UINT64_C(0);
}
static inline bool att_cut_partial(const att_cut *cut) { return cut->holes.first < cut->holes.last; }
/* The first key of run r that is behind those to which the first half of the queries attends. */
static inline int64_t att_cut_second(const att_cut *cut, int r)
{
    return r == cut->n_runs - 1 ? cut->second : cut->run[r].last;
}
/* The keys of run r among which all its holes are. */
att_run att_cut_holes(const att_cut *cut, int r);
void att_cut_block(const att_plan *plan, const att_site *site, int64_t q0, int queries, int64_t k0, int keys,
                   att_cut *cut);
/* Appends keys, to the last run where they follow it; partial: not all pairs of them attend. */
void att_cut_add(att_cut *cut, int64_t first, int64_t last, bool partial);
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

/* A block of at most a panel of queries by one of keys, on its way through the stages. */
typedef struct att_block {
    const att_plan *plan;
    const att_site *site;
    const att_cut *cut;
    int64_t q0, k0;
    int queries;
    att_floats query;   /* [queries, q_dim] from q0 on */
    att_floats key;     /* [keys, k_dim] from k0 on */
    const float *q;     /* [q_dim][panel], turned by att_turn_queries; not read where the score takes rows */
    const float *ready; /* [keys, k_dim's att_ready_count] from k0 on, or NULL */
    bool words;         /* query, key and q are in words of two numbers */
    float *s;           /* [keys][panel], rows stride apart: scores; in backward then the weights */
    float *ds;          /* backward: the same, gradients */
    int64_t stride;
    float *saved[ATT_MAX_STAGES]; /* backward: what modifier i was given, laid as s; NULL where it is additive */
    float *dq;                    /* backward: [q_dim][panel], or [panel, q_dim] of rows, added to */
    float *dk;                    /* backward: [keys, k_dim], rows dk_stride apart, added to */
    int64_t dk_stride;
    double *pair;                                    /* [att_pair_scratch] */
    const att_operand *score_param, *modifier_param; /* the site's, or with gradients of this task's own */
} att_block;

/* Do tiles of its score see rows of queries, not turned ones? And what they want made of each key beforehand. */
static inline bool att_takes_rows(const att_plan *p) { return p->score->prologue && p->score->prologue->rows; }
static inline int64_t att_ready_count(const att_plan *p)
{
    const att_prologue *o = p->score->prologue;
    return o && o->ready_count ? o->ready_count(p->k_dim) : 0;
}
/* Queries turned, the scale in them where it belongs there; nothing where the score takes rows. */
void att_turn_queries(const att_plan *plan, att_floats query, int queries, float *q);
/* bf16 in words of two (words.c): whether a plan can, words of so many numbers, rows and values of a block. Rows of
 * values that are not finite count as 0 there and are named in `unclean`. */
bool att_words_usable(const att_plan *plan);
int64_t att_words_in(int64_t dim);
att_floats att_words_of_rows(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim,
                             float *buffer);
void att_words_of_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                         att_clean *unclean);

/* Around what a thread multiplies in words. */
static inline void att_tiles_begin(const att_plan *p)
{
    if (p->words && p->kernels->tiles_begin)
        p->kernels->tiles_begin();
}
static inline void att_tiles_end(const att_plan *p)
{
    if (p->words && p->kernels->tiles_end)
        p->kernels->tiles_end();
}

/* Scores, modified and masked, of the cut's runs. */
void att_score_block(const att_block *b);
/* Modifiers alone, over the cut's runs. */
void att_modify_block(const att_block *b);
/* From ds, the gradient of the modified scores, back to dq, dk and the parameters. Of a score that is a dot product
 * only the modifiers and the scale: the driver has its products. */
void att_score_block_back(const att_block *b);

/* Dropout (dropout.c): bit i of keep[key] says whether query q0 + i keeps its weight of the key, in the cut's runs; x
 * is laid as s. Without dropout they do nothing. */
void att_keep_block(const att_block *b, uint64_t *keep /* [ATT_KEY_BLOCK] */);
void att_drop_block(const att_block *b, const uint64_t *keep, float *x);
/* What weights that are kept are multiplied with. */
static inline float att_keep_scale(const att_plan *plan) { return (float)(1 / (1 - (double)plan->spec.dropout)); }

/* Pair by pair, for a stage of the caller's without a version for tiles (pairs.c). Those of which the pair does not
 * attend are left out. */
size_t att_pair_scratch(const att_call *call); /* doubles that `pair` must have */
void att_score_pairs(const att_block *b, const att_tile *t);
void att_score_pairs_back(const att_block *b, const att_tile *t);
void att_modify_pairs(const att_block *b, const att_modifier *m, const att_tile *t);
void att_modify_pairs_back(const att_block *b, const att_modifier *m, const att_tile *t);

#endif
