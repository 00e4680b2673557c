/* The stages of attention.
 *
 *   score -> scale -> modifiers -> masks -> softmax -> weighted values
 *
 * A tile is at most q_tile queries by a block of keys. Its scores are transposed: s [keys][q_tile], a column for each
 * query. Stages are called once a tile through tables, so any score, modifiers and masks can be combined. Their types
 * are public (attend_extend.h): a built-in stage is defined as a caller's is, but scores and modifiers once for each
 * instruction set. This header has what only built-in scores have.
 *
 * To add a stage: src/attn/stage/{score,modifier,mask}/NAME.c; the build finds it. */
#ifndef ATT_ATTN_STAGE_H
#define ATT_ATTN_STAGE_H

#include "attend_extend.h"
#include "base/base.h"
#include "kernel/kernel.h"
#include "util/util.h"

/* Limits of a plan: modifiers and masks, and the parameters of all stages. */
enum { ATT_MAX_STAGES = 16, ATT_MAX_PARAMS = 16 };

/* These are constants, so that results depend on neither caches nor threads: keys are counted from the sequence's
 * start, a block of keys is one softmax step, and the accumulator of a segment is merged with those before it. */
enum { ATT_KEY_BLOCK = 256, ATT_KEY_SEGMENT = 1024, ATT_SUB_TILE = 32, ATT_MAX_Q_TILE = 64 };

/* Returns a word with bits 0 to n - 1 set. */
static inline uint64_t att_low_bits(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

/* The changes that a score makes to each row of queries, and of keys, before tiles are computed (call/transform.c). */
typedef enum att_transform_kind {
    ATT_TRANSFORM_NONE = 0,
    ATT_TRANSFORM_NORMALIZE, /* x / |x| */
    ATT_TRANSFORM_PROJECT    /* times a parameter */
} att_transform_kind;
typedef struct att_row_transform {
    att_transform_kind kind;
    int param;      /* index of the score's parameter: [heads or 1, in, out], */
    bool out_first; /* or [heads or 1, out, in] */
} att_row_transform;
typedef struct att_row_transforms {
    att_row_transform q, k;
    bool optional; /* only with spec.score_dim */
    bool rows;     /* tiles read queries as rows [queries, dim], and write their gradients as rows */
    /* Returns the number of floats that are precomputed for each row of keys [dim], once for all tiles. NULL: none. */
    int64_t (*precomputed_count)(int64_t dim);
    void (*precompute)(int64_t dim, const float *x, float *y);
} att_row_transforms;

/* A built-in score for one instruction set. */
typedef struct att_builtin_score {
    att_score score;
    bool is_dot;                          /* it is the dot product of the rows that tiles see */
    const att_row_transforms *transforms; /* NULL: none */
} att_builtin_score;
/* The argument of a built-in score's tile functions, with additional fields. */
typedef struct att_builtin_tile {
    att_score_tile tile;                 /* first: a score gets a pointer to this */
    int64_t query_stride, dquery_stride; /* of queries and their gradients if they are rows; otherwise 0 */
    const float *precomputed;            /* [keys, precomputed_stride]: data that was precomputed for each key, or
                                          * NULL */
    int64_t precomputed_stride;
} att_builtin_tile;
static inline const att_builtin_tile *att_builtin_tile_of(const att_score_tile *t)
{
    return (const att_builtin_tile *)t;
}

/* Returns a tile as a modifier sees it: scores s and their gradient ds, without queries and keys. */
static inline att_modifier_tile att_modifier_tile_of(const att_score_tile *t, const att_modifier *m,
                                                     const double *value, const att_param_view *param, float *ds)
{
    return (att_modifier_tile){.size = sizeof(att_modifier_tile),
                               .head = t->head,
                               .user = m->user,
                               .value = value,
                               .q = t->q,
                               .k = t->k,
                               .queries = t->queries,
                               .keys = t->keys,
                               .columns = t->columns,
                               .param = param,
                               .s = t->s,
                               .ds = ds,
                               .stride = t->stride,
                               .vectors = t->vectors};
}

/* Returns a built-in score for an instruction set, by its public pointer; NULL for any other pointer. */
const att_builtin_score *att_builtin_score_of(const att_score *s, int isa);
const att_modifier *att_builtin_modifier_of(const att_modifier *m, int isa);

#endif
