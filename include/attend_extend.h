/* attend_extend.h - scores, modifiers and masks of your own, for plans of attend.h.
 */
#ifndef ATTEND_EXTEND_H
#define ATTEND_EXTEND_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A score, modifier or mask of your own: a constant of the type, given in the spec like a built-in one. Its formula, in
 * double, is the definition and suffices; a version for tiles makes it fast. Calls come from several threads at once.
 *
 *     static double l1(const att_pair *p)
 *     {
 *         double s = 0;
 *         for (int64_t d = 0; d < p->dim; d++)
 *             s -= fabs((double)p->query[d] - p->key[d]);
 *         return s;
 *     }
 *     static const att_score l1_score = {.size = sizeof(att_score), .name = "l1", .formula = l1};
 *
 * att_plan_new copies the struct; what its pointers point to must outlive the plan. Structs that functions are given
 * begin with their size: a field after that is of a newer header than the library. */

/* One head of one sequence. */
typedef struct att_head {
    int64_t sequence, head;
    int64_t tq, tk;   /* lengths */
    int64_t position; /* of query 0; key j is at position j */
} att_head;

/* ---- Parameters: tensors that are given with each call */

/* The shape of a parameter's tensor. */
typedef enum att_param_kind {
    ATT_PARAM_PER_HEAD = 0, /* [heads or 1], [heads or 1, rows] or [heads or 1, rows, columns], one head of it dense */
    ATT_PARAM_PER_PAIR,     /* each dimension 1 or that of [B, heads, Tq, Tk], where ragged: of the longest lengths */
    ATT_PARAM_PER_QUERY,    /* batched [B or 1, Tq], ragged [tokens] */
    ATT_PARAM_PER_KEY       /* batched [B or 1, Tk], ragged [tokens] */
} att_param_kind;

/* A dimension of a parameter after that of the heads. */
typedef enum att_extent {
    ATT_EXTENT_NONE = 0,
    ATT_EXTENT_ANY,
    ATT_EXTENT_HEAD_DIM,
    ATT_EXTENT_KEY_DIM,
    ATT_EXTENT_SCORE_DIM /* spec.score_dim, or head_dim where that is 0 */
} att_extent;

/* What a stage declares of a parameter. Those of scores are f32 and per head, those of modifiers f32 and per head or
 * per pair, those of masks any; masks have no gradients. */
typedef struct att_param_shape {
    const char *name;
    att_param_kind kind;
    att_dtype dtype;          /* ATT_F32, or a mask's ATT_I32 or ATT_BOOL */
    att_extent rows, columns; /* of ATT_PARAM_PER_HEAD */
    bool optional;            /* may be left zero: data is NULL */
    bool as_queries; /* ATT_PARAM_PER_KEY only: if not given, the parameter before it, which is ATT_PARAM_PER_QUERY, is
                        used for keys too; the call must then have the same tokens as queries and as keys */
} att_param_shape;

/* One head's view of a parameter. */
typedef struct att_param_view {
    union { /* by its dtype */
        const float *data;
        const int32_t *i32;
        const uint8_t *boolean; /* 0 or not 0 */
    };
    float *grad;       /* backward: where its gradient is added to, NULL where that is not wanted */
    int64_t count;     /* per head: its numbers. Others: 0, and there are */
    int64_t stride[2]; /* elements from query to query and from key to key; 0 repeats */
    int64_t grad_stride[2];
} att_param_view;

/* A query and a key, for formulas. */
typedef struct att_pair {
    size_t size;
    const att_head *head;
    const void *user;         /* that of the stage */
    const double *value;      /* [2] of a modifier: that of the spec; a score's: NULL */
    int64_t q, k;             /* which; the query is at position head->position + q, the key at k */
    const float *query, *key; /* [dim] [key_dim]; a modifier sees the score and the positions alone: NULL and 0 */
    int64_t dim, key_dim;
    const att_param_view *param; /* [n_params] of the stage */
} att_pair;

/* Mathematics on arrays with the running instruction set, so that a file compiled for any machine is fast on this one.
 * y [n]; y may be x. A call costs some nanoseconds, so give it whole rows of a tile, or where its stride is `columns`
 * some rows at once. */
typedef struct att_vectors {
    size_t size;
    void (*exp)(int64_t n, const float *x, float *y);
    void (*tanh)(int64_t n, const float *x, float *y);
    void (*erf)(int64_t n, const float *x, float *y);
    void (*add)(int64_t n, const float *a, const float *b, float *y);
    void (*mul)(int64_t n, const float *a, const float *b, float *y);
    void (*scale)(int64_t n, float s, const float *x, float *y);
    void (*sub)(int64_t n, const float *a, const float *b, float *y); /* a - b */
    /* dx = dy (1 - tanh^2 x); dx may be dy */
    void (*tanh_back)(int64_t n, const float *x, const float *dy, float *dx);
    float (*dot)(int64_t n, const float *a, const float *b);
    float (*sum)(int64_t n, const float *x);
} att_vectors;

