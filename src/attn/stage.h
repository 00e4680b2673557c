/* The stages of attention, and what a tile of it looks like.
 *
 *   score -> modifiers -> masks -> softmax -> weighted values
 *
 * A tile is a block of queries, at most a panel, by a block of keys. Its scores lie transposed: s [keys][panel], a
 * column for each query, in units of log2. Stages are called once a tile through tables, so the work to extend is
 * scores + modifiers + masks, not their product.
 *
 * To add a stage: src/attn/score/NAME.c, src/attn/modifier/NAME.c or src/attn/mask/NAME.c; the build finds it. */
#ifndef ATT_ATTN_STAGE_H
#define ATT_ATTN_STAGE_H

#include "base/base.h"
#include "kernel/kernel.h"

/* Constants, so that results depend on neither caches nor threads: keys are counted from the sequence's start, a
 * block of them is softened at once, and a segment's partial result is merged with those before it. */
enum { ATT_KEY_BLOCK = 256, ATT_KEY_SEGMENT = 1024, ATT_SUB_TILE = 32, ATT_MAX_PANEL = 64, ATT_MAX_SETS = 8 };

#define ATT_LOG2_E 1.4426950408889634

/* One head of one sequence. */
typedef struct att_site {
    int64_t tq, tk;         /* lengths */
    int64_t position;       /* of query 0; key j is at position j */
    const float *q, *k, *v; /* [tq, head_dim] [tk, head_dim] [tk, value_dim], time steps these strides apart: */
    int64_t q_stride, k_stride, v_stride;
    float *out; /* [tq, value_dim] */
    int64_t out_stride;
    float *lse; /* [tq] or NULL */
    int64_t lse_stride;
    int64_t rows;        /* of out and lse; those from tq on become 0 and -inf */
    int64_t k_rows;      /* of k and v */
    const uint8_t *mask; /* [tq, tk] of att_mask_boolean */
    int64_t mask_q, mask_k;
    const float *bias; /* [tq, tk] of att_modifier_bias */
    int64_t bias_q, bias_k;
} att_site;

/* The pairs of queries [q0, q0 + queries) and keys [k0, k0 + keys). */
typedef struct att_block {
    const att_site *site;
    int64_t head_dim;
    int64_t q0, k0;
    int queries, keys;
    const float *q; /* [head_dim][panel]: the queries turned, times scale log2 e */
    float *s;       /* [keys][panel], rows s_stride apart */
    int64_t s_stride;
} att_block;

/* What a stage needs beside q and k. */
enum { ATT_NEEDS_ALIGN = 1, ATT_NEEDS_MASK = 2, ATT_NEEDS_BIAS = 4 };

/* How a stage is entered for one instruction set: its formula, which is the reference, and its tile version. */
typedef struct att_score_set {
    double (*formula)(const float *q, const float *k, int64_t dim); /* before scale */
    /* Its derivative: adds ds times that by q and by k to dq [dim] and dk [dim]. */
    void (*derivative)(const float *q, const float *k, int64_t dim, double ds, double *dq, double *dk);
    void (*tile)(const att_block *b); /* writes s */
} att_score_set;

typedef struct att_modifier_set {
    double (*formula)(const att_site *site, int64_t q, int64_t k, double s);
    void (*tile)(const att_block *b); /* changes s */
    unsigned needs;
} att_modifier_set;

struct att_score {
    const char *name;
    const att_score_set *set[ATT_MAX_SETS]; /* by att_ctx.isa */
};

struct att_modifier {
    const char *name;
    const att_modifier_set *set[ATT_MAX_SETS];
};

typedef enum att_cover { ATT_EMPTY, ATT_PARTIAL, ATT_FULL } att_cover;

/* Masks work on bits, not on vectors, and need no version for each instruction set. */
struct att_mask {
    const char *name;
    unsigned needs;
    bool (*keep)(const att_site *site, int64_t q, int64_t k); /* the definition: true = attend */
    /* How many pairs of a block attend. PARTIAL is always allowed. */
    att_cover (*cover)(const att_site *site, int64_t q0, int64_t queries, int64_t k0, int64_t keys);
    /* Bit i: does query q0 + i attend to key k? */
    uint64_t (*bits)(const att_site *site, int64_t q0, int64_t queries, int64_t k);
};

#endif
