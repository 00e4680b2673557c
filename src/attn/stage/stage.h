/* The stages of attention.
 *
 *   score -> scale -> modifiers -> masks -> softmax -> weighted values
 *
 * A tile is a block of queries, at most a panel, by a block of keys. Its scores lie transposed: s [keys][panel], a
 * column for each query. Stages are called once a tile through tables, so the work to extend is scores + modifiers +
 * masks, not their product. Their types are public (attend_extend.h): a built-in stage is made as a caller's is,
 * but once for each instruction set.
 *
 * To add a stage: src/attn/stage/{score,modifier,mask}/NAME.c; the build finds it. */
#ifndef ATT_ATTN_STAGE_H
#define ATT_ATTN_STAGE_H

#include "attend_extend.h"
#include "base/base.h"
#include "kernel/kernel.h"
#include "util/util.h"

/* Constants, so that results depend on neither caches nor threads: keys are counted from the sequence's start, a
 * block of them is softened at once, and a segment's partial result is merged with those before it. */
enum { ATT_KEY_BLOCK = 256, ATT_KEY_SEGMENT = 1024, ATT_SUB_TILE = 32, ATT_MAX_Q_TILE = 64 };

/* Bits 0 to n - 1. */
static inline uint64_t att_low_bits(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

/* A stage's version for an instruction set; a caller's is the same for all. */
static inline const att_score *att_score_on(const att_score *s, int isa) { return s->set ? s->set[isa] : s; }
static inline const att_modifier *att_modifier_on(const att_modifier *m, int isa) { return m->set ? m->set[isa] : m; }

/* What a score does to each row of queries, and of keys, before its tiles see them (transforms.c). */
typedef enum att_transform_kind {
    ATT_TRANSFORM_NONE = 0,
    ATT_TRANSFORM_NORMALIZE, /* x / |x| */
    ATT_TRANSFORM_PROJECT    /* times a parameter */
} att_transform_kind;
typedef struct att_row_transform {
    att_transform_kind kind;
    int param;      /* which of the score's: [heads or 1, in, out], */
    bool out_first; /* or [heads or 1, out, in] */
} att_row_transform;
typedef struct att_row_transforms {
    att_row_transform q, k;
    bool optional; /* only with spec.score_dim */
    bool rows;     /* tiles read queries as rows [queries, dim], and add to their gradients so */
    /* What every tile would make of a row of keys [dim], made once for all of them: so many floats. NULL:
     * nothing. */
    int64_t (*precomputed_count)(int64_t dim);
    void (*precompute)(int64_t dim, const float *x, float *y);
} att_row_transforms;

#endif
