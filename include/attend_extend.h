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
 *     static const att_score l1_score = {.name = "l1", .formula = l1};
 */

/* One head of one sequence. */
typedef struct att_head {
    int64_t sequence, head;
    int64_t tq, tk;      /* lengths */
    int64_t position;    /* of query 0; key j is at position j */
    const uint8_t *mask; /* [tq, tk] of att_mask_boolean, with these strides */
    int64_t mask_stride[2];
    int64_t window[2];          /* left and right of att_mask_window */
    const int32_t *document[2]; /* [tq] and [tk] of att_mask_document, with these strides */
    int64_t document_stride[2];
    bool documents_ascend;
} att_head;

/* One head's view of a parameter. */
typedef struct att_param_view {
    const float *data;
    float *grad;       /* backward: where its gradient is added to, NULL where that is not wanted */
    int64_t count;     /* numbers of one head; of one that is broadcast over pairs, 0, and there are: */
    int64_t stride[2]; /* from query to query, from key to key; 0 repeats */
    int64_t grad_stride[2];
} att_param_view;

/* A query and a key, for formulas. */
typedef struct att_pair {
    const att_head *at;
    const void *user;         /* that of the stage */
    float value;              /* of a modifier: spec.modifier_value */
    int64_t q, k;             /* which; the query is at position at->position + q, the key at k */
    const float *query, *key; /* [dim] [key_dim]; a modifier sees the score and the positions alone: NULL and 0 */
    int64_t dim, key_dim;
    const att_param_view *param; /* [ATT_MAX_PARAMS] of a score, [1] of a modifier */
} att_pair;

/* Mathematics on arrays with the running instruction set, so that a file compiled for any machine is fast on this one.
 * y [n]; y may be x. A call costs some nanoseconds, so give it whole rows of a tile, or where its stride is `columns`
 * some rows at once. */
typedef struct att_vectors {
    void (*exp)(int64_t n, const float *x, float *y);
    void (*tanh)(int64_t n, const float *x, float *y);
    void (*erf)(int64_t n, const float *x, float *y);
    void (*add)(int64_t n, const float *a, const float *b, float *y);
    void (*mul)(int64_t n, const float *a, const float *b, float *y);
    void (*scale)(int64_t n, float s, const float *x, float *y);
    void (*sub)(int64_t n, const float *a, const float *b, float *y); /* a - b */
    /* dx = dy (1 - tanh^2 x); dx may be dy */
    void (*tanh_back)(int64_t n, const float *x, const float *dy, float *dx);
} att_vectors;

/* Queries [q, q + queries) by keys [k, k + keys). Tiles lie transposed: s[j * stride + i] is of query q + i and key
 * k + j. Columns behind `queries`, up to `columns`, exist and may be given any value. */
typedef struct att_tile {
    const att_head *at;
    const void *user;
    float value;
    int64_t q, k;
    int queries, keys;
    int64_t columns;
    const float *query; /* [dim][columns], turned; times the score's scale where it is bilinear; a modifier's: NULL */
    int64_t dim;
    const float *key; /* [keys, key_dim], rows key_stride apart; a modifier's: NULL */
    int64_t key_dim, key_stride;
    const att_param_view *param;
    float *s;       /* scores, rows `stride` apart; in a modifier's backward: what it was given, if not additive */
    float *ds;      /* backward: their gradient, laid as s */
    int64_t stride; /* of s and ds */
    float *dquery;  /* backward of a score: [dim][columns] */
    float *dkey;    /* and [keys, key_dim], rows dkey_stride apart; both are added to */
    int64_t dkey_stride;
    const att_vectors *vectors;
    /* Built-in scores: strides of queries that lie in rows, else 0; and what has been made of each key, or NULL. */
    int64_t query_stride, dquery_stride;
    const float *precomputed;
    int64_t precomputed_stride;
} att_tile;

