/* Inside att_verify: checks one stage on one instruction set, with random numbers. */
#ifndef ATT_ATTN_VERIFY_H
#define ATT_ATTN_VERIFY_H

#include "attn/block/block.h"

#include <math.h>

enum { ATT_VERIFY_TQ = 90, ATT_VERIFY_TK = 300 }; /* one head's lengths */

/* Returns the next random number (splitmix64). */
static inline uint64_t att_verify_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void att_verify_fill(int64_t n, double x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x;
}

static inline bool att_verify_agree(double got, double want, double limit)
{
    return got == want || fabs(got - want) <= limit || (isnan(got) && isnan(want));
}

/* Returns the largest magnitude of the finite numbers of x [n]. */
static inline double att_verify_largest(int64_t n, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = isfinite(x[i]) ? fmax(largest, fabs(x[i])) : largest;
    return largest;
}

/* Returns whether a derivative is between the differences to the left and to the right, also at a bend: to first order
 * in the step, and within the formula's own rounding, which may be that of f32. */
static inline bool att_verify_is_slope(double slope, double left, double right, double f)
{
    const double largest = fmax(fabs(slope), fmax(fabs(left), fabs(right))),
                 limit = 0x1p-9 * largest + 0x1p-13 * fabs(f) + 0x1p-20;
    return slope >= fmin(left, right) - limit && slope <= fmax(left, right) + limit;
}

/* Returns the head whose tiles are checked, in round 0 or 1. Its position is not 0, even if spec.align does not state
 * one: a stage must not depend on positions unless it states that it uses them. */
static inline att_head att_verify_head_at(const att_attention_spec *s, int round)
{
    return (att_head){.head = round ? s->heads - 1 : 0,
                      .sequence = round,
                      .tq = ATT_VERIFY_TQ,
                      .tk = ATT_VERIFY_TK,
                      .position = round ? ATT_VERIFY_TK - ATT_VERIFY_TQ : 17};
}

enum { ATT_VERIFY_KEYS = 37, ATT_VERIFY_ANY_EXTENT = 13 }; /* maximum keys of a tile; the size for ATT_EXTENT_ANY */
/* The number to which a gradient is added, so that overwriting is noticed. */
#define ATT_VERIFY_BEFORE 3.0
#define ATT_VERIFY_STEP 0x1p-10f /* of differences */

/* The stage to check: a score or a modifier; the other pointer is NULL. */
typedef struct att_verify_stage {
    const char *name;
    const att_score *score;
    const att_modifier *modifier;
    const void *user;
    const double *value; /* [2] */
} att_verify_stage;
/* The position of the current tile. */
typedef struct att_verify_block {
    att_head head;
    int q0, queries, k0, keys;
    int64_t stride; /* of the tile's rows */
} att_verify_block;
/* The operands of a pair's formula. */
typedef struct att_verify_operand {
    float *query, *key; /* [ATT_VERIFY_TQ, head_dim] [ATT_VERIFY_TK, key_dim] */
    float *numbers[ATT_MAX_PARAMS];
    att_param_view param[ATT_MAX_PARAMS]; /* of these numbers */
} att_verify_operand;
/* The operands and results of the version for tiles. */
typedef struct att_verify_tile {
    float *packed_q;
    float scale;                   /* of the queries */
    float *s, *ds, *dquery, *dkey; /* as in the tiles */
    float *given;                  /* s before the call; for a score, ds before the call */
    float *term[2], *dterm[2];     /* terms of rows, queries before keys */
    float *row;                    /* [head_dim] */
} att_verify_tile;
/* The expected results, from formulas and derivatives, in the same layout. */
typedef struct att_verify_want {
    double *s, *ds, *dquery, *dkey;
    double *grad[ATT_MAX_PARAMS], *dterm[2]; /* as operand.param[].grad and tile.dterm */
} att_verify_want;
/* One pair's derivatives. */
typedef struct att_verify_derivatives {
    double *dq, *dk, *dparam[ATT_MAX_PARAMS];
} att_verify_derivatives;

/* One stage on one instruction set. */
typedef struct att_verify_check {
    att_ctx *ctx;
    const att_attention_spec *spec;
    const att_kernels *kernels;
    att_vectors vectors;
    const char *isa;
    att_verify_stage stage;
    att_verify_block block;
    int64_t any; /* the size for ATT_EXTENT_ANY */
    uint64_t random;
    att_arena memory;
    bool out_of_memory;
    double terms; /* gradients are sums of terms up to this, which may cancel */
    att_verify_operand operand;
    att_verify_tile tile;
    att_verify_want want;
    att_verify_derivatives pair;
} att_verify_check;

/* A pair of the tile, in the order of memory. */
typedef struct att_verify_position {
    int i, j;
    int64_t at; /* in s and ds */
} att_verify_position;
static const att_verify_position ATT_VERIFY_BEGIN = {.i = -1};
static inline bool att_verify_next_pair(const att_verify_check *c, att_verify_position *p)
{
    if (++p->i >= c->block.queries) {
        p->i = 0;
        p->j++;
    }
    p->at = p->j * c->block.stride + p->i;
    return p->j < c->block.keys;
}

/* Allocates operands (verify_check.c). NULL: out of memory, and c->out_of_memory is set. */
float *att_verify_floats(att_verify_check *c, int64_t n);
float att_verify_uniform(att_verify_check *c);
void att_verify_make_param(att_verify_check *c, int i, const att_param_shape *shape);
void att_verify_make_operands(att_verify_check *c);
/* Draws random gradients ds. Some are 0, as are all of one key, whose row becomes NaN if spoil_key is set. */
void att_verify_draw_gradients(att_verify_check *c, bool spoil_key);
/* Returns the argument of a pair's formula. */
att_pair att_verify_pair(const att_verify_check *c, int64_t q, int64_t k);
att_score_tile att_verify_score_tile(const att_verify_check *c);

/* Returns an error whose sentence describes a difference. */
att_status att_verify_differ(const att_verify_check *c, const char *what, const char *where, double got,
                             const char *than, double want);
/* Compares got [n] with want. Where `before` was added to every other number, that is subtracted; the error sentence
 * has the index. */
att_status att_verify_same_sums(const att_verify_check *c, const char *name, int64_t n, const float *got, double before,
                                const double *want);
/* Compares the numbers of the pairs of a tile; zeros: also where nothing is wanted. */
att_status att_verify_same_tile(const att_verify_check *c, const char *what, const float *got, const char *than,
                                const double *want, bool zeros);
/* Computes the pair's derivatives, by what they add to other numbers; returns a modifier's derivative by s. */
double att_verify_derivatives_of(const att_verify_check *c, const att_pair *p, double s);
void att_verify_clear_pair(const att_verify_check *c);
/* Checks gradient [n], the derivatives of the formula by x [n], operands of the pair, for some of them. */
att_status att_verify_derivative(const att_verify_check *c, const att_pair *p, double s, const char *by, int64_t n,
                                 float *x, const double *gradient);
att_status att_verify_param_derivative(const att_verify_check *c, const att_pair *p, double s);
/* Checks that a stage that does not state that it uses positions has the same results at all positions. */
att_status att_verify_positions(const att_verify_check *c, unsigned flags);

/* Check a score (transforms: its tiles see other rows than its formula), a modifier with its value, and mask i. */
att_status att_verify_score(att_verify_check *c, const att_score *s, bool transforms);
att_status att_verify_modifier(att_verify_check *c, const att_modifier *m, const double *value);
att_status att_verify_mask(const att_plan *plan, int i);

#endif
