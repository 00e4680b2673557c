/* Inside att_verify: numbers at random, numbers compared, and the part about masks. */
#ifndef ATT_ATTN_VERIFY_H
#define ATT_ATTN_VERIFY_H

#include "attn/block/block.h"

#include <math.h>

enum { ATT_VERIFY_TQ = 90, ATT_VERIFY_TK = 300 }; /* one head's lengths */

/* The next one (splitmix64). */
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

/* Of x [n], without sign, those that are finite */
static inline double att_verify_largest(int64_t n, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = isfinite(x[i]) ? fmax(largest, fabs(x[i])) : largest;
    return largest;
}

/* A derivative is between the differences to the left and to the right, also where there is a bend; to first order in
 * the step, and as far as the formula's own rounding, in f32 perhaps, lets one see. */
static inline bool att_verify_is_slope(double slope, double left, double right, double f)
{
    const double largest = fmax(fabs(slope), fmax(fabs(left), fabs(right))),
                 limit = 0x1p-9 * largest + 0x1p-13 * fabs(f) + 0x1p-20;
    return slope >= fmin(left, right) - limit && slope <= fmax(left, right) + limit;
}

/* Where the head is whose tiles are checked, in round 0 or 1: at a position that is not 0, even where spec.align does
 * not say which, as who does not say that it uses positions sees none of them. */
static inline att_head att_verify_place(const att_attention_spec *s, int round)
{
    return (att_head){.head = round ? s->heads - 1 : 0,
                      .sequence = round,
                      .tq = ATT_VERIFY_TQ,
                      .tk = ATT_VERIFY_TK,
                      .position = round ? ATT_VERIFY_TK - ATT_VERIFY_TQ : 17};
}

att_status att_verify_mask(const att_plan *plan, int i); /* mask i */

#endif
