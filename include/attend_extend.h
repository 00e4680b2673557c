/* attend_extend.h - scores, modifiers and masks of your own, for plans of attend.h.
 */
#ifndef ATTEND_EXTEND_H
#define ATTEND_EXTEND_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A score, modifier or mask of your own is a constant of its type, passed in the spec like a built-in one. Its formula,
 * in double, defines it and suffices; a version for tiles makes it fast. Several threads call its functions at once.
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
 * att_plan_new copies the struct; what its pointers point to must outlive the plan. Structs that are passed to its
 * functions begin with their size: the library did not set any field beyond that size. */

/* One head of one sequence. */
typedef struct att_head {
    int64_t sequence, head;
    int64_t tq, tk;   /* lengths */
    int64_t position; /* of query 0; key j is at position j */
} att_head;

/* ---- Parameters: tensors that each call passes */

/* The shape of a parameter's tensor. */
typedef enum att_param_kind {
    ATT_PARAM_PER_HEAD = 0, /* [heads or 1], [heads or 1, rows] or [heads or 1, rows, columns], one head of it dense */
    ATT_PARAM_PER_PAIR,     /* each dimension 1 or that of [B, heads, Tq, Tk]; if ragged, Tq and Tk are the longest
                             * lengths */
    ATT_PARAM_PER_QUERY,    /* batched [B or 1, Tq], ragged [tokens] */
    ATT_PARAM_PER_KEY       /* batched [B or 1, Tk], ragged [tokens] */
} att_param_kind;

/* A dimension of a parameter, after its first one, the heads. */
typedef enum att_extent {
    ATT_EXTENT_NONE = 0,
    ATT_EXTENT_ANY,
    ATT_EXTENT_HEAD_DIM,
    ATT_EXTENT_KEY_DIM,
    ATT_EXTENT_SCORE_DIM /* spec.score_dim, or head_dim if that is 0 */
} att_extent;

/* The declaration of a stage's parameter. Parameters of scores are f32 and per head, those of modifiers f32 and per
 * head or per pair, those of masks of any kind and type. Parameters of masks have no gradients. */
typedef struct att_param_shape {
    const char *name;
    att_param_kind kind;
    att_dtype dtype;          /* ATT_F32, or a mask's ATT_I32 or ATT_BOOL */
    att_extent rows, columns; /* of ATT_PARAM_PER_HEAD */
    bool optional;            /* may be left zero: data is NULL */
    bool as_queries; /* ATT_PARAM_PER_KEY only: if not given, the preceding ATT_PARAM_PER_QUERY parameter is used for
                      * keys, too; the call must then have the same tokens as queries and as keys */
} att_param_shape;

/* One head's view of a parameter. */
typedef struct att_param_view {
    union { /* which one: by the dtype */
        const float *data;
        const int32_t *i32;
        const uint8_t *boolean; /* 0 or not 0 */
    };
    float *grad;       /* backward: the gradient is added here; NULL if it is not wanted */
    int64_t count;     /* per head: the number of elements. Other kinds: 0, and their elements have */
    int64_t stride[2]; /* strides in elements from query to query and from key to key; 0 repeats */
    int64_t grad_stride[2];
} att_param_view;

/* A query and a key, for formulas. */
typedef struct att_pair {
    size_t size;
    const att_head *head;
    const void *user;         /* that of the stage */
    const double *value;      /* [2], for a modifier: the spec's; for a score: NULL */
    int64_t q, k;             /* indexes; the query is at position head->position + q, the key at k */
    const float *query, *key; /* [dim], [key_dim]; for a modifier NULL, and dim and key_dim 0: it sees only the score
                               * and the positions */
    int64_t dim, key_dim;
    const att_param_view *param; /* [n_params] of the stage */
} att_pair;

/* Functions on arrays [n] that use the running instruction set, so that a file compiled for any machine is fast on this
 * one. y may be x. A call costs some nanoseconds, so pass whole rows of a tile, or several rows at once if the tile's
 * stride is `columns`. */
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

/* Queries [q, q + queries) by keys [k, k + keys), as a score sees them. Tiles are transposed: s[j * stride + i] belongs
 * to query q + i and key k + j. Columns from `queries` up to `columns` exist, and may be set to any value. */
