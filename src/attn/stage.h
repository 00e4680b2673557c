/* The stages of attention.
 *
 *   score -> scale -> modifiers -> masks -> softmax -> weighted values
 *
 * A tile is a block of queries, at most a panel, by a block of keys. Its scores lie transposed: s [keys][panel], a
 * column for each query. Stages are called once a tile through tables, so the work to extend is scores + modifiers +
 * masks, not their product. Their types are public (attend.h, chapter 6): a built-in stage is made as a caller's is,
 * but once for each instruction set.
 *
 * To add a stage: src/attn/score/NAME.c, src/attn/modifier/NAME.c or src/attn/mask/NAME.c; the build finds it. */
#ifndef ATT_ATTN_STAGE_H
#define ATT_ATTN_STAGE_H

#include "base/base.h"
#include "kernel/kernel.h"
#include "util/util.h"

/* Constants, so that results depend on neither caches nor threads: keys are counted from the sequence's start, a
 * block of them is softened at once, and a segment's partial result is merged with those before it. */
enum { ATT_KEY_BLOCK = 256, ATT_KEY_SEGMENT = 1024, ATT_SUB_TILE = 32, ATT_MAX_PANEL = 64 };

/* Bits 0 to n - 1. */
static inline uint64_t att_low_bits(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

/* A stage's version for an instruction set; a caller's is the same for all. */
static inline const att_score *att_score_on(const att_score *s, int isa) { return s->set ? s->set[isa] : s; }
static inline const att_modifier *att_modifier_on(const att_modifier *m, int isa) { return m->set ? m->set[isa] : m; }

typedef struct att_page att_page; /* of a cache (cache.c) */
/* Rows of one head in a tensor of the caller's; at NULL: not given. Or in a cache, whose pages have ATT_KEY_BLOCK rows
 * each and are looked at one at a time: att_rows_block. */
typedef struct att_rows {
    void *at;
    int64_t stride; /* elements from row to row; packed, of a row */
    int64_t packed; /* rows before this one are packed in panels, the others lie as rows */
    att_dtype dtype;
    bool copy;             /* they are read as a copy, f32 too */
    int panel;             /* 0, or rows may be packed in panels of so many, [dim][panel] */
    att_page *const *page; /* NULL, or instead of `at`; the rows begin at this offset of each, in bytes */
    size_t offset;
} att_rows;
/* Rows of floats to read: the caller's own, or a copy of those of another type. */
typedef struct att_floats {
    const float *at;
    int64_t stride;
} att_floats;

/* What a score does to each row of queries, and of keys, before its tiles see them (prologue.c). */
typedef enum att_row_kind {
    ATT_ROW_AS_IT_IS = 0,
    ATT_ROW_UNIT,     /* x / |x| */
    ATT_ROW_PROJECTED /* times a parameter */
} att_row_kind;
typedef struct att_preparation {
    att_row_kind kind;
    int param;      /* which of the score's: [heads or 1, in, out], */
    bool out_first; /* or [heads or 1, out, in] */
} att_preparation;
typedef struct att_prologue {
    att_preparation q, k;
    bool optional; /* only with spec.score_dim */
    bool rows;     /* tiles read queries as rows [queries, dim], and add to their gradients so */
    /* What every tile would make of a row of keys [dim], made once for all of them: so many floats. NULL:
     * nothing. */
    int64_t (*ready_count)(int64_t dim);
    void (*make_ready)(int64_t dim, const float *x, float *y);
} att_prologue;

/* One head of one sequence. */
typedef struct att_site {
    att_place place;
    att_rows q_row, k_row; /* what tiles see of q and k: [tq, q_dim] [tk, k_dim], the caller's or prepared */
    att_rows v, out;       /* [tk, value_dim] [tq, value_dim] */
    float *lse;            /* [tq] or NULL */
    int64_t lse_stride;
    int64_t rows;             /* of out and lse; those from tq on become 0 and -inf */
    int64_t k_rows;           /* of k and v */
    att_dropout_mask dropout; /* threshold 0: none */
    att_operand score_param[ATT_MAX_PARAMS], modifier_param[ATT_MAX_STAGES];
} att_site;

#endif
