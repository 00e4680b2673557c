/* L-BFGS (Nocedal, Wright 2006, 7.2): minimizes a smooth function of many numbers by its gradient. */
#ifndef ATT_PROBE_LBFGS_H
#define ATT_PROBE_LBFGS_H

#include "attend_util.h"

/* Computes the value and the gradient [n] at x [n]. */
typedef att_status (*att_objective)(void *user, const double *x, double *value, double *gradient);

typedef struct att_minimum {
    int64_t n;
    double *x;          /* [n]: the start, then the best point */
    int64_t iterations; /* limit of steps */
    double tolerance;   /* it ends when no derivative has a larger magnitude */
    /* results */
    int64_t steps;
    double value, gradient; /* at x; gradient: the largest magnitude of a derivative */
} att_minimum;
/* Minimizes f. It also ends, with a gradient above the tolerance, when rounding hides further progress. Errors: those
 * of f; out of memory. */
att_status att_lbfgs(att_ctx *ctx, att_objective f, void *user, att_minimum *m);

#endif