/* Queries [q, q + queries) by keys [k, k + keys), as a score sees them. Tiles lie transposed: s[j * stride + i] is of
 * query q + i and key k + j. Columns after `queries`, up to `columns`, exist and may be given any value. */
typedef struct att_score_tile {
    size_t size;
    const att_head *head;
    const void *user; /* that of the score */
    int64_t q, k;
    int queries, keys;
    int64_t columns;
    const float *query; /* [dim][columns], transposed; times the score's scale where it is bilinear */
    int64_t dim;
    const float *key; /* [keys, key_dim], rows key_stride apart */
    int64_t key_dim, key_stride;
    const att_param_view *param; /* [n_params] of the score */
    float *s;                    /* [keys][columns]: scores, rows `stride` apart; with ATT_STAGE_PRODUCT first q . k */
    float *ds;                   /* backward: their gradient, laid as s; with ATT_STAGE_PRODUCT then that of q . k */
    int64_t stride;              /* of s and ds */
    float *dquery;               /* backward, added to: [dim][columns] */
    float *dkey;                 /* backward, added to: [keys, key_dim], rows dkey_stride apart */
    int64_t dkey_stride;
    const att_vectors *vectors;
    const float *query_term; /* [columns], of a score that has `term`; else NULL */
    const float *key_term;   /* [keys] */
    float *dquery_term;      /* backward, added to: [columns] */
    float *dkey_term;        /* backward, added to: [keys] */
} att_score_tile;

/* A row of queries or of keys, as `term` of a score with ATT_STAGE_PRODUCT sees it. */
typedef struct att_score_row {
    size_t size;
    const void *user; /* that of the score */
    const float *x;   /* [dim] */
    int64_t dim;
    const att_vectors *vectors;
} att_score_row;

/* The same as a modifier sees it: scores and positions, without queries and keys. */
typedef struct att_modifier_tile {
    size_t size;
    const att_head *head;
    const void *user;    /* that of the modifier */
    const double *value; /* [2], that of the spec */
    int64_t q, k;
    int queries, keys;
    int64_t columns;
    const att_param_view *param; /* [n_params] of the modifier */
    float *s;       /* [keys][columns]: forward, scores to change; backward, what they were, NULL if it is additive */
    float *ds;      /* backward: their gradient, laid as s */
    int64_t stride; /* of s and ds: from row to row */
    const att_vectors *vectors;
} att_modifier_tile;

/* Who adds to what, and in which order. Functions are called by several threads at once, forward in any order; what
 * `user` points to is shared by all of them. Backward, a tile_back adds without a lock: while it runs, no other thread
 * adds to the numbers that its tile points to.
 *
 * - dkey, dkey_term: of one thread, which has these keys for all queries: query head after query head, and of each from
 *   the last queries to the first, some tiles at a time.
 * - dquery, dquery_term: threads wait for each other, so that keys come in ascending order.
 * - param[].grad of a parameter per head: a part of this thread's own for these keys, 0 at first; all parts are added
 *   up afterwards, in ascending order of sequences, heads and keys. Per pair: in place, in the same order.
 *
 * The order is the same for any number of threads, and so are the bits.
 *
 * Compile files with functions for tiles with -O3: GCC vectorizes few of their loops without. */

/* ---- Stages */

/* Flags of scores, modifiers and masks. */
enum {
    ATT_STAGE_NEEDS_ALIGN = 1, /* uses positions, so spec.align must be given */
    ATT_STAGE_BILINEAR = 2,    /* a score with s(c q, k) = c s(q, k): the scale is folded into the queries */
    ATT_STAGE_ADDITIVE = 4,    /* a modifier with s + c, c free of s: its derivative is 1 */
    ATT_STAGE_SINK = 8, /* a modifier that changes no score: its parameter [heads or 1] joins each row's softmax */
    ATT_STAGE_HAS_VALUE = 16,   /* uses att_stage.value, which of other modifiers and masks must be 0 */
    ATT_STAGE_NEEDS_VALUE = 32, /* the same, and value[0] may not be 0 */
    ATT_STAGE_PRODUCT = 64      /* a score made of q . k, by the library's matrix product, and of a term of each row */
};