enum {
    ATT_NEEDS_ALIGN = 1, /* uses positions, so spec.align must be given */
    ATT_BILINEAR = 2,    /* a score with s(c q, k) = c s(q, k): the scale is folded into the queries */
    ATT_DOT = 4,         /* a score that is the dot product of its rows; built-in ones only */
    ATT_ADDITIVE = 8,    /* a modifier with s + c, c free of s: its derivative is 1 */
    ATT_SINK = 16,       /* a modifier that changes no score: param [heads] joins each row's softmax */
    ATT_PAIRS = 32,      /* a modifier's parameter is broadcast over [B, heads, Tq, Tk]; needs tile_back */
    ATT_HAS_VALUE = 64   /* a modifier that needs spec.modifier_value, and not 0 */
};

/* A dimension of a parameter behind that of the heads. */
typedef enum att_extent {
    ATT_NONE = 0,
    ATT_ANY,
    ATT_HEAD_DIM,
    ATT_KEY_DIM,
    ATT_SCORE_DIM /* spec.score_dim, or head_dim where that is 0 */
} att_extent;
/* A parameter's shape: [heads or 1, extent...], dense but for the first. No name: there is none. */
typedef struct att_param_shape {
    const char *name;
    att_extent extent[2];
} att_param_shape;

struct att_score {
    const char *name;
    unsigned flags;
    const void *user;
    att_param_shape param[ATT_MAX_PARAMS];
    double (*formula)(const att_pair *p); /* before scale */
    /* Adds ds times the formula's derivatives: by q and k to dq [dim] and dk [key_dim], by parameter i to dparam[i],
     * which is NULL where not wanted. NULL: no backward. */
    void (*derivative)(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam);
    void (*tile)(const att_tile *t); /* writes s. NULL: the formula for each pair */
    /* From ds, adds to dquery, dkey and param[].grad; nothing where ds is 0, whatever the key is (it may be NaN).
     * NULL: the derivative for each pair. */
    void (*tile_back)(const att_tile *t);
    /* Built-in ones: what is done to rows before the tiles see them, and a version for each instruction set. */
    const struct att_row_transforms *transforms;
    const att_score *const *set;
};

struct att_modifier {
    const char *name;
    unsigned flags;
    const void *user;
    att_param_shape param;
    /* NULL, or looks at a call: ATT_OK or att_fail(ctx, ...). param's shape has been checked. */
    att_status (*check)(att_ctx *ctx, float value, const att_tensor *param);
    double (*formula)(const att_pair *p, double s);
    /* The derivative by s; adds ds times that by the parameter to dparam, which is NULL where not wanted. */
    double (*derivative)(const att_pair *p, double s, double ds, double *dparam);
    void (*tile)(const att_tile *t); /* changes s */
    /* Multiplies ds by the derivative and adds the parameter's gradient, nothing to it where ds is 0. NULL: the
     * derivative for each pair. */
    void (*tile_back)(const att_tile *t);
    const att_modifier *const *set;
};

typedef enum att_cover { ATT_EMPTY, ATT_PARTIAL, ATT_FULL } att_cover;

struct att_mask {
    const char *name;
    unsigned flags;
    const void *user;
    bool (*keep)(const att_head *at, const void *user, int64_t q, int64_t k); /* true = attend */
    /* Keys [*first, *last) have all that queries [q, q + queries) attend to; less than 0 and more than tk are allowed.
     * What is outside costs nothing. NULL: all keys. */
    void (*span)(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t *first, int64_t *last);
    /* How many pairs of a block attend. PARTIAL is always allowed. NULL: small tiles are probed pair by pair. */
    att_cover (*cover)(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys);
    /* Bit i of bits [keys][j]: does query q + i, of at most 64, attend to key k + j? NULL: keep for each pair. */
    void (*bits)(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys,
                 uint64_t *bits);
};

/* Holds the functions of a spec's stages against their formulas: versions for tiles, on tiles of odd sizes and with
 * every instruction set of this machine, derivatives against differences, a mask's span, cover and bits against keep;
 * and looks whether gradients are added to what was there, and whether who uses positions has ATT_NEEDS_ALIGN.
 * Where two disagree it is ATT_ERR_ARGUMENT, and the sentence says which, where, and both values. Seconds at most. */
ATT_API att_status att_verify(att_ctx *ctx, const att_attention_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