typedef struct att_score_tile {
    size_t size;
    const att_head *head;
    const void *user; /* that of the score */
    int64_t q, k;
    int queries, keys;
    int64_t columns;
    const float *query; /* [dim][columns], transposed; multiplied by the scale if the score is bilinear */
    int64_t dim;
    const float *key; /* [keys, key_dim], rows key_stride apart */
    int64_t key_dim, key_stride;
    const att_param_view *param; /* [n_params] of the score */
    float *s;                    /* [keys][columns]: scores, rows `stride` apart; with ATT_STAGE_PRODUCT they begin as q
                                  * . k */
    float *ds;                   /* backward: gradient of s, in its layout; with ATT_STAGE_PRODUCT tile_back replaces it
                                  * by that of q . k */
    int64_t stride;              /* of s and ds */
    float *dquery;               /* backward, added to: [dim][columns] */
    float *dkey;                 /* backward, added to: [keys, key_dim], rows dkey_stride apart */
    int64_t dkey_stride;
    const att_vectors *vectors;
    const float *query_term; /* [columns], if the score has `term`; otherwise NULL */
    const float *key_term;   /* [keys] */
    float *dquery_term;      /* backward, added to: [columns] */
    float *dkey_term;        /* backward, added to: [keys] */
} att_score_tile;

/* A row of queries or of keys, the argument of `term` of a score with ATT_STAGE_PRODUCT. */
typedef struct att_score_row {
    size_t size;
    const void *user; /* that of the score */
    const float *x;   /* [dim] */
    int64_t dim;
    const att_vectors *vectors;
} att_score_row;

/* Queries [q, q + queries) by keys [k, k + keys), as a modifier sees them: scores and positions, without the rows of
 * queries and keys. */
typedef struct att_modifier_tile {
    size_t size;
    const att_head *head;
    const void *user;    /* that of the modifier */
    const double *value; /* [2], the spec's */
    int64_t q, k;
    int queries, keys;
    int64_t columns;
    const att_param_view *param; /* [n_params] of the modifier */
    float *s;       /* [keys][columns]: forward: scores to change; backward: the scores before, NULL if additive */
    float *ds;      /* backward: the gradient of s, in its layout */
    int64_t stride; /* of s and ds: from row to row */
    const att_vectors *vectors;
} att_modifier_tile;

/* The rules by which threads add to gradients. Several threads call the functions at once and share the data that
 * `user` points to. In the forward their order is undefined. In the backward, tile_back adds without a lock: while it
 * runs, no other thread adds to the numbers that its tile points to.
 *
 * - dkey, dkey_term: one thread has these keys for all queries. It processes one query head after another, each from
 *   the last queries to the first, some tiles at a time.
 * - dquery, dquery_term: threads wait for each other, so that keys are added in ascending order.
 * - param[].grad of a parameter per head: a partial gradient of this thread for these keys, which begins as 0. All
 *   partial gradients are added afterwards, in ascending order of sequences, heads and keys. Per pair: tile_back adds
 *   to the gradient itself, in the same order.
 *
 * The order, and so the bits, are the same for any number of threads.
 *
 * Compile files with functions for tiles with -O3: without it GCC vectorizes few of their loops. */

/* ---- Stages */

/* Flags of scores, modifiers and masks. */
enum {
    ATT_STAGE_NEEDS_ALIGN = 1,  /* uses positions, so spec.align must be given */
    ATT_STAGE_BILINEAR = 2,     /* a score with s(c q, k) = c s(q, k): the scale is folded into the queries */
    ATT_STAGE_ADDITIVE = 4,     /* a modifier s + c, where c does not depend on s: its derivative is 1 */
    ATT_STAGE_SINK = 8,         /* a modifier that changes no score: its parameter [heads or 1] is added to each row's
                                 * softmax */
    ATT_STAGE_HAS_VALUE = 16,   /* uses att_stage.value, which must be 0 for stages without this flag */
    ATT_STAGE_NEEDS_VALUE = 32, /* uses att_stage.value, and value[0] must not be 0 */
    ATT_STAGE_PRODUCT = 64      /* a score that is a function of q . k, which the library's matrix product computes, and
                                 * of a term of each row */
};

/* With ATT_STAGE_PRODUCT a score uses the library's matrix product, forward and backward. It is a function of q . k
 * and, optionally, of a term a of the query and the same term b of the key; key_dim is head_dim:
 *
 *     Gaussian     -|q - k|^2 / 2     q . k - a - b    term |x|^2 / 2
 *     cosine       q . k / |q| |k|    q . k a b        term 1 / |x|
 *     polynomial   (q . k + c)^n                       no term
 *
 * `tile` receives q . k in s, a in query_term and b in key_term, and replaces s by the scores. `tile_back` receives q .
 * k in s (it may overwrite it) and the gradient of the scores in ds, which it replaces by the gradient of q . k; it
 * adds the gradients of the terms to dquery_term and dkey_term. The library computes the gradients of queries and keys
 * from these, so dquery and dkey are NULL. If a pair does not attend, s and ds are 0 there, and a term that is not
 * finite is passed as 0, so sums over a tile need no test. `tile` is required, and tile_back if there is a derivative;
 * formula and derivative compute the score of a pair from its query and key, as for other scores. Such a score works
 * with caches: its terms are computed from the keys as they are read. */