/* With ATT_STAGE_PRODUCT, a function of q . k, and perhaps of a term a of the query and the same term b of the key,
 * runs on the library's matrix product, forward and backward; key_dim is head_dim:
 *
 *     Gaussian     -|q - k|^2 / 2     q . k - a - b    term |x|^2 / 2
 *     cosine       q . k / |q| |k|    q . k a b        term 1 / |x|
 *     polynomial   (q . k + c)^n                       no term
 *
 * `tile` is given q . k in s, a in query_term and b in key_term, and changes s to the scores. `tile_back` is given
 * q . k in s once more (it may write there) and the scores' gradient in ds, which it changes to that of q . k; it adds
 * the gradients of the terms to dquery_term and dkey_term. From these the library computes those of queries and
 * keys: dquery and dkey are NULL. Where a pair does not attend, tile_back finds 0 in s and in ds, and a term that is
 * not finite is given as 0, so that sums over a tile need no test. Both functions are needed, tile_back where there is
 * a derivative; formula and derivative are of whole pairs as ever. Caches serve such a score: its terms are made of
 * keys as they are read. */
struct att_score {
    size_t size; /* sizeof(att_score) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    double (*formula)(const att_pair *p); /* before scale */
    /* Adds ds times the formula's derivatives: by q and k to dq [dim] and dk [key_dim], by parameter i to dparam[i],
     * which is NULL where not wanted. NULL: no backward. */
    void (*derivative)(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam);
    void (*tile)(const att_score_tile *t); /* writes s. NULL: the formula for each pair */
    /* From ds, adds to dquery, dkey and param[].grad; nothing where ds is 0, whatever the key is (it may be NaN).
     * NULL: the derivative for each pair. */
    void (*tile_back)(const att_score_tile *t);
    /* ATT_STAGE_PRODUCT: the term of a row, a function of a query or of a key alone. NULL: none. */
    float (*term)(const att_score_row *r);
    /* Adds dterm times its derivative to dx [dim]; needed where there is a derivative. */
    void (*term_back)(const att_score_row *r, float dterm, float *dx);
};

struct att_modifier {
    size_t size; /* sizeof(att_modifier) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    /* NULL, or checks value [2] and param [n_params], whose shapes are right: ATT_OK or att_fail(ctx, ...), of
     * attend_util.h. For each call; of a stage without parameters, with param NULL, once for a plan. */
    att_status (*check)(att_ctx *ctx, const double *value, const att_tensor *param);
    double (*formula)(const att_pair *p, double s);
    /* The derivative by s; adds ds times that by parameter i to dparam[i], which is NULL where not wanted. That of a
     * parameter per pair is laid out by its stride. NULL: no backward. */
    double (*derivative)(const att_pair *p, double s, double ds, double *const *dparam);
    void (*tile)(const att_modifier_tile *t); /* changes s */
    /* Multiplies ds by the derivative and adds to param[].grad, nothing where ds is 0. NULL: the derivative for each
     * pair; one with a parameter per pair must have it. */
    void (*tile_back)(const att_modifier_tile *t);
};

typedef enum att_cover { ATT_COVER_EMPTY, ATT_COVER_PARTIAL, ATT_COVER_FULL } att_cover;

/* Queries [q, q + queries) by keys [k, k + keys) of one head. */
typedef struct att_mask_block {
    size_t size;
    const att_head *head;
    const void *user;            /* that of the mask */
    const double *value;         /* [2], that of the spec */
    const att_param_view *param; /* [n_params] of the mask */
    int64_t q, queries, k, keys;
    bool inspected; /* what inspect has found */
} att_mask_block;

struct att_mask {
    size_t size; /* sizeof(att_mask) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    /* As that of a modifier. */
    att_status (*check)(att_ctx *ctx, const double *value, const att_tensor *param);
    bool (*keep)(const att_mask_block *b); /* does query b->q attend to key b->k? */
    /* Keys [*first, *last) have all that the queries of b attend to; less than 0 and more than tk are allowed. What is
     * outside costs nothing. b's keys are all. NULL: all keys. */
    void (*span)(const att_mask_block *b, int64_t *first, int64_t *last);
    /* How many pairs of a block attend. PARTIAL is always allowed. NULL: small tiles are probed pair by pair. */
    att_cover (*cover)(const att_mask_block *b);
    /* Bit i of bits [keys][j]: does query q + i, of at most 64, attend to key k + j? NULL: keep for each pair. */
    void (*bits)(const att_mask_block *b, uint64_t *bits);
    /* Has the call a property that makes the others faster, such as ids that ascend? Called once for each sequence,
     * with all of its first head; `inspected` is later true if all were. NULL: it is false. */
    bool (*inspect)(const att_mask_block *whole);
};

/* Holds the functions of a spec's stages against their formulas: versions for tiles, on tiles of odd sizes and with
 * every instruction set of this machine, derivatives against differences, a mask's span, cover and bits against keep;
 * and whether gradients are added to what was there, and whether stages that use positions have ATT_STAGE_NEEDS_ALIGN.
 * Where two disagree it is ATT_ERR_ARGUMENT, and the sentence states which, where, and both values. Seconds at most. */
ATT_API att_status att_verify(att_ctx *ctx, const att_attention_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