struct att_score {
    size_t size; /* sizeof(att_score) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    double (*formula)(const att_pair *p); /* the score before scaling */
    /* Adds ds times the formula's derivatives: by q and k to dq [dim] and dk [key_dim], by parameter i to dparam[i],
     * which is NULL if it is not wanted. NULL: no backward. */
    void (*derivative)(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam);
    void (*tile)(const att_score_tile *t); /* writes s. NULL: the formula for each pair */
    /* Adds the gradients that follow from ds to dquery, dkey and param[].grad. It must add nothing where ds is 0, even
     * if the key is NaN. NULL: the derivative for each pair. */
    void (*tile_back)(const att_score_tile *t);
    /* ATT_STAGE_PRODUCT: returns the term of a row, a function of a query or of a key alone. NULL: none. */
    float (*term)(const att_score_row *r);
    /* Adds dterm times the derivative of the term to dx [dim]; required if there is a derivative. */
    void (*term_back)(const att_score_row *r, float dterm, float *dx);
};

struct att_modifier {
    size_t size; /* sizeof(att_modifier) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    /* Checks value [2] and param [n_params], whose shapes are right: returns ATT_OK or att_fail(ctx, ...) of
     * attend_util.h. It is called for each call; for a stage without parameters once for a plan, with param NULL. NULL:
     * no check. */
    att_status (*check)(att_ctx *ctx, const double *value, const att_tensor *param);
    double (*formula)(const att_pair *p, double s);
    /* Returns the derivative by s, and adds ds times the derivative by parameter i to dparam[i], which is NULL if it is
     * not wanted. The dparam of a parameter per pair has the parameter's stride. NULL: no backward. */
    double (*derivative)(const att_pair *p, double s, double ds, double *const *dparam);
    void (*tile)(const att_modifier_tile *t); /* changes s */
    /* Multiplies ds by the derivative and adds to param[].grad, but nothing where ds is 0. NULL: the derivative for
     * each pair, which a modifier with a parameter per pair must have. */
    void (*tile_back)(const att_modifier_tile *t);
};

typedef enum att_cover { ATT_COVER_EMPTY, ATT_COVER_PARTIAL, ATT_COVER_FULL } att_cover;

/* Queries [q, q + queries) by keys [k, k + keys) of one head. */
typedef struct att_mask_block {
    size_t size;
    const att_head *head;
    const void *user;            /* that of the mask */
    const double *value;         /* [2], the spec's */
    const att_param_view *param; /* [n_params] of the mask */
    int64_t q, queries, k, keys;
    bool inspected; /* what inspect returned */
} att_mask_block;

struct att_mask {
    size_t size; /* sizeof(att_mask) */
    const char *name;
    unsigned flags;
    const void *user;
    const att_param_shape *param; /* [n_params] */
    int n_params;
    /* Checks values and parameters, as check of att_modifier does. */
    att_status (*check)(att_ctx *ctx, const double *value, const att_tensor *param);
    bool (*keep)(const att_mask_block *b); /* does query b->q attend to key b->k? */
    /* Sets keys [*first, *last) to a range that includes all keys to which the queries of b attend; values below 0 and
     * above tk are allowed. Keys outside cost nothing. b's own keys are all keys. NULL: all keys. */
    void (*span)(const att_mask_block *b, int64_t *first, int64_t *last);
    /* Returns whether no, some or all pairs of a block attend. ATT_COVER_PARTIAL is always allowed. NULL: small tiles
     * are tested pair by pair. */
    att_cover (*cover)(const att_mask_block *b);
    /* Sets bit i of bits[j], for j in [0, keys), to whether query q + i, of at most 64, attends to key k + j. NULL:
     * keep for each pair. */
    void (*bits)(const att_mask_block *b, uint64_t *bits);
    /* Returns whether a sequence has a property that makes the other functions faster, such as ascending ids. It is
     * called once for each sequence, with the whole block of the first head. `inspected` is then true if it returned
     * true for all sequences. NULL: `inspected` is false. */
    bool (*inspect)(const att_mask_block *whole);
};

/* Checks the functions of a spec's stages against their formulas: versions for tiles, on tiles of odd sizes and with
 * every instruction set of this machine; derivatives against differences; a mask's span, cover and bits against keep.
 * It also checks that gradients are added to existing numbers, and that stages that use positions have
 * ATT_STAGE_NEEDS_ALIGN. If two disagree, it returns ATT_ERR_ARGUMENT, and the sentence states which, where, and both
 * values. It takes seconds at most. */
ATT_API att_status att_verify(att_ctx *ctx, const att_attention_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
